//! Pure. Delays an update while the volume of the backup before it has too little room, or while the agent still measures the backup.

use agent_api::{AgentReport, Contents, Server};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::PodSpec;
use validate::BackupVolume;
use validate::image_contract::{BACKUP_VOLUME, BACKUPS, PREPARE_CONTAINER};

use crate::k8s::events::EventText;
use crate::server::image_pull::{is_announced, would_be_stopped};
use crate::server::plan::constraint::{Constraint, ConstraintInput, Wait};
use crate::server::plan::{MissingRoom, PassInput, Plan};
use crate::server::report::context::PassReport;
use crate::server::report::downtime_estimate::{contents_text, due_backup};
use crate::server::report::format::format_shortage;
use crate::server::template_variable::variable_of;

pub(super) struct BackupRoom;

/// The reason if the room is known to be too little. Also the reason of the Event.
const NO_ROOM: &str = "NoRoomForBackup";
/// The reason before the agent has measured the backup.
const MEASURING: &str = "MeasuringBackup";
/// How long after its server has answered the agent may need. It gives up after a minute, and reads the start before.
const MEASURED_WITHIN: SignedDuration = SignedDuration::from_mins(2);

impl Constraint for BackupRoom {
    /// Compares the agent's figures before players are warned. An announced update is not delayed any more: `prepare` checks the room again.
    fn evaluate(&self, plan: &mut Plan, input: &ConstraintInput<'_>) -> bool {
        plan.constraints.missing_room = missing_room(plan, &input.pass);
        plan.constraints.missing_room.is_some()
    }

    fn wait(&self, report: &PassReport<'_>) -> Option<Wait> {
        let (reason, message, short) = match report.plan.constraints.missing_room? {
            MissingRoom::TooLittle { contents, needed, room } => {
                let message = shortage_message(&report.pass, contents, needed, room)?;
                (NO_ROOM, message, Some("no room for backup".to_owned()))
            }
            MissingRoom::Unmeasured { until: _ } => {
                let message = "The agent measures the size of the backup before this update, which takes two minutes at \
                    most.";
                (MEASURING, message.to_owned(), None)
            }
        };
        Some(Wait { reason, message, short })
    }

    fn wake_at(&self, plan: &Plan) -> Option<Timestamp> {
        match plan.constraints.missing_room? {
            MissingRoom::Unmeasured { until } => Some(until),
            MissingRoom::TooLittle { .. } => None,
        }
    }

    /// The figures are in the condition only: they change, and the Event would be repeated.
    fn events(&self, report: &PassReport<'_>) -> Vec<EventText> {
        match report.plan.constraints.missing_room {
            Some(MissingRoom::TooLittle { .. }) => {
                let text =
                    "The update waits, because there is too little room for the backup before it. See UpdateBlocked.";
                vec![EventText { reason: NO_ROOM, warning: true, text: text.to_owned() }]
            }
            Some(MissingRoom::Unmeasured { .. }) | None => Vec::new(),
        }
    }
}

/// What is missing for the backup before the update. `None` if none is due, if there is room, or if nobody can tell: `prepare` takes no update
/// without the backup.
fn missing_room(plan: &Plan, pass: &PassInput<'_>) -> Option<MissingRoom> {
    if !would_be_stopped(&plan.goal, &plan.observation) || is_announced(&plan.goal, &plan.observation) {
        return None;
    }
    let contents = due_backup(pass.checked, plan, pass.observed)?;
    // The agent reports on the volume of its own pod. The update may mount another one.
    let present = repository(pass.observed.pod.as_ref()?.spec.as_ref()?)?;
    if repository(plan.target.rendered.template.spec.as_ref()?)? != present {
        return None;
    }
    let report = pass.observed.reply.report.as_deref()?;
    let backups = report.backups.as_ref()?;
    let Some(sizes) = backups.sizes else {
        return measured_within(report).map(|rest| MissingRoom::Unmeasured { until: pass.now + rest });
    };
    let (needed, room) = (sizes.space_needed(contents), backups.room?);
    (room < needed).then_some(MissingRoom::TooLittle { contents, needed, room })
}

/// How much longer the agent may need to measure the backup. `None` if it should have done so, or cannot now.
fn measured_within(report: &AgentReport) -> Option<SignedDuration> {
    match &report.server {
        Server::Up { since, .. } => {
            let rest = MEASURED_WITHIN - report.at.duration_since(*since);
            rest.is_positive().then_some(rest)
        }
        Server::Absent | Server::Starting { .. } | Server::Stopping { .. } => None,
    }
}

/// The directory of the backups, and its claim if it is not on the server's own volume.
fn repository(pod: &PodSpec) -> Option<(&str, Option<&str>)> {
    let mut volumes = pod.volumes.iter().flatten().filter(|volume| volume.name == BACKUP_VOLUME);
    let claim = volumes.next().and_then(|volume| volume.persistent_volume_claim.as_ref());
    Some((variable_of(pod, PREPARE_CONTAINER, BACKUPS)?, claim.map(|claim| claim.claim_name.as_str())))
}

fn shortage_message(pass: &PassInput<'_>, contents: Contents, needed: u64, room: u64) -> Option<String> {
    let (volume, ways_out) = match &pass.checked.data.backup.as_ref()?.volume {
        BackupVolume::Data => (
            "the server's volume",
            "Free space, enlarge `spec.storage.size`, or name another volume in `spec.backup.storage`",
        ),
        BackupVolume::Created { .. } => (
            "the backup volume",
            "Enlarge `spec.backup.storage.size`, lower `spec.backup.retention.maxCount`, or name another volume in \
            `spec.backup.storage`",
        ),
        BackupVolume::Existing(_) => {
            ("the backup volume", "Free space, enlarge it, or name another volume in `spec.backup.storage`")
        }
    };
    let (needed, room) = format_shortage(needed, room);
    Some(format!(
        "The backup of {} before this update needs {needed}, and {volume} has {room} for it. {ways_out}. To update \
        without a backup, set `spec.backup.beforeUpdate: Never`. See docs/guides/backup.md.",
        contents_text(contents)
    ))
}

#[cfg(test)]
mod tests;
