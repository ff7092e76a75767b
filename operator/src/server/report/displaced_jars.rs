//! Pure. Reports unmanaged JARs that were displaced by managed plugins, as a condition and an Event.

use agent_api::ReplacedJar;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::error_chain::cut;
use crate::k8s::events::EventText;

/// Type of the condition.
pub(super) const JARS_DISPLACED: &str = "JarsDisplaced";
/// Reason of the condition.
pub(super) const NAME_CONFLICT: &str = "NameConflict";
/// Number of JARs that are named. The newest ones are named, because they are news for the user.
const MAX_NAMED: usize = 4;

/// The message of the condition. `None` if no displaced JAR exists: then there is no condition.
pub(super) fn message(agent: &agent_api::AgentReport) -> Option<String> {
    let all = &agent.replaced;
    let named: Vec<String> =
        all.iter().take(MAX_NAMED).map(|jar| format!("`{}` to {}", sanitized(&jar.file), quoted_path(jar))).collect();
    let more = match all.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(", and {more} earlier ones"),
    };
    (!named.is_empty()).then(|| {
        cut(
            &format!(
                "Displaced by the managed plugin of the same name or place: {}{more}. The managed plugin runs \
                instead. {FIX_HINT}",
                named.join(", ")
            ),
            crate::server::report::context::MAX_MESSAGE_LENGTH,
        )
    })
}

const FIX_HINT: &str = "Copy from there what you still need, and remove the file. The condition then disappears.";

/// The Event about the JARs that the previous condition does not name, so that each is reported once.
pub(super) fn event(agent: Option<&agent_api::AgentReport>, before: &[Condition]) -> Option<EventText> {
    let previous = before.iter().find(|condition| condition.type_ == JARS_DISPLACED);
    let is_known = |jar: &ReplacedJar| previous.is_some_and(|previous| previous.message.contains(&quoted_path(jar)));
    let fresh = agent?.replaced.iter().take(MAX_NAMED).filter(|jar| !is_known(jar));
    let moved: Vec<String> = fresh.map(|jar| format!("`{}` to {}", sanitized(&jar.file), quoted_path(jar))).collect();
    (!moved.is_empty()).then(|| EventText {
        reason: "JarDisplaced",
        warning: true,
        text: format!("Displaced by the managed plugin of the same name or place: {}", moved.join(", ")),
    })
}

/// The path in backticks, so that no path is a prefix of another one.
fn quoted_path(jar: &ReplacedJar) -> String {
    format!("`{}`", sanitized(&jar.place))
}

/// A file name is untrusted text.
fn sanitized(path: &str) -> String {
    cut(&path.chars().filter(|c| !c.is_control() && *c != '`').collect::<String>(), 80)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;

    use super::*;

    fn agent(places: &[&str]) -> agent_api::AgentReport {
        let replaced: Vec<_> = places
            .iter()
            .map(|name| json!({"file": format!("plugins/{name}"), "place": format!(".nightshift/replaced/{name}")}))
            .collect();
        serde_json::from_value(json!({
            "at": "2026-11-22T04:00:00Z", "podUid": "u", "server": {"state": "absent"}, "players": {"who": "nobody"},
            "lock": null, "world": {"floor": null, "whole": true}, "replaced": replaced,
        }))
        .unwrap()
    }

    fn condition(agent: &agent_api::AgentReport) -> Vec<Condition> {
        let of = |message| Condition {
            type_: JARS_DISPLACED.to_owned(),
            status: "True".to_owned(),
            observed_generation: None,
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
            reason: NAME_CONFLICT.to_owned(),
            message,
        };
        message(agent).map(of).into_iter().collect()
    }

    #[test]
    fn displaced_jar_is_reported_once_and_stays_in_condition() {
        let one = agent(&["Warps.jar"]);
        let emitted = event(Some(&one), &[]).unwrap();
        assert!(emitted.warning);
        assert!(emitted.text.ends_with("`plugins/Warps.jar` to `.nightshift/replaced/Warps.jar`"), "{}", emitted.text);
        let previous = condition(&one);
        assert!(previous[0].message.contains("`plugins/Warps.jar` to `.nightshift/replaced/Warps.jar`"));
        assert!(event(Some(&one), &previous).is_none());
        assert!(event(None, &previous).is_none(), "a silent agent causes no Event");
        assert_eq!(condition(&agent(&[])), []);
    }

    #[test]
    fn displaced_jar_of_same_name_is_reported_again() {
        let previous = condition(&agent(&["Warps.jar.2"]));
        let emitted = event(Some(&agent(&["Warps.jar", "Warps.jar.2"])), &previous).unwrap();
        assert!(emitted.text.contains("Warps.jar`") && !emitted.text.contains("Warps.jar.2"), "{}", emitted.text);
    }

    #[test]
    fn displaced_jar_message_fits_many_long_names() {
        let names: Vec<String> = (0..20).map(|number| format!("{number}{}", "x".repeat(200))).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let all = agent(&names);
        let previous = condition(&all);
        assert!(
            previous[0].message.ends_with("The condition then disappears."),
            "the message is not cut: {}",
            previous[0].message
        );
        assert!(previous[0].message.contains("and 16 earlier ones"));
        assert!(event(Some(&all), &previous).is_none());
        assert!(event(Some(&agent(&[&["new.jar"], &names[..]].concat())), &previous).is_some());
    }
}
