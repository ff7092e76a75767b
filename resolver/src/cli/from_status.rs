//! Pure. Reads from spec and status when a server may be restarted: its windows, and the next one that the operator
//! reported.
//!
//! Only the operator's scheduler computes windows. This command repeats its result.

use std::collections::BTreeMap;

use crds::annotations;
use crds::paper_mc_server::{Approval, Backup, BeforeUpdate, Blackout, MaintenanceWindow, NamedWindow};
use crds::{PaperMCServer, Plugin};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::from_api;

/// When a server may be restarted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each mirrors one field of the object, and any combination is possible"
)]
pub(super) struct Schedule {
    /// `0 4 * * 0 Europe/Berlin, for 2h`. Empty means no automatic restart.
    pub(super) windows: Vec<String>,
    /// `2026-12-20T00:00:00Z to 2027-01-07T00:00:00Z`, or in the form of a window.
    pub(super) blackouts: Vec<String>,
    /// `spec.suspend`: automatic updates are suspended.
    pub(super) is_suspended: bool,
    /// `nightshift.dev/rollback-to`: the server is pinned to an earlier version set.
    pub(super) is_held: bool,
    /// `*` in `spec.hold`: the server keeps its running version set.
    pub(super) holds_all: bool,
    /// Whether an update needs an approval.
    pub(super) approval: Approval,
    /// Set when an approval is needed and the planned update is not approved.
    pub(super) unapproved: Option<PendingApproval>,
    /// `spec.follows`: another server has to run the version set first.
    pub(super) follows: Option<LeaderServer>,
    /// The next window, with the operator's text for it.
    pub(super) next: Option<(Timestamp, String)>,
    /// The operator reports that a window is open.
    pub(super) is_open: bool,
    /// `spec.updateSchedule.opportunistic`: updates also run outside of windows when no player has been online for this
    /// long.
    pub(super) or_empty_for: Option<String>,
    /// Plugins of the server with `spec.urgent`.
    pub(super) urgent: Vec<String>,
    /// Plugins of the server with their own windows, and those windows as they are written.
    pub(super) own_windows: BTreeMap<String, Vec<String>>,
    /// The plugins of a partial update, if the operator plans one. Its texts are then about that update.
    pub(super) told_alone: Option<Vec<String>>,
    /// The operator's downtime estimate for the planned update, and whether it is a newer Minecraft, before which a
    /// backup may be taken.
    pub(super) down: Option<(String, bool)>,
    /// No backup of the worlds is taken before a newer Minecraft opens them.
    pub(super) no_copy: bool,
    /// The image of the planned update that the server's node could not pull, in the operator's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) image_problem: Option<String>,
    /// Scheduled restarts without an update, `0 5 * * * Europe/Berlin, next Mon 26 Jan 05:00 CET`.
    pub(super) by_the_clock: Option<String>,
}

/// A server that is updated first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct LeaderServer {
    /// Its name.
    pub(super) server: String,
    /// How long it must have run the same version set, as written in the spec.
    pub(super) soak: String,
    /// The condition that it does not meet yet for the planned update, in the operator's words. `None` when there is
    /// none.
    pub(super) waits: Option<String>,
}

/// A version set that waits for approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PendingApproval {
    /// Its digest in the operator's status. The answer of this command may be another version set.
    pub(super) digest: Option<String>,
}

impl Schedule {
    /// The schedule for a full update.
    pub(super) fn for_full_update(&self) -> Self {
        if self.told_alone.is_some() { self.without_status() } else { self.clone() }
    }

    /// The schedule for a partial update of these plugins.
    pub(super) fn for_partial_update(&self, names: &[&str]) -> Self {
        let is_planned = self.told_alone.as_ref().is_some_and(|partial| {
            partial.len() == names.len() && names.iter().all(|name| partial.iter().any(|other| other == name))
        });
        if is_planned { self.clone() } else { self.without_status() }
    }

    fn without_status(&self) -> Self {
        Self {
            next: None,
            is_open: false,
            image_problem: None,
            unapproved: (self.approval == Approval::Required).then_some(PendingApproval { digest: None }),
            follows: self.follows.clone().map(|follows| LeaderServer { waits: None, ..follows }),
            ..self.clone()
        }
    }
}

fn pending_approval(server: &PaperMCServer) -> Option<PendingApproval> {
    if server.spec.approval == Approval::Automatic {
        return None;
    }
    let planned = server.status.as_ref().and_then(|status| status.available_update.as_ref());
    let digest = planned.map(|planned| planned.digest.clone());
    let annotation_value = |name: &str| annotation(server, name);
    let names_digest = |annotation_value: &String| {
        digest.as_ref().is_some_and(|digest| annotations::matches_digest(annotation_value, digest))
    };
    let is_approved =
        [annotations::APPROVE, annotations::APPLY].into_iter().filter_map(annotation_value).any(names_digest);
    (!is_approved).then_some(PendingApproval { digest })
}

fn annotation<'a>(server: &'a PaperMCServer, name: &str) -> Option<&'a String> {
    server.metadata.annotations.as_ref()?.get(name)
}

/// Reads the schedule of a server, including those of the given Plugins that select it.
pub(super) fn from_objects<'a>(server: &PaperMCServer, plugins: impl IntoIterator<Item = &'a Plugin>) -> Schedule {
    let spec = &server.spec;
    let maintenance = spec.update_schedule.maintenance_window.as_ref();
    let (approval, unapproved) = (spec.approval, pending_approval(server));
    let is_held = annotation(server, annotations::ROLLBACK_TO).is_some_and(|digest| !digest.trim().is_empty());
    // A status of an older generation may describe windows that no longer exist. Manifests have no generation.
    let counts =
        |observed: &Option<i64>| server.metadata.generation.is_none() || *observed == server.metadata.generation;
    let status = server.status.as_ref().filter(|status| counts(&status.observed_generation));
    let by_the_clock = spec.restart.as_ref().filter(|_| !spec.suspend).map(|restart| {
        let zone = restart.time_zone.as_ref().unwrap_or(&spec.time_zone);
        let next = status.and_then(|status| status.next_restart.as_ref());
        format!("{} {zone}{}", restart.cron, next.map(|next| format!(", next {next}")).unwrap_or_default())
    });
    let planned = status.and_then(|status| status.available_update.as_ref());
    let down = planned.and_then(|planned| Some((planned.cost.clone()?, planned.one_way)));
    let takes_backup = |backup: &Backup| backup.enabled && backup.before_update != BeforeUpdate::Never;
    let no_copy = !spec.backup.as_ref().is_some_and(takes_backup);
    let image_problem = planned.and_then(|planned| planned.image_problem.clone());
    let follows = spec.follows.as_ref().map(|follows| {
        let conditions = status.map_or(&[][..], |status| status.conditions.as_slice());
        let waits = conditions.iter().find(|condition| condition.type_ == "WaitingForLeaderServer");
        let waits = waits.map(|condition| condition.message.clone());
        LeaderServer { server: follows.server.clone(), soak: follows.soak.clone(), waits }
    });
    if maintenance.is_some_and(|window| !window.enabled) {
        let is_suspended = spec.suspend;
        return Schedule {
            is_suspended,
            is_held,
            holds_all: spec.is_fully_held(),
            approval,
            unapproved,
            down,
            no_copy,
            image_problem,
            by_the_clock,
            ..Schedule::default()
        };
    }
    let window_text = |cron: &str, length: &str, last_part: Option<&String>, zone: Option<&String>| {
        let last_part = last_part.map(|part| format!(", no start in its last {part}")).unwrap_or_default();
        format!("{cron} {}, for {length}{last_part}", zone.unwrap_or(&spec.time_zone))
    };
    let of_maintenance =
        maintenance.map(|MaintenanceWindow { enabled: _, cron, duration, latest_start, time_zone }| {
            window_text(cron, duration, latest_start.as_ref(), time_zone.as_ref())
        });
    let named_window_text = |NamedWindow { name: _, cron, duration, latest_start, time_zone }: &NamedWindow| {
        window_text(cron, duration, latest_start.as_ref(), time_zone.as_ref())
    };
    let further = spec.update_schedule.windows.iter().map(named_window_text);
    let (urgent, other_plugins): (Vec<&Plugin>, Vec<&Plugin>) =
        from_api::matching(server, plugins).into_iter().partition(|plugin| plugin.spec.urgent);
    let name_of = |plugin: &Plugin| plugin.metadata.name.clone().unwrap_or_default();
    let own_windows = other_plugins.into_iter().filter(|plugin| !plugin.spec.windows.is_empty());
    let own_windows = own_windows
        .map(|plugin| (name_of(plugin), plugin.spec.windows.iter().map(named_window_text).collect()))
        .collect();
    let is_partial = status.is_some_and(|status| {
        status.conditions.iter().any(|condition| condition.type_ == "Scoped" && condition.status == "True")
    });
    let planned = planned.filter(|_| is_partial);
    let blackouts = spec.update_schedule.blackouts.iter().filter_map(|blackout| match blackout {
        Blackout { from: Some(from), to: Some(to), .. } => Some(format!("{from} to {to}")),
        Blackout { cron: Some(cron), duration: Some(duration), time_zone, .. } => {
            Some(window_text(cron, duration, None, time_zone.as_ref()))
        }
        // The CEL rules report this one.
        Blackout { .. } => None,
    });
    let windows = of_maintenance.into_iter().chain(further).collect();
    Schedule {
        windows,
        blackouts: blackouts.collect(),
        is_suspended: spec.suspend,
        is_held,
        holds_all: spec.is_fully_held(),
        approval,
        unapproved,
        follows,
        next: status.and_then(|status| Some((status.next_window_at?, status.next_window.clone()?))),
        or_empty_for: spec.update_schedule.opportunistic.as_ref().map(|opportunistic| opportunistic.empty_for.clone()),
        urgent: urgent.into_iter().map(name_of).collect(),
        own_windows,
        told_alone: planned.map(|planned| planned.plugins.iter().map(|plugin| plugin.name.clone()).collect()),
        is_open: status.is_some_and(|status| status.next_window.as_deref() == Some("now")),
        down,
        no_copy,
        image_problem,
        by_the_clock,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn schedule_of(server: &PaperMCServer) -> Schedule {
        super::from_objects(server, [])
    }

    fn server(schedule: &Value, observed: i64) -> PaperMCServer {
        serde_json::from_value(json!({
            "metadata": {"name": "lobby", "generation": 3},
            "spec": {"updateStrategy": "auto", "timeZone": "Europe/Berlin", "updateSchedule": schedule},
            "status": {
                "observedGeneration": observed, "nextWindow": "Sun 25 Jan 04:00 CET", "nextWindowAt": "2026-01-25T03:00:00Z",
            },
        }))
        .unwrap()
    }

    #[test]
    fn backup_before_update_is_off_unless_spec_enables_it() {
        let no_copy = |backup: Option<Value>| {
            let mut server = server(&json!({"maintenanceWindow": {"enabled": false, "cron": "@daily"}}), 3);
            server.spec.backup = backup.map(|backup| serde_json::from_value(backup).unwrap());
            schedule_of(&server).no_copy
        };
        assert!(no_copy(None) && no_copy(Some(json!({"beforeUpdate": "Never"}))));
        assert!(no_copy(Some(json!({"enabled": false}))));
        assert!(!no_copy(Some(json!({}))) && !no_copy(Some(json!({"beforeUpdate": "Always"}))));
    }

    #[test]
    fn windows_are_listed_as_written_with_next_from_operator() {
        let schedule = json!({
            "maintenanceWindow": {"cron": "0 4 * * 0", "duration": "2h"},
            "windows": [{"name": "night", "cron": "@daily", "timeZone": "UTC", "latestStart": "20m"}],
            "blackouts": [
                {"name": "event", "from": "2026-01-23T18:00:00Z", "to": "2026-01-25T18:00:00Z"},
                {"name": "evenings", "cron": "0 18 * * *", "duration": "6h"},
            ],
        });
        let parsed = schedule_of(&server(&schedule, 3));
        assert_eq!(parsed.windows, ["0 4 * * 0 Europe/Berlin, for 2h", "@daily UTC, for 1h, no start in its last 20m"]);
        assert_eq!(
            parsed.blackouts,
            ["2026-01-23T18:00:00Z to 2026-01-25T18:00:00Z", "0 18 * * * Europe/Berlin, for 6h"]
        );
        let (at, words) = parsed.next.unwrap();
        assert_eq!((at.to_string().as_str(), words.as_str()), ("2026-01-25T03:00:00Z", "Sun 25 Jan 04:00 CET"));
        assert_eq!(schedule_of(&server(&schedule, 2)).next, None, "the status is about an older spec");
    }

    #[test]
    fn image_problem_applies_to_full_update_and_current_spec() {
        let mut server = server(&json!({}), 3);
        let planned =
            json!({"digest": "00", "version": "1.21.10", "build": 1, "summary": "", "imageProblem": "not found"});
        server.status.as_mut().unwrap().available_update = serde_json::from_value(planned).unwrap();
        assert_eq!(schedule_of(&server).for_full_update().image_problem.as_deref(), Some("not found"));
        let partial = Schedule { told_alone: Some(Vec::new()), ..schedule_of(&server) };
        assert_eq!(partial.for_full_update().image_problem, None, "it is told of a part of it");
        server.status.as_mut().unwrap().observed_generation = Some(2);
        assert_eq!(schedule_of(&server).image_problem, None);
    }

    #[test]
    fn opportunistic_restart_is_reported_unless_window_is_disabled() {
        let parsed = |enabled: bool| {
            let window = json!({"cron": "@daily", "enabled": enabled});
            schedule_of(&server(&json!({"maintenanceWindow": window, "opportunistic": {}}), 3)).or_empty_for
        };
        assert_eq!((parsed(true).as_deref(), parsed(false)), (Some("10m"), None));
    }

    #[test]
    fn scheduled_restarts_are_listed_with_next_from_operator() {
        let off = json!({"maintenanceWindow": {"enabled": false}});
        let mut server = server(&off, 3);
        let restart = |zone: &Value| serde_json::from_value(json!({"cron": "0 5 * * *", "timeZone": zone})).unwrap();
        server.spec.restart = restart(&Value::Null);
        assert_eq!(schedule_of(&server).by_the_clock.as_deref(), Some("0 5 * * * Europe/Berlin"));
        server.spec.restart = restart(&json!("UTC"));
        server.status.as_mut().unwrap().next_restart = Some("Mon 26 Jan 05:00 UTC".to_owned());
        assert_eq!(schedule_of(&server).by_the_clock.as_deref(), Some("0 5 * * * UTC, next Mon 26 Jan 05:00 UTC"));
        server.spec.suspend = true;
        assert_eq!(schedule_of(&server).by_the_clock, None);
    }

    #[test]
    fn suspended_server_is_reported_regardless_of_windows() {
        let mut suspended = server(&json!({"maintenanceWindow": {"cron": "@daily"}}), 3);
        suspended.spec.suspend = true;
        assert!(schedule_of(&suspended).is_suspended);
    }

    #[test]
    fn rolled_back_server_is_held_until_request_is_removed() {
        let mut server = server(&json!({"maintenanceWindow": {"cron": "@daily"}}), 3);
        for (asked, is_held) in [(Some("previous"), true), (Some(" "), false), (None, false)] {
            let annotation = asked.map(|asked| ("nightshift.dev/rollback-to".to_owned(), asked.to_owned()));
            server.metadata.annotations = Some(annotation.into_iter().collect());
            assert_eq!(schedule_of(&server).is_held, is_held, "{asked:?}");
        }
    }

    #[test]
    fn server_hold_covers_all_only_with_star() {
        for enabled in [true, false] {
            let mut server = server(&json!({"maintenanceWindow": {"cron": "@daily", "enabled": enabled}}), 3);
            for (hold, holds_all) in [("*", true), ("maps *", true), ("maps", false), ("", false)] {
                server.spec.hold = hold.split_whitespace().map(str::to_owned).collect();
                assert_eq!(schedule_of(&server).holds_all, holds_all, "{hold}");
            }
        }
    }

    #[test]
    fn required_approval_names_digest_of_planned_lock() {
        let mut server = server(&json!({"maintenanceWindow": {"cron": "@daily"}}), 3);
        assert_eq!(schedule_of(&server).unapproved, None);
        server.spec.approval = Approval::Required;
        assert_eq!(
            schedule_of(&server).unapproved,
            Some(PendingApproval { digest: None }),
            "the operator has told nothing yet"
        );
        let digest = "2222222222222222222222222222222222222222222222222222222222222222";
        let planned = json!({"digest": digest, "version": "1.21.10", "build": 1, "oneWay": false, "summary": "x", "staged": true});
        server.status.as_mut().unwrap().available_update = serde_json::from_value(planned).unwrap();
        assert_eq!(schedule_of(&server).unapproved, Some(PendingApproval { digest: Some(digest.to_owned()) }));
        let approve = |digest: &str| Some([("nightshift.dev/approve".to_owned(), digest.to_owned())].into());
        server.metadata.annotations = approve(&digest[..15]);
        assert!(schedule_of(&server).unapproved.is_some());
        server.metadata.annotations = approve(&digest[..16]);
        assert_eq!(schedule_of(&server).unapproved, None);
    }

    #[test]
    fn followed_server_is_reported_with_wait_reason_of_operator() {
        let mut server = server(&json!({"maintenanceWindow": {"cron": "@daily"}}), 3);
        server.spec.follows = serde_json::from_value(json!({"server": "staging", "soak": "48h"})).unwrap();
        let parsed = |server: &PaperMCServer| schedule_of(server).follows.unwrap();
        let followed = LeaderServer { server: "staging".to_owned(), soak: "48h".to_owned(), waits: None };
        assert_eq!(parsed(&server), followed);
        let words = "waits for staging, which runs ViaVersion 5.5.1 still";
        server.status.as_mut().unwrap().conditions = serde_json::from_value(json!([{
            "type": "WaitingForLeaderServer", "status": "True", "reason": "OtherRelease", "message": words,
            "lastTransitionTime": "2026-01-21T12:00:00Z",
        }]))
        .unwrap();
        assert_eq!(parsed(&server).waits.as_deref(), Some(words));
        server.metadata.generation = Some(4);
        assert_eq!(parsed(&server), followed, "the status is about an older spec");
    }

    #[test]
    fn disabled_window_means_no_automatic_update() {
        let off = schedule_of(&server(&json!({"maintenanceWindow": {"enabled": false}}), 3));
        assert_eq!(off, Schedule { no_copy: true, ..Schedule::default() });
    }

    #[test]
    fn partial_update_is_reported_by_its_plugins() {
        let plugin = |name: &str, more: &Value| -> Plugin {
            let mut spec = json!({"source": {"type": "modrinth", "project": name}, "instanceSelector": {}});
            spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
        };
        let windows = json!([{"name": "own", "cron": "0 3 * * 3"}]);
        let plugins = [
            plugin("geyser", &json!({"windows": windows})),
            plugin("vault", &json!({"windows": windows, "urgent": true})),
            plugin("warps", &json!({})),
        ];
        let mut server = server(&json!({"maintenanceWindow": {"cron": "@daily"}}), 3);
        server.spec.approval = Approval::Required;
        let parsed = super::from_objects(&server, &plugins);
        assert_eq!(parsed.urgent, ["vault"]);
        let own_windows = BTreeMap::from([("geyser".to_owned(), vec!["0 3 * * 3 Europe/Berlin, for 1h".to_owned()])]);
        assert_eq!(parsed.own_windows, own_windows);
        assert_eq!(parsed.for_full_update(), parsed);
        assert_eq!(parsed.for_partial_update(&["Geyser"]).next, None, "that is about all that is planned");

        let status = server.status.as_mut().unwrap();
        status.conditions = serde_json::from_value(json!([{
            "type": "Scoped", "status": "True", "reason": "OwnWindow", "message": "", "lastTransitionTime": "2026-01-21T12:00:00Z",
        }]))
        .unwrap();
        status.available_update = serde_json::from_value(json!({
            "digest": "2222", "version": "1.21.10", "build": 1, "oneWay": false, "summary": "x", "staged": true,
            "plugins": [{"name": "Geyser", "version": "2.9"}],
        }))
        .unwrap();
        let parsed = super::from_objects(&server, &plugins);
        assert!(
            parsed.for_partial_update(&["Geyser"]).next.is_some()
                && parsed.for_partial_update(&["Geyser", "Vault"]).next.is_none()
        );
        let all = parsed.for_full_update();
        assert_eq!((all.next, all.unapproved), (None, Some(PendingApproval { digest: None })));
    }
}
