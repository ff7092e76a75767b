//! Pure. Reports the blockers of newer versions, for the condition `UpdateBlocked`, `status.updateBlocked` and the Events.

use crds::PaperMCServerStatus;
use crds::paper_mc_server::{BlockedBy, UpdateBlocked};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use resolver::explain::{Explanation, Warning};

use super::LONGEST_MESSAGE;
use crate::error_chain::cut;
use crate::k8s::events::EventText;
use crate::server::plan::Plan;

/// Type of the condition that reports blockers of a newer set.
pub(super) const UPDATE_BLOCKED: &str = "UpdateBlocked";
/// The reason if two files declare one plugin name.
pub(super) const TWO_FILES_ONE_NAME: &str = "TwoJarsOneName";
/// The reason if no lock satisfies the request.
const NO_SOLUTION: &str = "NoSolution";
/// Separator between the reason why the result is unknown now, and the last known result.
const KNOWN_LAST: &str = " What was known last: ";

/// Status, reason and message of the condition. While the result is unknown, the last known one remains. Its age counts from the first time
/// that it was reported, whatever could not be read in between.
pub(super) fn in_words(plan: &Plan, before: &[Condition]) -> (Option<bool>, String, String) {
    let words = super::in_words(&plan.explanation);
    let said = before.iter().find(|condition| condition.type_ == UPDATE_BLOCKED);
    let known = said.and_then(|said| match said.status.as_str() {
        "True" => Some((true, said)),
        "False" => Some((false, said)),
        _ => None,
    });
    if let Some((holds, said)) = known.filter(|_| is_unknown(&plan.explanation)) {
        let message = format!("not known now: {}{KNOWN_LAST}{}", cut(&words, 256), known_last(&said.message));
        return (Some(holds), said.reason.clone(), cut(&message, LONGEST_MESSAGE));
    }
    let (holds, reason) = reason(plan);
    (holds, reason.to_owned(), words)
}

/// The part of a condition's message that was known.
fn known_last(message: &str) -> &str {
    message.split_once(KNOWN_LAST).map_or(message, |(_, known)| known)
}

/// Whether the blockers are unknown now, because a page was not read or the search was abandoned.
fn is_unknown(explanation: &Explanation) -> bool {
    match explanation {
        Explanation::Unanswerable(_) => true,
        Explanation::Solved(_) | Explanation::GaveUp(_) => {
            explanation.stopped_by().is_none() && explanation.gave_up().is_some()
        }
        Explanation::Impossible(_) | Explanation::WhyNot(_) | Explanation::WhyNotRelease(_) => false,
    }
}

/// Status and reason of the current result.
fn reason(plan: &Plan) -> (Option<bool>, &'static str) {
    let explanation = &plan.explanation;
    if explanation.stopped_by().is_some() {
        (Some(true), TWO_FILES_ONE_NAME)
    } else if is_unknown(explanation) {
        (None, "NotEvaluated")
    } else if plan.is_impossible() {
        (Some(true), NO_SOLUTION)
    } else if explanation.held_by().is_empty() {
        // A newer Paper may still wait for its delay, for the image's Java, or for a pin.
        (Some(false), "NotBlocked")
    } else {
        (Some(true), "HeldByPlugin")
    }
}

/// All blockers of a newer Paper, with the Minecraft versions for which their newest release is listed. If a plugin name conflict blocks
/// the whole set, only that is reported.
pub(super) fn build_status(plan: &Plan, before: &PaperMCServerStatus) -> Option<UpdateBlocked> {
    let explanation = &plan.explanation;
    if is_unknown(explanation) {
        return before.update_blocked.clone();
    }
    let is_blocked = reason(plan).0 == Some(true);
    is_blocked.then(|| UpdateBlocked {
        blocked: true,
        reason: Some(super::in_words(explanation)),
        blocked_by: if explanation.stopped_by().is_some() { Vec::new() } else { holders(explanation) },
    })
}

/// The plugins that block a newer Paper, for a printer column.
pub(super) fn held_by(plan: &Plan, before: &PaperMCServerStatus) -> Option<String> {
    if is_unknown(&plan.explanation) {
        return before.held_by.clone();
    }
    let names = plan.explanation.held_by().join(", ");
    (!names.is_empty()).then(|| cut(&names, 1_024))
}

fn holders(explanation: &Explanation) -> Vec<BlockedBy> {
    let Explanation::Solved(solved) = explanation else { return Vec::new() };
    let Some(newer) = solved.newer_paper.first() else { return Vec::new() };
    let holders = newer.held_by.iter().map(|holder| BlockedBy {
        plugin: cut(&holder.name, 64),
        version: holder.newest.as_ref().map(|newest| cut(&newest.version, 64)).unwrap_or_default(),
        supported_versions: holder
            .newest
            .iter()
            .flat_map(|newest| newest.up_to.iter().map(ToString::to_string))
            .collect(),
    });
    // The maximum of the CRD schema.
    holders.take(10).collect()
}

/// Files that declare one plugin name. The server loads only one of them.
pub(super) fn shared_names(explanation: &Explanation) -> Option<String> {
    let Explanation::Solved(solved) = explanation else { return None };
    let lines: Vec<String> = (solved.warnings.iter())
        .filter_map(|warning| {
            let Warning::SharedName { name, files, stops: _ } = warning else { return None };
            Some(format!("{} are both {name}; remove one", files.join(" and ")))
        })
        .collect();
    (!lines.is_empty()).then(|| lines.join("; "))
}

/// The Event about a blocker that needs an action by a user or a third party. It is repeated for another blocker. The last status tells
/// which one was reported.
pub(super) fn note(plan: &Plan, before: &PaperMCServerStatus) -> Option<EventText> {
    let explanation = &plan.explanation;
    let words = super::in_words(explanation);
    let said = before.conditions.iter().find(|condition| condition.type_ == UPDATE_BLOCKED);
    if plan.is_impossible() {
        return Some(EventText { reason: NO_SOLUTION, warning: true, text: words });
    }
    if explanation.stopped_by().is_some() {
        let is_news = said.is_none_or(|said| said.reason != TWO_FILES_ONE_NAME || known_last(&said.message) != words);
        return is_news.then_some(EventText { reason: TWO_FILES_ONE_NAME, warning: true, text: words });
    }
    // The suggested action and the running build may change although the blocker is the same.
    let held = explanation.paper_held_back()?;
    let is_news = said.is_none_or(|said| !said.message.contains(&held));
    is_news.then_some(EventText { reason: "UpdateBlocked", warning: false, text: words })
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use resolver::{BudgetExceeded, Limit};
    use serde_json::{Value, json};

    use super::*;
    use crate::server::report::notifications::NotificationInput;
    use crate::server::report::tests::Pass;

    /// Paper 1.21.10-130, with exactly these newer versions.
    fn answer(newer: &Value, warnings: &Value) -> Explanation {
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
            "minecraft": "1.21.11", "since": "2025-12-10T00:00:00Z", "heldBy": [], "ready": 0, "oneWay": true,
        });
        newer.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([newer])
    }

    /// Blocked by these plugins.
    fn held(names: &[&str]) -> Explanation {
        let holder = |name: &&str| {
            let newest = json!({"version": "16.18.5", "published": "2025-10-06T00:00:00Z", "upTo": "1.21.10"});
            let key = json!({"source": "modrinth", "project": name});
            json!({"name": name, "key": key, "newest": newest, "readAt": "2026-11-22T03:00:00Z"})
        };
        answer(&newer(&json!({"heldBy": names.iter().map(holder).collect::<Vec<_>>()})), &json!([]))
    }

    fn pinned() -> Explanation {
        answer(&newer(&json!({"pinned": {"version": "1.21.10"}})), &json!([]))
    }

    fn not_found_out() -> Explanation {
        answer(&newer(&json!({"gaveUp": {"steps": 9, "limit": "steps"}})), &json!([]))
    }

    fn nothing_newer() -> Explanation {
        answer(&json!([]), &json!([]))
    }

    fn stopped() -> Explanation {
        let shared = json!([{"warning": "sharedName", "name": "Rules", "files": ["a.jar", "b.jar"], "stops": true}]);
        answer(&newer(&json!({"pinned": {"version": "1.21.10"}})), &shared)
    }

    /// Status, reason and message of the condition.
    fn condition(status: &PaperMCServerStatus) -> (&str, &str, &str) {
        let found = status.conditions.iter().find(|it| it.type_ == UPDATE_BLOCKED).unwrap();
        (&found.status, &found.reason, &found.message)
    }

    #[test]
    fn update_blocked_names_plugin_until_it_clears() {
        let mut pass = Pass::new();
        pass.plan.explanation = held(&["GriefPrevention"]);
        let status = pass.status();
        let (holds, reason, message) = condition(&status);
        assert_eq!((holds, reason), ("True", "HeldByPlugin"));
        assert!(
            message.contains("Paper 1.21.11, out since 10 December 2025, is held by GriefPrevention (listed up to"),
            "{message}"
        );
        let blocked = status.update_blocked.as_ref().unwrap();
        assert_eq!((blocked.blocked, blocked.reason.as_deref()), (true, Some(message)));
        let by: Vec<_> = blocked.blocked_by.iter().map(|by| (by.plugin.as_str(), by.version.as_str())).collect();
        assert_eq!((by, status.held_by.as_deref()), (vec![("GriefPrevention", "16.18.5")], Some("GriefPrevention")));

        let mut pass = pass.next();
        pass.plan.explanation = nothing_newer();
        let status = pass.status();
        let (holds, reason, message) = condition(&status);
        assert_eq!((holds, reason), ("False", "NotBlocked"));
        assert!(message.ends_with("Everything is at its newest."), "{message}");
        assert_eq!((status.update_blocked, status.held_by), (None, None));
    }

    /// A plugin was not read.
    fn unanswerable() -> Explanation {
        let fetch = json!([{"source": "modrinth", "project": "shop"}]);
        serde_json::from_value(json!({"answer": "unanswerable", "server": "games/lobby", "fetch": fetch})).unwrap()
    }

    /// The next pass, with a result that has lasted for a long time.
    fn for_long(pass: Pass) -> (Pass, Timestamp) {
        let mut pass = pass.next();
        let earlier = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1);
        let blocked = pass.before.conditions.iter_mut().find(|it| it.type_ == UPDATE_BLOCKED).unwrap();
        blocked.last_transition_time.0 = earlier;
        (pass, earlier)
    }

    fn since(status: &PaperMCServerStatus) -> Timestamp {
        status.conditions.iter().find(|it| it.type_ == UPDATE_BLOCKED).unwrap().last_transition_time.0
    }

    #[test]
    fn update_blocked_stands_while_cause_is_unknown() {
        let gave_up = || Explanation::GaveUp(BudgetExceeded { steps: 9, limit: Limit::Steps, clashing: Vec::new() });
        for (known, wanted) in [
            (held(&["GriefPrevention"]), ("True", "HeldByPlugin")),
            (stopped(), ("True", TWO_FILES_ONE_NAME)),
            (nothing_newer(), ("False", "NotBlocked")),
        ] {
            let mut pass = Pass::new();
            pass.plan.explanation = known.clone();
            let (mut pass, earlier) = for_long(pass);
            let first = pass.before.clone();
            let words = condition(&first).2.to_owned();
            for unknown in [unanswerable(), gave_up(), not_found_out()] {
                pass.plan.explanation = unknown;
                let status = pass.status();
                let (holds, reason, message) = condition(&status);
                assert_eq!(((holds, reason), since(&status)), (wanted, earlier));
                assert!(message.starts_with("not known now: "), "{message}");
                assert!(message.ends_with(&format!("{KNOWN_LAST}{words}")), "{message}");
                assert_eq!(message.matches(KNOWN_LAST).count(), 1, "{message}");
                assert_eq!((&status.update_blocked, &status.held_by), (&first.update_blocked, &first.held_by));
                let told = NotificationInput::of(&pass.checked, &pass.report(), &pass.before, &status).blocked;
                assert_eq!(told, (holds == "True").then(|| (earlier, words.clone())), "after fourteen days");
                pass = pass.next();
            }
            pass.plan.explanation = known;
            let status = pass.status();
            assert_eq!((condition(&status).2, since(&status)), (&*words, earlier));
            for reason in ["UpdateBlocked", TWO_FILES_ONE_NAME] {
                assert_eq!(pass.said(reason), Vec::<String>::new(), "nothing new");
            }
        }
    }

    #[test]
    fn update_blocked_is_unknown_if_never_evaluated() {
        let mut pass = Pass::new();
        pass.plan.explanation = unanswerable();
        let status = pass.status();
        assert_eq!((condition(&status).0, condition(&status).1), ("Unknown", "NotEvaluated"));
        assert_eq!((status.update_blocked, status.held_by), (None, None));
    }

    #[test]
    fn update_blocked_separates_no_blocker_from_unknown() {
        let mut pass = Pass::new();
        pass.plan.explanation = pinned();
        let status = pass.status();
        let (holds, reason, message) = condition(&status);
        assert_eq!((holds, reason), ("False", "NotBlocked"));
        assert!(message.contains("is ruled out by your pin"), "{message}");
        assert_eq!(status.update_blocked, None);
        pass.plan.explanation = not_found_out();
        let status = pass.status();
        let (holds, reason, message) = condition(&status);
        assert_eq!((holds, reason), ("Unknown", "NotEvaluated"));
        assert!(message.contains("who holds it was not found out within 9 steps"), "{message}");
        assert_eq!(status.update_blocked, None);
        // The solve itself was abandoned as well.
        let gave_up = BudgetExceeded { steps: 9, limit: Limit::Steps, clashing: Vec::new() };
        (pass.plan.explanation, pass.plan.solved) = (Explanation::GaveUp(gave_up), false);
        assert_eq!(condition(&pass.status()).1, "NotEvaluated");
        (pass.plan.explanation, pass.plan.solved) = (nothing_newer(), true);
        assert_eq!(condition(&pass.status()).1, "NotBlocked");
    }

    #[test]
    fn update_blocked_prefers_duplicate_plugin_name() {
        let mut pass = Pass::new();
        pass.plan.explanation = stopped();
        let status = pass.status();
        let (holds, reason, message) = condition(&status);
        assert_eq!((holds, reason), ("True", TWO_FILES_ONE_NAME));
        assert!(message.starts_with("a.jar and b.jar are both Rules, and a server loads only one"), "{message}");
        let blocked = status.update_blocked.as_ref().unwrap();
        assert_eq!((blocked.blocked, blocked.reason.as_deref()), (true, Some(message)));
        assert_eq!(blocked.blocked_by, []);
        assert_eq!(pass.said(TWO_FILES_ONE_NAME), [message]);
        let mut pass = pass.next();
        assert_eq!(pass.said(TWO_FILES_ONE_NAME), Vec::<String>::new(), "once");
        pass.plan.explanation = nothing_newer();
        let status = pass.status();
        assert_eq!((condition(&status).1, status.update_blocked.as_ref()), ("NotBlocked", None));
    }

    #[test]
    fn update_blocked_event_is_sent_once_per_reason() {
        let mut pass = Pass::new();
        pass.plan.explanation = pinned();
        let told = pass.said("UpdateBlocked").pop().unwrap();
        assert!(told.contains("Paper 1.21.11, out since 10 December 2025, is ruled out by your pin."), "{told}");
        let mut pass = pass.next();
        assert_eq!(pass.said("UpdateBlocked"), Vec::<String>::new());
        // Another build runs, but the blocker is the same.
        let Explanation::Solved(solved) = &mut pass.plan.explanation else { panic!("it is solved") };
        solved.paper.build = 131;
        assert_eq!(pass.said("UpdateBlocked"), Vec::<String>::new());
        pass.plan.explanation = held(&["GriefPrevention"]);
        assert_eq!(pass.said("UpdateBlocked").len(), 1, "another reason");
        let mut pass = pass.next();
        pass.plan.explanation = nothing_newer();
        assert_eq!(pass.said("UpdateBlocked"), Vec::<String>::new());
        let mut pass = pass.next();
        pass.plan.explanation = held(&["GriefPrevention"]);
        assert_eq!(pass.said("UpdateBlocked").len(), 1, "again, after it was over");
    }

    #[test]
    fn update_blocked_event_is_skipped_for_self_resolving_delay() {
        let mut pass = Pass::new();
        let ripens = json!({"unusable": {"why": "heldBack", "delay": "PT168H", "ripeAt": "2026-11-30T00:00:00Z"}});
        for explanation in [answer(&newer(&ripens), &json!([])), not_found_out(), nothing_newer()] {
            pass.plan.explanation = explanation;
            assert_eq!(pass.said("UpdateBlocked"), Vec::<String>::new());
        }
    }

    #[test]
    fn update_blocked_since_changes_only_with_status() {
        let mut pass = Pass::new();
        pass.plan.explanation = held(&["GriefPrevention"]);
        let (mut pass, earlier) = for_long(pass);
        for explanation in [held(&["GriefPrevention", "Shop"]), stopped()] {
            pass.plan.explanation = explanation;
            assert_eq!(since(&pass.status()), earlier);
        }
        pass.plan.explanation = nothing_newer();
        assert_eq!(since(&pass.status()), pass.report().now);
    }
}
