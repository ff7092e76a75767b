//! Pure. Reports unmanaged JARs that were displaced by managed plugins, as a condition and an Event.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use scheduler::protocol::{self, ReplacedJar};

use crate::error_chain::cut;
use crate::k8s::events::EventText;

/// Type of the condition.
pub(super) const JARS_SET_ASIDE: &str = "JarsDisplaced";
/// Reason of the condition.
pub(super) const IN_THE_WAY: &str = "NameConflict";
/// Number of JARs that are named. The newest ones are named, because they are news for the user.
const NAMED: usize = 4;

/// The message of the condition. `None` if no displaced JAR exists: then there is no condition.
pub(super) fn in_words(agent: &protocol::AgentReport) -> Option<String> {
    let all = &agent.replaced;
    let named: Vec<String> =
        all.iter().take(NAMED).map(|jar| format!("`{}` to {}", shown(&jar.file), place(jar))).collect();
    let more = match all.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} before"),
    };
    (!named.is_empty()).then(|| {
        cut(
            &format!(
                "moved out of the way of the managed plugin of the same name or place: {}{more}. The managed one runs in its stead; {WAY_OUT}",
                named.join(", ")
            ),
            super::LONGEST_MESSAGE,
        )
    })
}

const WAY_OUT: &str = "what you still need of a file, copy from there, and remove the file: then this is over";

/// The Event about the JARs that the previous condition does not name, so that each is reported once.
pub(super) fn notes(agent: Option<&protocol::AgentReport>, before: &[Condition]) -> Option<EventText> {
    let known = before.iter().find(|condition| condition.type_ == JARS_SET_ASIDE);
    let is_known = |jar: &ReplacedJar| known.is_some_and(|known| known.message.contains(&place(jar)));
    let fresh = agent?.replaced.iter().take(NAMED).filter(|jar| !is_known(jar));
    let told: Vec<String> = fresh.map(|jar| format!("`{}` to {}", shown(&jar.file), place(jar))).collect();
    (!told.is_empty()).then(|| EventText {
        reason: "JarDisplaced",
        warning: true,
        text: format!("moved out of the way of the managed plugin of the same name or place: {}", told.join(", ")),
    })
}

/// The path in backticks, so that no path is a prefix of another one.
fn place(jar: &ReplacedJar) -> String {
    format!("`{}`", shown(&jar.place))
}

/// A file name is untrusted text.
fn shown(path: &str) -> String {
    cut(&path.chars().filter(|c| !c.is_control() && *c != '`').collect::<String>(), 80)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;

    use super::*;

    fn agent(places: &[&str]) -> protocol::AgentReport {
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

    fn condition(agent: &protocol::AgentReport) -> Vec<Condition> {
        let of = |message| Condition {
            type_: JARS_SET_ASIDE.to_owned(),
            status: "True".to_owned(),
            observed_generation: None,
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
            reason: IN_THE_WAY.to_owned(),
            message,
        };
        in_words(agent).map(of).into_iter().collect()
    }

    #[test]
    fn displaced_jar_is_reported_once_and_stays_in_condition() {
        let one = agent(&["Warps.jar"]);
        let note = notes(Some(&one), &[]).unwrap();
        assert!(note.warning);
        assert!(note.text.ends_with("`plugins/Warps.jar` to `.nightshift/replaced/Warps.jar`"), "{}", note.text);
        let known = condition(&one);
        assert!(known[0].message.contains("`plugins/Warps.jar` to `.nightshift/replaced/Warps.jar`"));
        assert!(notes(Some(&one), &known).is_none());
        assert!(notes(None, &known).is_none(), "a silent agent says nothing new");
        assert_eq!(condition(&agent(&[])), []);
    }

    #[test]
    fn displaced_jar_of_same_name_is_reported_again() {
        let known = condition(&agent(&["Warps.jar.2"]));
        let note = notes(Some(&agent(&["Warps.jar", "Warps.jar.2"])), &known).unwrap();
        assert!(note.text.contains("Warps.jar`") && !note.text.contains("Warps.jar.2"), "{}", note.text);
    }

    #[test]
    fn displaced_jar_message_fits_many_long_names() {
        let names: Vec<String> = (0..20).map(|number| format!("{number}{}", "x".repeat(200))).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let all = agent(&names);
        let known = condition(&all);
        assert!(known[0].message.ends_with("this is over"), "nothing is cut away: {}", known[0].message);
        assert!(known[0].message.contains("and 16 before"));
        assert!(notes(Some(&all), &known).is_none());
        assert!(notes(Some(&agent(&[&["new.jar"], &names[..]].concat())), &known).is_some());
    }
}
