//! Pure. Reports the blockers of newer versions, and what holds a planned update, for the condition `UpdateBlocked`, `status.updateBlocked` and the Events.

use crds::PaperMCServerStatus;
use crds::paper_mc_server::{BlockedBy, UpdateBlocked};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use resolver::explanation::{Explanation, Warning};
use resolver::render::phrases;

use super::context::{self, MAX_MESSAGE_LENGTH};
use crate::error_chain::cut;
use crate::k8s::events::EventText;
use crate::server::plan::Plan;

/// Type of the condition that reports blockers of a newer set.
pub(super) const UPDATE_BLOCKED: &str = "UpdateBlocked";
/// Type of the condition that a slug leads to another project than the running one.
pub(super) const OTHER_PROJECT: &str = "OtherProject";
/// The reason if two files declare one plugin name.
pub(super) const TWO_JARS_ONE_NAME: &str = "DuplicatePluginName";
/// The reason if no lock satisfies the request.
const NO_SOLUTION: &str = "NoSolution";
/// The reason if a plugin blocks a newer Paper.
const HELD_BY_PLUGIN: &str = "HeldByPlugin";
/// The reason if nothing blocks a newer set.
const NOT_BLOCKED: &str = "NotBlocked";
/// The results of a solve. They remain while a later one is unknown. A hold by anything else does not: it is known in every pass.
const SOLVER_REASONS: [&str; 4] = [TWO_JARS_ONE_NAME, NO_SOLUTION, HELD_BY_PLUGIN, NOT_BLOCKED];
/// Separator between the reason why the result is unknown now, and the last known result.
const KNOWN_LAST: &str = " Last known: ";

/// Status, reason and message of the condition. While the result is unknown, the last known one remains. Its age counts from the first time
/// that it was reported, whatever could not be read in between. `hold` is why a planned update does not start: reason and message. It counts if
/// nothing else blocks a newer set.
pub(super) fn condition_parts(
    plan: &Plan,
    before: &[Condition],
    hold: Option<(&'static str, String)>,
) -> (Option<bool>, String, String) {
    let (condition_status, reason, message) = blockers_or_last_known(plan, before);
    match hold {
        Some((hold_reason, hold_message)) if condition_status != Some(true) => {
            let hold_message = hold_message.trim_end_matches('.');
            (Some(true), hold_reason.to_owned(), cut(&format!("{hold_message}. {message}"), MAX_MESSAGE_LENGTH))
        }
        Some(_) | None => (condition_status, reason, message),
    }
}

fn blockers_or_last_known(plan: &Plan, before: &[Condition]) -> (Option<bool>, String, String) {
    let explanation = context::explanation_message(&plan.selection.explanation);
    let previous = before.iter().find(|condition| condition.type_ == UPDATE_BLOCKED);
    let last_known = previous.filter(|previous| SOLVER_REASONS.contains(&previous.reason.as_str()));
    if let Some(previous) = last_known.filter(|_| is_unknown(&plan.selection.explanation)) {
        let message =
            format!("Unknown at the moment: {}{KNOWN_LAST}{}", cut(&explanation, 256), known_last(&previous.message));
        let is_blocked = previous.status == "True";
        return (Some(is_blocked), previous.reason.clone(), cut(&message, MAX_MESSAGE_LENGTH));
    }
    let (condition_status, reason) = reason(plan);
    (condition_status, reason.to_owned(), explanation)
}

/// The part of a condition's message that was known.
fn known_last(message: &str) -> &str {
    message.split_once(KNOWN_LAST).map_or(message, |(_, last_known)| last_known)
}

/// Whether the blockers are unknown now, because a page was not read or the search was abandoned.
fn is_unknown(explanation: &Explanation) -> bool {
    match explanation {
        Explanation::Unanswerable(_) => true,
        Explanation::Solved(_) | Explanation::GaveUp(_) => {
            explanation.deploy_blocker().is_none() && explanation.gave_up().is_some()
        }
        Explanation::Impossible(_) | Explanation::WhyNot(_) | Explanation::WhyNotRelease(_) => false,
    }
}

/// Status and reason of the current result.
fn reason(plan: &Plan) -> (Option<bool>, &'static str) {
    let explanation = &plan.selection.explanation;
    if explanation.deploy_blocker().is_some() {
        (Some(true), TWO_JARS_ONE_NAME)
    } else if is_unknown(explanation) {
        (None, "NotEvaluated")
    } else if plan.is_impossible() {
        (Some(true), NO_SOLUTION)
    } else if explanation.blocked_by().is_empty() {
        // A newer Paper may still wait for its delay, for the image's Java, or for a pin.
        (Some(false), NOT_BLOCKED)
    } else {
        (Some(true), HELD_BY_PLUGIN)
    }
}

/// All blockers of a newer Paper, with the Minecraft versions for which their newest release is listed. If a plugin name conflict blocks
/// the whole set, only that is reported.
pub(super) fn build_status(plan: &Plan, before: &PaperMCServerStatus) -> Option<UpdateBlocked> {
    let explanation = &plan.selection.explanation;
    if is_unknown(explanation) {
        return before.update_blocked.clone();
    }
    let is_blocked = reason(plan).0 == Some(true);
    is_blocked.then(|| UpdateBlocked {
        blocked: true,
        reason: Some(context::explanation_message(explanation)),
        blocked_by: if explanation.deploy_blocker().is_some() { Vec::new() } else { blockers(explanation) },
    })
}

/// The plugins that block a newer Paper, for a printer column.
pub(super) fn blocked_by(plan: &Plan, before: &PaperMCServerStatus) -> Option<String> {
    if is_unknown(&plan.selection.explanation) {
        return before.held_by.clone();
    }
    let names = plan.selection.explanation.blocked_by().join(", ");
    (!names.is_empty()).then(|| cut(&names, 1_024))
}

fn blockers(explanation: &Explanation) -> Vec<BlockedBy> {
    let Explanation::Solved(solved) = explanation else { return Vec::new() };
    let Some(newer) = solved.newer_paper.first() else { return Vec::new() };
    let blockers = newer.blocked_by.iter().map(|blocker| BlockedBy {
        plugin: cut(&blocker.name, 64),
        version: blocker.newest.as_ref().map(|newest| cut(&newest.version, 64)).unwrap_or_default(),
        supported_versions: blocker
            .newest
            .iter()
            .flat_map(|newest| newest.up_to.iter().map(ToString::to_string))
            .collect(),
    });
    // The maximum of the CRD schema.
    blockers.take(10).collect()
}

/// Files that declare one plugin name. The server loads only one of them.
pub(super) fn name_conflicts(explanation: &Explanation) -> Option<String> {
    let Explanation::Solved(solved) = explanation else { return None };
    let lines: Vec<String> = (solved.warnings.iter())
        .filter_map(|warning| {
            let Warning::SharedName { name, files, stops: _ } = warning else { return None };
            Some(format!("{} are both {name}: remove one", files.join(" and ")))
        })
        .collect();
    (!lines.is_empty()).then(|| lines.join("; "))
}

/// Running plugins whose slugs lead to other projects now. `None` if the result is unknown. Empty if there are none.
pub(super) fn other_projects(explanation: &Explanation) -> Option<String> {
    let Explanation::Solved(solved) = explanation else { return None };
    let lines: Vec<String> = (solved.warnings.iter())
        .filter_map(|warning| {
            let Warning::OtherProject { plugin, version, project, runs, is } = warning else { return None };
            Some(phrases::other_project(plugin, version, (project, runs, is)))
        })
        .collect();
    Some(lines.join(" "))
}

/// The Event about a blocker that needs an action by a user or a third party. It is repeated for another blocker. The last status tells
/// which one was reported.
pub(super) fn event(plan: &Plan, before: &PaperMCServerStatus) -> Option<EventText> {
    let explanation = &plan.selection.explanation;
    let text = context::explanation_message(explanation);
    let message = before.conditions.iter().find(|condition| condition.type_ == UPDATE_BLOCKED);
    if plan.is_impossible() {
        return Some(EventText { reason: NO_SOLUTION, warning: true, text });
    }
    if explanation.deploy_blocker().is_some() {
        let is_news =
            message.is_none_or(|message| message.reason != TWO_JARS_ONE_NAME || known_last(&message.message) != text);
        return is_news.then_some(EventText { reason: TWO_JARS_ONE_NAME, warning: true, text });
    }
    // The suggested action and the running build may change although the blocker is the same.
    let held = explanation.blocked_paper_sentence()?;
    let is_news = message.is_none_or(|message| !message.message.contains(&held));
    is_news.then_some(EventText { reason: "UpdateBlocked", warning: false, text })
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use resolver::{BudgetExceeded, Limit};
    use serde_json::{Value, json};

    use super::*;
    use crate::server::report::notifications::NotificationInput;
    use crate::server::report::tests::Pass;
    use crds::paper_mc_server::NotificationEvent;

    /// Paper 1.21.10-130, with exactly these newer versions.
    fn solved(newer: &Value, warnings: &Value) -> Explanation {
        serde_json::from_value(json!({
            "answer": "solved", "server": "games/lobby", "image": {"java": 21, "choice": "newest"}, "plugins": [],
            "paper": {"minecraft": "1.21.10", "build": 130, "published": "2025-12-01T00:00:00Z", "runsNow": true},
            "newerPaper": newer, "warnings": warnings,
        }))
        .unwrap()
    }

    /// Paper 1.21.11 with its blockers.
    fn newer(more: &Value) -> Value {
        let mut newer = json!({
            "minecraft": "1.21.11", "since": "2025-12-10T00:00:00Z", "blockedBy": [], "ready": 0, "oneWay": true,
        });
        newer.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([newer])
    }

    /// Blocked by these plugins.
    fn blocked(names: &[&str]) -> Explanation {
        let blocker = |name: &&str| {
            let newest = json!({"version": "16.18.5", "published": "2025-10-06T00:00:00Z", "upTo": "1.21.10"});
            let key = json!({"source": "modrinth", "project": name});
            json!({"name": name, "key": key, "newest": newest, "readAt": "2026-11-22T03:00:00Z"})
        };
        solved(&newer(&json!({"blockedBy": names.iter().map(blocker).collect::<Vec<_>>()})), &json!([]))
    }

    fn pinned() -> Explanation {
        solved(&newer(&json!({"pinned": {"version": "1.21.10"}})), &json!([]))
    }

    fn not_evaluated() -> Explanation {
        solved(&newer(&json!({"gaveUp": {"steps": 9, "limit": "steps"}})), &json!([]))
    }

    fn nothing_newer() -> Explanation {
        solved(&json!([]), &json!([]))
    }

    fn stopped() -> Explanation {
        let conflicts = json!([{"warning": "sharedName", "name": "Rules", "files": ["a.jar", "b.jar"], "stops": true}]);
        solved(&newer(&json!({"pinned": {"version": "1.21.10"}})), &conflicts)
    }

    /// Status, reason and message of the condition.
    fn condition(status: &PaperMCServerStatus) -> (&str, &str, &str) {
        let found = status.conditions.iter().find(|condition| condition.type_ == UPDATE_BLOCKED).unwrap();
        (&found.status, &found.reason, &found.message)
    }

    #[test]
    fn update_blocked_names_plugin_until_it_clears() {
        let mut pass = Pass::new();
        pass.plan.selection.explanation = blocked(&["GriefPrevention"]);
        let status = pass.status();
        let (condition_status, reason, message) = condition(&status);
        assert_eq!((condition_status, reason), ("True", "HeldByPlugin"));
        assert!(
            message.contains("Paper 1.21.11, out since 10 December 2025, is blocked by GriefPrevention (listed up to"),
            "{message}"
        );
        let blocked = status.update_blocked.as_ref().unwrap();
        assert_eq!((blocked.blocked, blocked.reason.as_deref()), (true, Some(message)));
        let by: Vec<_> = blocked.blocked_by.iter().map(|by| (by.plugin.as_str(), by.version.as_str())).collect();
        assert_eq!((by, status.held_by.as_deref()), (vec![("GriefPrevention", "16.18.5")], Some("GriefPrevention")));

        let mut pass = pass.next();
        pass.plan.selection.explanation = nothing_newer();
        let status = pass.status();
        let (condition_status, reason, message) = condition(&status);
        assert_eq!((condition_status, reason), ("False", "NotBlocked"));
        assert!(message.ends_with("Everything is up to date."), "{message}");
        assert_eq!((status.update_blocked, status.held_by), (None, None));
    }

    /// A plugin was not read.
    fn unanswerable() -> Explanation {
        let fetch = json!([{"source": "modrinth", "project": "shop"}]);
        serde_json::from_value(json!({"answer": "unanswerable", "server": "games/lobby", "fetch": fetch})).unwrap()
    }

    /// The next pass, with a result that has lasted for a long time.
    fn after_long_time(pass: Pass) -> (Pass, Timestamp) {
        let mut pass = pass.next();
        let earlier = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1);
        let blocked = pass.before.conditions.iter_mut().find(|condition| condition.type_ == UPDATE_BLOCKED).unwrap();
        blocked.last_transition_time.0 = earlier;
        (pass, earlier)
    }

    fn since(status: &PaperMCServerStatus) -> Timestamp {
        status.conditions.iter().find(|condition| condition.type_ == UPDATE_BLOCKED).unwrap().last_transition_time.0
    }

    #[test]
    fn update_blocked_stands_while_cause_is_unknown() {
        let gave_up = || Explanation::GaveUp(BudgetExceeded { steps: 9, limit: Limit::Steps, clashing: Vec::new() });
        for (result, wanted) in [
            (blocked(&["GriefPrevention"]), ("True", "HeldByPlugin")),
            (stopped(), ("True", TWO_JARS_ONE_NAME)),
            (nothing_newer(), ("False", "NotBlocked")),
        ] {
            let mut pass = Pass::new();
            pass.plan.selection.explanation = result.clone();
            let (mut pass, earlier) = after_long_time(pass);
            let first = pass.before.clone();
            let first_message = condition(&first).2.to_owned();
            for unknown in [unanswerable(), gave_up(), not_evaluated()] {
                pass.plan.selection.explanation = unknown;
                let status = pass.status();
                let (condition_status, reason, message) = condition(&status);
                assert_eq!(((condition_status, reason), since(&status)), (wanted, earlier));
                assert!(message.starts_with("Unknown at the moment: "), "{message}");
                assert!(message.ends_with(&format!("{KNOWN_LAST}{first_message}")), "{message}");
                assert_eq!(message.matches(KNOWN_LAST).count(), 1, "{message}");
                assert_eq!((&status.update_blocked, &status.held_by), (&first.update_blocked, &first.held_by));
                let reported = NotificationInput::new(&pass.checked, &pass.report(), &pass.before, &status)
                    .lasting
                    .remove(&NotificationEvent::Blocked);
                assert_eq!(
                    reported,
                    (condition_status == "True").then(|| (earlier, first_message.clone())),
                    "the known blockers stay reported"
                );
                pass = pass.next();
            }
            pass.plan.selection.explanation = result;
            let status = pass.status();
            assert_eq!((condition(&status).2, since(&status)), (&*first_message, earlier));
            for reason in ["UpdateBlocked", TWO_JARS_ONE_NAME] {
                assert_eq!(pass.event_texts(reason), Vec::<String>::new(), "a known blocker causes no Event");
            }
        }
    }

    #[test]
    fn other_project_is_condition_until_result_has_none() {
        let other = json!([{
            "warning": "otherProject", "plugin": "Claims", "version": "1.2",
            "project": {"source": "modrinth", "project": "claims"}, "runs": "AAAA", "is": "BBBB",
        }]);
        let found =
            |pass: &Pass| pass.status().conditions.into_iter().find(|condition| condition.type_ == OTHER_PROJECT);
        let mut pass = Pass::new();
        pass.plan.selection.explanation = solved(&newer(&json!({"pinned": {"version": "1.21.10"}})), &other);
        let first = found(&pass).unwrap();
        assert_eq!((first.status.as_str(), first.reason.as_str()), ("True", "SlugLeadsElsewhere"));
        assert_eq!(
            first.message,
            "Claims stays at 1.2, which runs: modrinth/claims means another project now. Set `spec.source.project` of \
             its Plugin to `AAAA` to follow the running project, or to `BBBB` to accept the other one."
        );
        let mut pass = pass.next();
        pass.plan.selection.explanation = unanswerable();
        assert_eq!(found(&pass).map(|condition| condition.message), Some(first.message));
        let mut pass = pass.next();
        pass.plan.selection.explanation = nothing_newer();
        assert_eq!(found(&pass), None);
    }

    #[test]
    fn update_blocked_is_unknown_if_never_evaluated() {
        let mut pass = Pass::new();
        pass.plan.selection.explanation = unanswerable();
        let status = pass.status();
        assert_eq!((condition(&status).0, condition(&status).1), ("Unknown", "NotEvaluated"));
        assert_eq!((status.update_blocked, status.held_by), (None, None));
    }

    #[test]
    fn update_blocked_separates_no_blocker_from_unknown() {
        let mut pass = Pass::new();
        pass.plan.selection.explanation = pinned();
        let status = pass.status();
        let (condition_status, reason, message) = condition(&status);
        assert_eq!((condition_status, reason), ("False", "NotBlocked"));
        assert!(message.contains("is excluded by your pin"), "{message}");
        assert_eq!(status.update_blocked, None);
        pass.plan.selection.explanation = not_evaluated();
        let status = pass.status();
        let (condition_status, reason, message) = condition(&status);
        assert_eq!((condition_status, reason), ("Unknown", "NotEvaluated"));
        assert!(message.contains("its blockers were not determined within 9 steps"), "{message}");
        assert_eq!(status.update_blocked, None);
        // The solve itself was abandoned as well.
        let gave_up = BudgetExceeded { steps: 9, limit: Limit::Steps, clashing: Vec::new() };
        (pass.plan.selection.explanation, pass.plan.selection.solved) = (Explanation::GaveUp(gave_up), false);
        assert_eq!(condition(&pass.status()).1, "NotEvaluated");
        (pass.plan.selection.explanation, pass.plan.selection.solved) = (nothing_newer(), true);
        assert_eq!(condition(&pass.status()).1, "NotBlocked");
    }

    #[test]
    fn update_blocked_prefers_duplicate_plugin_name() {
        let mut pass = Pass::new();
        pass.plan.selection.explanation = stopped();
        let status = pass.status();
        let (condition_status, reason, message) = condition(&status);
        assert_eq!((condition_status, reason), ("True", TWO_JARS_ONE_NAME));
        assert!(
            message.starts_with("a.jar and b.jar share the plugin name Rules, and a server loads only one"),
            "{message}"
        );
        let blocked = status.update_blocked.as_ref().unwrap();
        assert_eq!((blocked.blocked, blocked.reason.as_deref()), (true, Some(message)));
        assert_eq!(blocked.blocked_by, []);
        assert_eq!(pass.event_texts(TWO_JARS_ONE_NAME), [message]);
        let mut pass = pass.next();
        assert_eq!(pass.event_texts(TWO_JARS_ONE_NAME), Vec::<String>::new(), "the Event is sent once");
        pass.plan.selection.explanation = nothing_newer();
        let status = pass.status();
        assert_eq!((condition(&status).1, status.update_blocked.as_ref()), ("NotBlocked", None));
    }

    #[test]
    fn update_blocked_event_is_sent_once_per_reason() {
        let mut pass = Pass::new();
        pass.plan.selection.explanation = pinned();
        let message = pass.event_texts("UpdateBlocked").pop().unwrap();
        assert!(message.contains("Paper 1.21.11, out since 10 December 2025, is excluded by your pin."), "{message}");
        let mut pass = pass.next();
        assert_eq!(pass.event_texts("UpdateBlocked"), Vec::<String>::new());
        // Another build runs, but the blocker is the same.
        let Explanation::Solved(solved) = &mut pass.plan.selection.explanation else { panic!("not solved") };
        solved.paper.build = 131;
        assert_eq!(pass.event_texts("UpdateBlocked"), Vec::<String>::new());
        pass.plan.selection.explanation = blocked(&["GriefPrevention"]);
        assert_eq!(pass.event_texts("UpdateBlocked").len(), 1, "another blocker is reported");
        let mut pass = pass.next();
        pass.plan.selection.explanation = nothing_newer();
        assert_eq!(pass.event_texts("UpdateBlocked"), Vec::<String>::new());
        let mut pass = pass.next();
        pass.plan.selection.explanation = blocked(&["GriefPrevention"]);
        assert_eq!(pass.event_texts("UpdateBlocked").len(), 1, "a returning blocker is reported again");
    }

    #[test]
    fn update_blocked_event_is_skipped_for_self_resolving_delay() {
        let mut pass = Pass::new();
        let ripens = json!({"unusable": {"why": "delayed", "delay": "PT168H", "eligibleAt": "2026-11-30T00:00:00Z"}});
        for explanation in [solved(&newer(&ripens), &json!([])), not_evaluated(), nothing_newer()] {
            pass.plan.selection.explanation = explanation;
            assert_eq!(pass.event_texts("UpdateBlocked"), Vec::<String>::new());
        }
    }

    #[test]
    fn update_blocked_since_changes_only_with_status() {
        let mut pass = Pass::new();
        pass.plan.selection.explanation = blocked(&["GriefPrevention"]);
        let (mut pass, earlier) = after_long_time(pass);
        for explanation in [blocked(&["GriefPrevention", "Shop"]), stopped()] {
            pass.plan.selection.explanation = explanation;
            assert_eq!(since(&pass.status()), earlier);
        }
        pass.plan.selection.explanation = nothing_newer();
        assert_eq!(since(&pass.status()), pass.report().pass.now);
    }
}
