//! Pure. Describes the manual recovery after a newer Minecraft version has rewritten the worlds and then failed or was removed: rolling
//! back and rolling forward.

use scheduler::rollout::{can_roll_forward, needs_admin};

use super::backup;
use super::context::{MAX_MESSAGE_LENGTH, PassReport};
use super::format::format_shortage;
use super::waiting::waiting_for_window;
use crate::error_chain::cut;
use crate::k8s::labels::APPLY_NOW;
use crate::server::backups::{InsufficientSpace, insufficient_space, offline_backup};
use crate::server::requested_restore::{self, replace_worlds_hint};
use validate::CheckedServer;

/// Suggested change after a failed set.
const CHANGE_FAILED: &str = "correct in the spec what failed";

/// Suggested change if the Minecraft version of the stable set is older than the worlds.
const CHANGE_MINECRAFT: &str = "choose a Minecraft in the spec that can open the worlds";

pub(super) fn no_backup_message(checked: &CheckedServer, report: &PassReport<'_>) -> String {
    let missing_space = insufficient_space(report.pass.observed);
    let problem = match (backup::unreadable(report), &missing_space) {
        (Some(why), _) => format!(
            "Whether there is a backup from right before it is unknown, because the backups cannot be read ({}). They \
            are read again automatically.",
            cut(why, 256)
        ),
        (None, Some(missing_space)) => {
            format!(
                "{}. It is then rolled back automatically if no player has joined since. Otherwise:",
                space_message(missing_space)
            )
        }
        (None, None) => "There is no backup from right before it.".to_owned(),
    };
    let restore_hint = requested_restore::newest_backup(report.pass.observed).map_or_else(String::new, |backup| {
        let first = if missing_space.is_some() { "With enough space: " } else { "" };
        format!("{first}{}. ", replace_worlds_hint(checked, &backup))
    });
    let text = format!(
        "The new version has rewritten the world. {problem} Action required (docs/guides/troubleshooting.md). {} \
        {restore_hint}{}",
        roll_forward_hint(report, CHANGE_FAILED),
        report.plan.verification.problem
    );
    cut(&text, MAX_MESSAGE_LENGTH)
}

pub(super) fn rollback_would_lose_message(checked: &CheckedServer, report: &PassReport<'_>) -> String {
    let backup = offline_backup(report.pass.observed).map(|backup| backup.id.as_str()).unwrap_or_default();
    let room = insufficient_space(report.pass.observed)
        .map_or_else(String::new, |missing_space| format!("First free space. {}. ", space_message(&missing_space)));
    let text = format!(
        "The new version has rewritten the worlds, and players may have joined since. Action required. {room}{}. The \
        server is then rolled back to the previous version set. {} {}",
        replace_worlds_hint(checked, backup),
        roll_forward_hint(report, CHANGE_FAILED),
        report.plan.verification.problem
    );
    cut(&text, MAX_MESSAGE_LENGTH)
}

/// The missing space and how to get it.
fn space_message(missing_space: &InsufficientSpace<'_>) -> String {
    let InsufficientSpace { backup, needed, free } = missing_space;
    let (needed, free) = format_shortage(*needed, *free);
    format!(
        "The server's volume has no space to restore the backup `{}` from right before it: {needed} are needed, {free} \
        are free. Delete files that are not needed, or enlarge `spec.storage.size`",
        backup.id
    )
}

/// The roll-forward from worlds that the stable set cannot open, if that prevents its start.
pub(super) fn roll_forward_past_refusal(report: &PassReport<'_>) -> Option<String> {
    needs_admin(&report.plan.observation).then(|| roll_forward_hint(report, CHANGE_MINECRAFT))
}

/// The update that starts automatically, or the `change` that leads to one.
fn roll_forward_hint(report: &PassReport<'_>, change: &str) -> String {
    let plan = report.plan;
    if let Some(pinned_set) = &plan.selection.pinned_set {
        return format!("Another version set could be applied, but {}.", pinned_set.refusal());
    }
    if !can_roll_forward(&plan.goal, &plan.observation) {
        return format!("To roll forward, {change}. The update is then applied in a window or with {APPLY_NOW}.");
    }
    let (_, when) = waiting_for_window(plan.gate.opens(), report);
    format!("The planned update is applied instead: {}. {when}", plan.target.describe_changes())
}

#[cfg(test)]
mod tests {
    use agent_api::termination_message::WorldRefused;
    use jiff::{SignedDuration, Timestamp};
    use scheduler::maintenance::Gate;
    use scheduler::observation::{DataVersion, PodPhase, PodView, Revision, StatefulSetView};
    use scheduler::rollout::{Step, WaitingOn, needs_admin};
    use serde_json::json;

    use super::super::stop_reason;
    use super::super::tests::Pass;
    use crate::server::act::outcome::StepOutcome;
    use crate::server::backups::world_state;
    use crate::server::constraints::manual_recovery::ManualRecovery;
    use crate::server::finish_rollout::continues_by_itself;
    use crate::server::plan::PassInput;
    use crate::server::plan::constraint::{Constraint as _, ConstraintInput};
    use crate::server::requested_restore::tests::after_failed_update::{STABLE, refused, rolling_out};

    const FAILED: Revision = Revision(0xb);

    /// A newer Minecraft version has failed, and another set that can open the worlds is planned.
    fn failed() -> Pass {
        let mut pass = Pass::new();
        pass.step = Step::Wait(WaitingOn::NoBackup);
        pass.plan.goal.revision = Revision(0xc);
        pass.plan.goal.world = DataVersion(5_000);
        let observation = &mut pass.plan.observation;
        observation.world.floor = DataVersion(4_900);
        observation.stateful_set =
            observation.stateful_set.map(|stateful_set| StatefulSetView { template: FAILED, ..stateful_set });
        observation.pod = observation.pod.map(|pod| PodView { revision: FAILED, ..pod });
        observation.facts.failed = vec![FAILED];
        pass
    }

    /// The stable revision is running again or still, and its init container refuses worlds of this format.
    fn refused_worlds(floor: u32) -> Pass {
        let mut pass = failed();
        pass.step = Step::Wait(WaitingOn::WorldRefused);
        let why = "a world cannot go back".to_owned();
        pass.observed =
            refused(&WorldRefused { why, floor: Some(floor), backups: None, refused_request: None }.to_string());
        let world = world_state(&pass.observed);
        let observation = &mut pass.plan.observation;
        (observation.world, observation.facts) = (world, pass.observed.facts.clone());
        observation.pod = observation.pod.map(|pod| PodView { revision: STABLE, phase: PodPhase::Refused, ..pod });
        observation.stateful_set = pass.observed.stateful_set_view;
        pass
    }

    fn message_of(pass: &Pass, reason: &str) -> String {
        let updating = pass.status().conditions.into_iter().find(|condition| condition.type_ == "Updating").unwrap();
        assert_eq!(updating.reason, reason);
        updating.message
    }

    #[test]
    fn world_refused_message_names_next_lock_or_choice() {
        let mut pass = refused_worlds(4_671);
        assert!(pass.plan.is_waiting_to_roll_forward(pass.step));
        let message = message_of(&pass, "WorldRefused");
        assert!(message.starts_with("a world cannot go back. The planned update is applied instead: "), "{message}");
        pass.plan.goal.world = DataVersion(4_556);
        assert!(!pass.plan.is_waiting_to_roll_forward(pass.step));
        let choose = "a world cannot go back. To roll forward, choose a Minecraft in the spec that can open the \
        worlds. The update is then applied in a window or with nightshift.dev/apply-now.";
        assert_eq!(message_of(&pass, "WorldRefused"), choose);
        // Refused for another reason: another Minecraft version does not help.
        let else_refused = refused_worlds(4_556);
        assert_eq!(message_of(&else_refused, "WorldRefused"), "a world cannot go back");
        assert!(!else_refused.plan.is_waiting_to_roll_forward(else_refused.step), "no update is announced");
    }

    #[test]
    fn stable_lock_refused_by_worlds_needs_manual_recovery() {
        let mut observed = refused_worlds(4_671).observed;
        assert!(!continues_by_itself(&observed, false));
        assert!(continues_by_itself(&observed, true), "a requested restore continues");
        observed.stateful_set_view =
            observed.stateful_set_view.map(|stateful_set| StatefulSetView { template: Revision(0xc), ..stateful_set });
        assert!(continues_by_itself(&observed, false), "another template is in rollout");
    }

    #[test]
    fn no_backup_message_names_next_lock_or_required_change() {
        let mut pass = failed();
        let message = message_of(&pass, "NoBackup");
        assert!(message.contains("The planned update is applied instead: "), "{message}");
        pass.plan.goal.world = DataVersion(1);
        let message = message_of(&pass, "NoBackup");
        let expected = "To roll forward, correct in the spec what failed. The update is then applied in a window or \
        with nightshift.dev/apply-now.";
        assert!(message.contains(expected), "{message}");
    }

    #[test]
    fn full_volume_message_gives_both_sizes_and_resumes() {
        let message_after = |played: bool| {
            json!({"good": 1, "playedSince": played, "free": 40_000_000_000_u64, "lastOfWorlds": {
                "id": "20261122T030000Z-aaaaaaaa", "startedAt": "2026-11-22T03:00:00Z", "completedAt": "2026-11-22T03:03:10Z",
                "trigger": "beforeUpdate", "contents": "worlds", "before": "b".repeat(64), "dataVersion": 4556,
                "bytes": 60_000_000_000_u64, "archiveBytes": 1,
            }})
        };
        let mut pass = failed();
        pass.observed = rolling_out(&message_after(false));
        let wanting = "The server's volume has no space to restore the backup `20261122T030000Z-aaaaaaaa` from right \
        before it: 60.1 GB are needed, 40.0 GB are free. Delete files that are not needed, or enlarge \
        `spec.storage.size`";
        let stays = message_of(&pass, "NoBackup");
        let ends = ". It is then rolled back automatically if no player has joined since. Otherwise: Action required \
        (docs";
        assert!(stays.contains(&format!("{wanting}{ends}")), "{stays}");
        assert!(stays.contains("The planned update is applied instead: "), "rolling forward remains possible: {stays}");
        pass.step = Step::Wait(WaitingOn::RollbackWouldLoseProgress);
        pass.observed = rolling_out(&message_after(true));
        let message = message_of(&pass, "RollbackWouldLoseProgress");
        assert!(
            message.contains(&format!(
                "Action required. First free space. {wanting}. To replace the worlds by the \
        backup "
            )),
            "{message}"
        );
    }

    fn has_to_wait(pass: &mut Pass) -> bool {
        let Pass { server, checked, observed, plan, before, .. } = pass;
        let pass = PassInput { server, checked, observed, before, now: Timestamp::UNIX_EPOCH };
        ManualRecovery.evaluate(plan, &ConstraintInput { pass, followed: None, is_automatic: true })
    }

    #[test]
    fn roll_forward_waits_while_backups_are_unreadable() {
        let mut pass = failed();
        assert!(needs_admin(&pass.plan.observation));
        pass.extend_agent_report(&json!({"backups": {"good": 0}}));
        assert!(!has_to_wait(&mut pass));
        pass.extend_agent_report(&json!({"backups": {"problem": "could not look through the copies"}}));
        assert!(has_to_wait(&mut pass));
        pass.plan.observation.facts.failed.clear();
        assert!(!has_to_wait(&mut pass), "the revision has not failed yet");
    }

    #[test]
    fn roll_forward_requeues_exactly_at_window() {
        let mut pass = failed();
        let now = Timestamp::UNIX_EPOCH;
        let opens = now + SignedDuration::from_secs(60);
        pass.plan.gate = Gate::Shut { opens: Some(opens) };
        assert_eq!(pass.plan.roll_forward_at(pass.step), Some(opens));
        pass.plan.goal.revision = FAILED;
        assert_eq!(pass.plan.roll_forward_at(pass.step), None, "a failed set is not tried again");
    }

    #[test]
    fn roll_forward_counts_stop_of_failed_lock() {
        let mut pass = Pass::new();
        pass.done = StepOutcome::Committed { agent_unreachable: false };
        assert_eq!(stop_reason(&pass.report(), &pass.before), None);
        pass.observed = rolling_out(&json!(null));
        assert_eq!(stop_reason(&pass.report(), &pass.before), Some("update"));
    }
}
