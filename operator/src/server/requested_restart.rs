//! Pure. Evaluates a user's request to restart the server once, without an update.
//!
//! As for scheduled restarts, nothing is stored: a server whose process started after the request has served it, whoever restarted it.

use crds::PaperMCServer;
use crds::annotations::RESTART_NOW;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use scheduler::maintenance::Gate;
use scheduler::observation::RestartDue;

use super::request_time::{not_a_time, parse_time};
use super::scheduled_restart::process_started_at;
use validate::CheckedServer;

/// The request of one server at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RestartRequest {
    /// The restart that is due.
    pub(crate) due: Option<RestartDue>,
    /// Why the request has no effect.
    pub(crate) refused: Option<String>,
}

impl RestartRequest {
    /// Evaluates the request of this server in this pod. `spec.suspend` does not matter, because it stops automatic changes only.
    pub(crate) fn new(server: &PaperMCServer, checked: &CheckedServer, pod: Option<&Pod>, now: Timestamp) -> Self {
        let value = server.annotations().get(RESTART_NOW).map_or("", |value| value.trim());
        if value.is_empty() {
            return Self::default();
        }
        let Some(requested_at) = parse_time(value) else {
            return Self::refused(not_a_time(RESTART_NOW, value));
        };
        // A server that does not run starts anyway.
        let is_served = pod.and_then(process_started_at).is_none_or(|started_at| requested_at <= started_at);
        if is_served {
            return Self::default();
        }
        match checked.updates.windows.on_request(requested_at, true, now) {
            Some(Gate::Open { opened_at: due, until }) => {
                let policy = checked.players.restart.as_ref().map_or(checked.players.policy, |restart| restart.policy);
                // No update that waits for a window replaces it.
                let due = RestartDue { due, until, policy, only_empty: false, yields_until: due };
                Self { due: Some(due), refused: None }
            }
            Some(Gate::NoNewStarts { .. } | Gate::Shut { .. }) | None => {
                Self::refused(not_valid(requested_at, checked, now))
            }
        }
    }

    fn refused(why: String) -> Self {
        Self { due: None, refused: Some(why) }
    }
}

fn not_valid(requested_at: Timestamp, checked: &CheckedServer, now: Timestamp) -> String {
    let why = match checked.updates.windows.blackout_at(now) {
        _ if now < requested_at => "is in the future".to_owned(),
        Some((blackout, until)) => format!("is refused, because blackout `{}` lasts until {until}", blackout.name()),
        None => "was not served within 30 minutes".to_owned(),
    };
    format!(
        "`{RESTART_NOW}` of {requested_at} {why}. The server is not restarted. Write the current time to request it again."
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::server::test_server::server;
    use validate::check;

    fn minute(of: i64) -> Timestamp {
        "2026-01-11T04:00:00Z".parse::<Timestamp>().unwrap() + jiff::SignedDuration::from_mins(of)
    }

    /// The request with this value, of a server whose process started at minute 0, `now` minutes after that.
    fn request(value: &str, spec: Value, now: i64) -> RestartRequest {
        let mut server = server(spec);
        server.metadata.annotations = Some([(RESTART_NOW.to_owned(), value.to_owned())].into());
        let checked = check(&server).unwrap();
        let state = json!({"running": {"startedAt": minute(0).to_string()}});
        let status =
            json!({"name": "papermc", "ready": true, "restartCount": 0, "image": "", "imageID": "", "state": state});
        let pod = json!({
            "metadata": {"name": "lobby-0", "creationTimestamp": minute(0).to_string()},
            "status": {"containerStatuses": [status]},
        });
        RestartRequest::new(&server, &checked, Some(&serde_json::from_value(pod).unwrap()), minute(now))
    }

    fn at(minutes: i64) -> String {
        minute(minutes).as_second().to_string()
    }

    #[test]
    fn requested_restart_is_due_for_half_an_hour_until_process_starts() {
        let due = |value: &str, now| request(value, json!({"suspend": true}), now).due.map(|due| (due.due, due.until));
        assert_eq!(due(&at(60), 61), Some((minute(60), minute(90))));
        assert_eq!(due(&at(60), 89), Some((minute(60), minute(90))));
        assert_eq!(due(&at(60), 90), None);
        assert_eq!(request(&at(0), json!({}), 1), RestartRequest::default(), "the process started since");
        assert_eq!(request(" ", json!({}), 1), RestartRequest::default());
    }

    #[test]
    fn invalid_restart_request_says_why_it_has_no_effect() {
        let refused = |value: &str, spec: Value, now| request(value, spec, now).refused.unwrap();
        assert!(refused("soon", json!({}), 1).contains("is `soon`, which is not a time"));
        assert!(refused(&at(60), json!({}), 90).contains("was not served within 30 minutes"));
        assert!(refused(&at(60), json!({}), 20).contains("is in the future"));
        let event = json!([{"name": "event", "from": minute(50).to_string(), "to": minute(99).to_string()}]);
        let blackout = json!({"updateSchedule": {"blackouts": event}});
        assert!(refused(&at(60), blackout, 61).contains("blackout `event` lasts until"));
    }

    #[test]
    fn requested_restart_has_policy_of_scheduled_ones() {
        let policy = |spec: Value| request(&at(60), spec, 61).due.unwrap().policy;
        let players = json!({"policy": "WaitForEmpty"});
        let schedule = json!({"cron": "0 5 * * *", "policy": "Announce"});
        let waits = policy(json!({"players": players}));
        assert!(matches!(waits, scheduler::observation::PlayerPolicy::WaitForEmpty { .. }), "{waits:?}");
        let announces = policy(json!({"players": players, "restart": schedule}));
        assert_eq!(announces, scheduler::observation::PlayerPolicy::Announce);
    }
}
