//! Pure. Describes the manual recovery after a newer Minecraft version has rewritten the worlds and then failed or was removed: rolling
//! back and rolling forward.

use scheduler::rollout::{is_left_to_a_person, is_way_forward};

use super::conditions::{in_its_place, waiting_for_window};
use super::{LONGEST_MESSAGE, PassReport, backup};
use crate::error_chain::cut;
use crate::k8s::labels::APPLY_NOW;
use crate::server::backups::{InsufficientSpace, cold_copy, no_room};
use crate::server::changes;
use crate::server::check::CheckedServer;
use crate::server::requested_restore;

/// Suggested change after a failed set.
const WHAT_FAILED: &str = "change in the spec what failed";

/// Suggested change if the Minecraft version of the stable set is older than the worlds.
const TOO_OLD: &str = "choose in the spec a Minecraft that can open the worlds";

pub(super) fn no_backup(checked: &CheckedServer, report: &PassReport<'_>) -> String {
    let no_room = no_room(report.seen);
    let copy = match (backup::unreadable(report), &no_room) {
        (Some(why), _) => format!(
            "whether there is a copy from right before it is not known, because the copies cannot be read ({}); they are looked for \
             again by themselves;",
            cut(why, 256)
        ),
        (None, Some(no_room)) => {
            format!("{}: it goes back by itself then, if nobody has played; else", room_in_words(no_room))
        }
        (None, None) => "there is no copy from right before it;".to_owned(),
    };
    let back = requested_restore::newest(report.seen).map_or_else(String::new, |copy| {
        let first = if no_room.is_some() { "With room for it: " } else { "" };
        format!("{first}{}. ", in_its_place(checked, &copy))
    });
    let text = format!(
        "the new version has rewritten the world, and {copy} a person decides (docs/guides/troubleshooting.md). {} {back}{}",
        forward(checked, report, WHAT_FAILED),
        report.plan.proof.problem
    );
    cut(&text, LONGEST_MESSAGE)
}

pub(super) fn undo_would_lose(checked: &CheckedServer, report: &PassReport<'_>) -> String {
    let copy = cold_copy(report.seen).map(|copy| copy.id.as_str()).unwrap_or_default();
    let room = no_room(report.seen)
        .map_or_else(String::new, |no_room| format!("First make room: {}. ", room_in_words(&no_room)));
    let text = format!(
        "the new version has rewritten the worlds, and somebody may have played since, so a person decides. {room}{}, and what ran before comes \
         back. {} {}",
        in_its_place(checked, copy),
        forward(checked, report, WHAT_FAILED),
        report.plan.proof.problem
    );
    cut(&text, LONGEST_MESSAGE)
}

/// The missing space and how to get it. One number is rounded up and the other one down, so that they never appear equal.
fn room_in_words(no_room: &InsufficientSpace<'_>) -> String {
    const TENTH: u64 = 100_000_000;
    let InsufficientSpace { copy, needed, free } = no_room;
    let gigabytes = |tenths: u64| format!("{}.{} GB", tenths / 10, tenths % 10);
    format!(
        "there is no room on the server's volume to put the copy `{}` from right before it back: {} have to be free, and {} are. Delete there \
         what is not needed, or enlarge `spec.storage.size`",
        copy.id,
        gigabytes(needed.div_ceil(TENTH)),
        gigabytes(free / TENTH)
    )
}

/// The roll-forward from worlds that the stable set cannot open, if that prevents its start.
pub(super) fn past_refusal(checked: &CheckedServer, report: &PassReport<'_>) -> Option<String> {
    is_left_to_a_person(&report.plan.seen).then(|| forward(checked, report, TOO_OLD))
}

/// The update that starts automatically, or the change (`what`) that leads to one.
fn forward(checked: &CheckedServer, report: &PassReport<'_>, what: &str) -> String {
    let plan = report.plan;
    if let Some(undo) = &plan.undo {
        return format!("Another set would come forward, but {}.", undo.refusal());
    }
    if !is_way_forward(&plan.goal, &plan.seen) {
        return format!("Forward: {what}, and that comes instead, in a window or with {APPLY_NOW}.");
    }
    let (_, _, when) = waiting_for_window(plan.gate.opens(), checked, report);
    format!("What is planned now comes instead, {}: {when}.", changes::in_words(&plan.changes))
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use scheduler::maintenance::Gate;
    use scheduler::observation::{DataVersion, PodPhase, PodView, Revision, StatefulSetView};
    use scheduler::protocol::last_words::WorldRefused;
    use scheduler::rollout::{Step, WaitingOn, is_left_to_a_person};
    use serde_json::json;

    use super::super::counted_stop;
    use super::super::tests::Pass;
    use crate::requeue::Outcome;
    use crate::server::act::StepOutcome;
    use crate::server::backups::look_at_world;
    use crate::server::finish_rollout::goes_on;
    use crate::server::requested_restore::tests::way_back::{SETTLED, on_trial, refused};

    const FAILED: Revision = Revision(0xb);

    /// A newer Minecraft version has failed, and another set that can open the worlds is planned.
    fn stuck() -> Pass {
        let mut pass = Pass::new();
        pass.step = Step::Wait(WaitingOn::NoBackup);
        pass.plan.goal.revision = Revision(0xc);
        pass.plan.goal.world = DataVersion(5_000);
        let seen = &mut pass.plan.seen;
        seen.world.floor = DataVersion(4_900);
        seen.set = seen.set.map(|set| StatefulSetView { template: FAILED, ..set });
        seen.pod = seen.pod.map(|pod| PodView { revision: FAILED, ..pod });
        seen.facts.failed = vec![FAILED];
        pass
    }

    /// The stable revision is running again or still, and its init container refuses worlds of this format.
    fn too_old(floor: u32) -> Pass {
        let mut pass = stuck();
        pass.step = Step::Wait(WaitingOn::WorldRefused);
        let why = "a world cannot go back".to_owned();
        pass.seen = refused(&WorldRefused { why, floor: Some(floor), copies: None, not_obeyed: None }.to_string());
        let world = look_at_world(&pass.seen);
        let seen = &mut pass.plan.seen;
        (seen.world, seen.facts) = (world, pass.seen.facts.clone());
        seen.pod = seen.pod.map(|pod| PodView { revision: SETTLED, life: PodPhase::Refused, ..pod });
        seen.set = pass.seen.shape;
        pass
    }

    fn says(pass: &Pass, reason: &str) -> String {
        let updating = pass.status().conditions.into_iter().find(|condition| condition.type_ == "Updating").unwrap();
        assert_eq!(updating.reason, reason);
        updating.message
    }

    #[test]
    fn world_refused_message_names_next_lock_or_choice() {
        let mut pass = too_old(4_671);
        assert!(pass.plan.waits_to_go_forward(pass.step));
        let comes = says(&pass, "WorldRefused");
        assert!(comes.starts_with("a world cannot go back. What is planned now comes instead, "), "{comes}");
        pass.plan.goal.world = DataVersion(4_556);
        assert!(!pass.plan.waits_to_go_forward(pass.step));
        let choose = "a world cannot go back. Forward: choose in the spec a Minecraft that can open the worlds, and that comes instead, in a window \
                      or with nightshift.dev/apply-now.";
        assert_eq!(says(&pass, "WorldRefused"), choose);
        // Refused for another reason: another Minecraft version does not help.
        let else_refused = too_old(4_556);
        assert_eq!(says(&else_refused, "WorldRefused"), "a world cannot go back");
        assert!(!else_refused.plan.waits_to_go_forward(else_refused.step), "and none is told of");
    }

    #[test]
    fn stable_lock_refused_by_worlds_needs_manual_recovery() {
        let mut seen = too_old(4_671).seen;
        assert!(!goes_on(&seen, false));
        assert!(goes_on(&seen, true), "the way back with the copy that was named goes on");
        seen.shape = seen.shape.map(|set| StatefulSetView { template: Revision(0xc), ..set });
        assert!(goes_on(&seen, false), "another template stands there, and that is under way");
    }

    #[test]
    fn no_backup_message_names_next_lock_or_required_change() {
        let mut pass = stuck();
        let comes = says(&pass, "NoBackup");
        assert!(comes.contains("What is planned now comes instead, "), "{comes}");
        pass.plan.goal.world = DataVersion(1);
        let stuck = says(&pass, "NoBackup");
        let forward = "Forward: change in the spec what failed, and that comes instead, in a window or with nightshift.dev/apply-now.";
        assert!(stuck.contains(forward), "{stuck}");
    }

    #[test]
    fn full_volume_message_gives_both_sizes_and_resumes() {
        let said = |played: bool| {
            json!({"good": 1, "playedSince": played, "free": 40_000_000_000_u64, "lastOfWorlds": {
                "id": "20261122T030000Z-aaaaaaaa", "startedAt": "2026-11-22T03:00:00Z", "completedAt": "2026-11-22T03:03:10Z",
                "trigger": "beforeUpdate", "contents": "worlds", "before": "b".repeat(64), "dataVersion": 4556,
                "bytes": 60_000_000_000_u64, "archiveBytes": 1,
            }})
        };
        let mut pass = stuck();
        pass.seen = on_trial(&said(false));
        let wanting = "there is no room on the server's volume to put the copy `20261122T030000Z-aaaaaaaa` from right before it back: \
                       60.1 GB have to be free, and 40.0 GB are. Delete there what is not needed, or enlarge `spec.storage.size`";
        let stays = says(&pass, "NoBackup");
        let ends = ": it goes back by itself then, if nobody has played; else a person decides (docs";
        assert!(stays.contains(&format!("and {wanting}{ends}")), "{stays}");
        assert!(stays.contains("What is planned now comes instead, "), "the way forward is open: {stays}");
        pass.step = Step::Wait(WaitingOn::RollbackWouldLoseProgress);
        pass.seen = on_trial(&said(true));
        let undo = says(&pass, "RollbackWouldLoseProgress");
        assert!(undo.contains(&format!("so a person decides. First make room: {wanting}. The copy ")), "{undo}");
    }

    #[test]
    fn roll_forward_waits_while_backups_are_unreadable() {
        let mut pass = stuck();
        assert!(is_left_to_a_person(&pass.plan.seen));
        pass.agent_says(&json!({"backups": {"good": 0}}));
        assert!(!pass.plan.may_go_back(&pass.seen));
        pass.agent_says(&json!({"backups": {"problem": "could not look through the copies"}}));
        assert!(pass.plan.may_go_back(&pass.seen));
        pass.plan.seen.facts.failed.clear();
        assert!(!pass.plan.may_go_back(&pass.seen), "it is still being proven");
    }

    #[test]
    fn roll_forward_requeues_exactly_at_window() {
        let mut pass = stuck();
        let now = Timestamp::UNIX_EPOCH;
        let opens = now + SignedDuration::from_secs(60);
        pass.plan.gate = Gate::Shut { opens: Some(opens) };
        let idle = || Outcome::Waiting { until: None };
        let next = |pass: &Pass| pass.plan.in_time_to_go_forward(idle(), pass.step, now);
        assert_eq!(next(&pass), Outcome::Waiting { until: Some(opens) });
        pass.plan.goal.revision = FAILED;
        assert_eq!(next(&pass), idle(), "nothing would come");
    }

    #[test]
    fn roll_forward_counts_stop_of_failed_lock() {
        let mut pass = Pass::new();
        pass.done = StepOutcome::Committed { unasked: false };
        assert_eq!(counted_stop(&pass.report(), &pass.before), None);
        pass.seen = on_trial(&json!(null));
        assert_eq!(counted_stop(&pass.report(), &pass.before), Some("update"));
    }
}
