//! Pure. What a person reads where a newer Minecraft has rewritten the worlds and failed: the ways back, and the way forward.

use scheduler::gate::Gate;
use scheduler::rollout::is_way_forward;

use super::conditions::{in_its_place, waiting_for_window};
use super::{LONGEST_MESSAGE, Report, backup};
use crate::chain::cut;
use crate::k8s::labels::APPLY_NOW;
use crate::server::change;
use crate::server::check::CheckedServer;
use crate::server::copies::cold_copy;
use crate::server::restore;

pub(super) fn no_backup(checked: &CheckedServer, report: &Report<'_>) -> String {
    let copy = match backup::unreadable(report) {
        Some(why) => format!(
            "whether there is a copy from right before it is not known, because the copies cannot be read ({}); they are looked for \
             again by themselves",
            cut(why, 256)
        ),
        None => "there is no copy from right before it".to_owned(),
    };
    let back =
        restore::newest(report.seen).map_or_else(String::new, |copy| format!("{}. ", in_its_place(checked, &copy)));
    let text = format!(
        "the new version has rewritten the world, and {copy}; a person decides (docs/guides/troubleshooting.md). {} {back}{}",
        forward(checked, report),
        report.plan.proof.problem
    );
    cut(&text, LONGEST_MESSAGE)
}

pub(super) fn undo_would_lose(checked: &CheckedServer, report: &Report<'_>) -> String {
    let copy = cold_copy(report.seen).map(|copy| copy.id.as_str()).unwrap_or_default();
    let text = format!(
        "the new version has rewritten the worlds, and somebody may have played since, so a person decides. {}, and what ran before comes back. \
         {} {}",
        in_its_place(checked, copy),
        forward(checked, report),
        report.plan.proof.problem
    );
    cut(&text, LONGEST_MESSAGE)
}

/// What comes by itself, or what to change so that something does.
fn forward(checked: &CheckedServer, report: &Report<'_>) -> String {
    let plan = report.plan;
    if !is_way_forward(&plan.goal, &plan.seen) {
        return format!(
            "Forward: change in the spec what failed, and that comes instead, in a window or with {APPLY_NOW}."
        );
    }
    let opens = match plan.gate {
        Gate::Open { .. } => None,
        Gate::Ending { opens, .. } | Gate::Shut { opens } => opens,
    };
    let (_, _, when) = waiting_for_window(opens, checked, report);
    format!("What is planned now comes instead, {}: {when}.", change::in_words(&plan.changes))
}

#[cfg(test)]
mod tests {
    use scheduler::rollout::{Step, WaitingOn};
    use scheduler::seen::{DataVersion, Revision};

    use super::super::tests::Pass;

    /// What is said of a set on trial that failed, with another goal.
    fn says(is_forward: bool) -> String {
        let mut pass = Pass::new();
        pass.step = Step::Wait(WaitingOn::NoBackup);
        pass.plan.goal.revision = Revision(0xc);
        pass.plan.goal.world = DataVersion(if is_forward { 5_000 } else { 1 });
        pass.plan.seen.world.floor = DataVersion(4_900);
        let status = pass.status();
        let updating = status.conditions.into_iter().find(|condition| condition.type_ == "Updating").unwrap();
        assert_eq!(updating.reason, "NoBackup");
        updating.message
    }

    #[test]
    fn a_set_that_can_open_the_worlds_is_said_to_come_and_else_what_to_change() {
        let comes = says(true);
        assert!(comes.contains("What is planned now comes instead, "), "{comes}");
        let stuck = says(false);
        let forward = "Forward: change in the spec what failed, and that comes instead, in a window or with nightshift.dev/apply-now.";
        assert!(stuck.contains(forward), "{stuck}");
    }
}
