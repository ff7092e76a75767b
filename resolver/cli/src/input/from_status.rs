//! Pure. Reads from spec and status when a server may be restarted: its windows, and the next one that the operator
//! reported, which knows more than the windows.

use std::collections::BTreeMap;

use crds::annotations;
use crds::paper_mc_server::{Approval, BeforeUpdate, Blackout, MaintenanceWindow, NamedWindow};
use crds::{PaperMCServer, Plugin};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::schedule::written::{WrittenBlackout, WrittenWindow};

/// When a server may be restarted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each mirrors one field of the object, and any combination is possible"
)]
pub(crate) struct Schedule {
    /// The server's time zone.
    pub(crate) zone: String,
    /// Empty means no automatic restart.
    pub(crate) windows: Vec<WrittenWindow>,
    /// In which no window applies.
    pub(crate) blackouts: Vec<WrittenBlackout>,
    /// `spec.suspend`: automatic updates are suspended.
    pub(crate) is_suspended: bool,
    /// `nightshift.dev/rollback-to`: the server is pinned to an earlier version set.
    pub(crate) is_held: bool,
    /// `*` in `spec.hold`: the server keeps its running version set.
    pub(crate) holds_all: bool,
    /// Whether an update needs an approval.
    pub(crate) approval: Approval,
    /// Set when an approval is needed and the planned update is not approved.
    pub(crate) unapproved: Option<PendingApproval>,
    /// `spec.follows`: another server has to run the version set first.
    pub(crate) follows: Option<LeaderServer>,
    /// The next window, with the operator's text for it.
    pub(crate) next: Option<(Timestamp, String)>,
    /// The operator reports that a window is open.
    pub(crate) is_open: bool,
    /// `spec.updateSchedule.opportunistic`: updates also run outside of windows when no player has been online for this
    /// long.
    pub(crate) empty_for: Option<String>,
    /// Plugins of the server with `spec.urgent`.
    pub(crate) urgent: Vec<String>,
    /// Plugins of the server with their own windows.
    pub(crate) own_windows: BTreeMap<String, Vec<WrittenWindow>>,
    /// The plugins of a partial update, if the operator plans one. Its texts are then about that update.
    pub(crate) planned_partial: Option<Vec<String>>,
    /// The operator's downtime estimate for the planned update, and whether it is a newer Minecraft, before which a
    /// backup may be taken.
    pub(crate) down: Option<(String, bool)>,
    /// No backup of the worlds is taken before a newer Minecraft opens them.
    pub(crate) no_backup: bool,
    /// The image of the planned update that the server's node could not pull, in the operator's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) image_problem: Option<String>,
    /// Scheduled restarts without an update, `0 5 * * * Europe/Berlin, next Mon 26 Jan 05:00 CET`.
    pub(crate) scheduled_restart: Option<String>,
}

/// A server that is updated first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct LeaderServer {
    /// Its name.
    pub(crate) server: String,
    /// How long it must have run the same version set, as written in the spec.
    pub(crate) soak: String,
    /// The condition that it does not meet yet for the planned update, in the operator's words. `None` when there is
    /// none.
    pub(crate) waits: Option<String>,
}

/// A version set that waits for approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PendingApproval {
    /// Its digest in the operator's status. The answer of this command may be another version set.
    pub(crate) digest: Option<String>,
}

impl Schedule {
    /// The schedule for a full update.
    pub(crate) fn for_full_update(&self) -> Self {
        if self.planned_partial.is_some() { self.without_status() } else { self.clone() }
    }

    /// The schedule for a partial update of these plugins.
    pub(crate) fn for_partial_update(&self, names: &[&str]) -> Self {
        let is_planned = self.planned_partial.as_ref().is_some_and(|partial| {
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
pub(crate) fn from_objects<'a>(server: &PaperMCServer, plugins: impl IntoIterator<Item = &'a Plugin>) -> Schedule {
    let spec = &server.spec;
    let maintenance = spec.update_schedule.maintenance_window.as_ref();
    let (approval, unapproved) = (spec.approval, pending_approval(server));
    let is_held = annotation(server, annotations::ROLLBACK_TO).is_some_and(|digest| !digest.trim().is_empty());
    // A status of an older generation may describe windows that no longer exist. Manifests have no generation.
    let counts =
        |observed: &Option<i64>| server.metadata.generation.is_none() || *observed == server.metadata.generation;
    let status = server.status.as_ref().filter(|status| counts(&status.observed_generation));
    let scheduled_restart = spec.restart.as_ref().filter(|_| !spec.suspend).map(|restart| {
        let zone = restart.time_zone.as_ref().unwrap_or(&spec.time_zone);
        let next = status.and_then(|status| status.next_restart.as_ref());
        format!("{} {zone}{}", restart.cron, next.map(|next| format!(", next {next}")).unwrap_or_default())
    });
    let planned = status.and_then(|status| status.available_update.as_ref());
    let down = planned.and_then(|planned| Some((planned.cost.clone()?, planned.one_way)));
    let no_backup = spec.backup_before_update() == BeforeUpdate::Never;
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
            zone: spec.time_zone.clone(),
            is_suspended,
            is_held,
            holds_all: spec.is_fully_held(),
            approval,
            unapproved,
            down,
            no_backup,
            image_problem,
            scheduled_restart,
            ..Schedule::default()
        };
    }
    let of_maintenance =
        maintenance.map(|MaintenanceWindow { enabled: _, cron, duration, latest_start, time_zone }| WrittenWindow {
            cron: cron.clone(),
            zone: time_zone.as_ref().unwrap_or(&spec.time_zone).clone(),
            duration: duration.clone(),
            latest_start: latest_start.clone(),
        });
    let named = |window: &NamedWindow| WrittenWindow::from_named(window, &spec.time_zone);
    let further = spec.update_schedule.windows.iter().map(named);
    let (urgent, other_plugins): (Vec<&Plugin>, Vec<&Plugin>) =
        from_api::matching(server, plugins).into_iter().partition(|plugin| plugin.spec.urgent);
    let name_of = |plugin: &Plugin| plugin.metadata.name.clone().unwrap_or_default();
    let own_windows = other_plugins.into_iter().filter(|plugin| !plugin.spec.windows.is_empty());
    let own_windows =
        own_windows.map(|plugin| (name_of(plugin), plugin.spec.windows.iter().map(named).collect())).collect();
    let is_partial = status.is_some_and(|status| {
        status.conditions.iter().any(|condition| condition.type_ == "PartialUpdate" && condition.status == "True")
    });
    let planned = planned.filter(|_| is_partial);
    let blackouts = spec.update_schedule.blackouts.iter().filter_map(|blackout| match blackout.clone() {
        Blackout { from: Some(from), to: Some(to), .. } => Some(WrittenBlackout::Once { from, to }),
        Blackout { cron: Some(cron), duration: Some(duration), time_zone, .. } => {
            let zone = time_zone.unwrap_or_else(|| spec.time_zone.clone());
            Some(WrittenBlackout::Recurring(WrittenWindow { cron, zone, duration, latest_start: None }))
        }
        // `validate` reports this one.
        Blackout { .. } => None,
    });
    let windows = of_maintenance.into_iter().chain(further).collect();
    Schedule {
        zone: spec.time_zone.clone(),
        windows,
        blackouts: blackouts.collect(),
        is_suspended: spec.suspend,
        is_held,
        holds_all: spec.is_fully_held(),
        approval,
        unapproved,
        follows,
        next: status.and_then(|status| Some((status.next_window_at?, status.next_window.clone()?))),
        empty_for: spec.update_schedule.opportunistic.as_ref().map(|opportunistic| opportunistic.empty_for.clone()),
        urgent: urgent.into_iter().map(name_of).collect(),
        own_windows,
        planned_partial: planned.map(|planned| planned.plugins.iter().map(|plugin| plugin.name.clone()).collect()),
        is_open: status.is_some_and(|status| status.next_window.as_deref() == Some("now")),
        down,
        no_backup,
        image_problem,
        scheduled_restart,
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
    fn backup_before_update_is_on_unless_spec_disables_it() {
        let no_backup = |backup: Option<Value>| {
            let mut server = server(&json!({"maintenanceWindow": {"enabled": false, "cron": "@daily"}}), 3);
            server.spec.backup = backup.map(|backup| serde_json::from_value(backup).unwrap());
            schedule_of(&server).no_backup
        };
        assert!(no_backup(Some(json!({"beforeUpdate": "Never"}))) && no_backup(Some(json!({"enabled": false}))));
        assert!(!no_backup(None) && !no_backup(Some(json!({}))) && !no_backup(Some(json!({"beforeUpdate": "Always"}))));
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
        let windows: Vec<String> = parsed.windows.iter().map(ToString::to_string).collect();
        assert_eq!(windows, ["0 4 * * 0 Europe/Berlin, for 2h", "@daily UTC, for 1h, no start in its last 20m"]);
        let blackouts: Vec<String> = parsed.blackouts.iter().map(ToString::to_string).collect();
        assert_eq!(blackouts, ["2026-01-23T18:00:00Z to 2026-01-25T18:00:00Z", "0 18 * * * Europe/Berlin, for 6h"]);
        let (at, words) = parsed.next.unwrap();
        assert_eq!((at.to_string().as_str(), words.as_str()), ("2026-01-25T03:00:00Z", "Sun 25 Jan 04:00 CET"));
        assert_eq!(schedule_of(&server(&schedule, 2)).next, None, "the status describes an older spec");
    }

    #[test]
    fn image_problem_applies_to_full_update_and_current_spec() {
        let mut server = server(&json!({}), 3);
        let planned =
            json!({"digest": "00", "version": "1.21.10", "build": 1, "summary": "", "imageProblem": "not found"});
        server.status.as_mut().unwrap().available_update = serde_json::from_value(planned).unwrap();
        assert_eq!(schedule_of(&server).for_full_update().image_problem.as_deref(), Some("not found"));
        let partial = Schedule { planned_partial: Some(Vec::new()), ..schedule_of(&server) };
        assert_eq!(partial.for_full_update().image_problem, None, "the problem is of a partial update");
        server.status.as_mut().unwrap().observed_generation = Some(2);
        assert_eq!(schedule_of(&server).image_problem, None);
    }

    #[test]
    fn opportunistic_restart_is_reported_unless_window_is_disabled() {
        let parsed = |enabled: bool| {
            let window = json!({"cron": "@daily", "enabled": enabled});
            schedule_of(&server(&json!({"maintenanceWindow": window, "opportunistic": {}}), 3)).empty_for
        };
        assert_eq!((parsed(true).as_deref(), parsed(false)), (Some("10m"), None));
    }

    #[test]
    fn scheduled_restarts_are_listed_with_next_from_operator() {
        let off = json!({"maintenanceWindow": {"enabled": false}});
        let mut server = server(&off, 3);
        let restart = |zone: &Value| serde_json::from_value(json!({"cron": "0 5 * * *", "timeZone": zone})).unwrap();
        server.spec.restart = restart(&Value::Null);
        assert_eq!(schedule_of(&server).scheduled_restart.as_deref(), Some("0 5 * * * Europe/Berlin"));
        server.spec.restart = restart(&json!("UTC"));
        server.status.as_mut().unwrap().next_restart = Some("Mon 26 Jan 05:00 UTC".to_owned());
        assert_eq!(schedule_of(&server).scheduled_restart.as_deref(), Some("0 5 * * * UTC, next Mon 26 Jan 05:00 UTC"));
        server.spec.suspend = true;
        assert_eq!(schedule_of(&server).scheduled_restart, None);
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
            "the operator has not planned an update"
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
        assert_eq!(parsed(&server), followed, "the status describes an older spec");
    }

    #[test]
    fn disabled_window_means_no_automatic_update() {
        let off = schedule_of(&server(&json!({"maintenanceWindow": {"enabled": false}}), 3));
        assert_eq!(off, Schedule { zone: "Europe/Berlin".to_owned(), ..Schedule::default() });
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
        let own_windows: Vec<String> = parsed.own_windows["geyser"].iter().map(ToString::to_string).collect();
        assert_eq!(
            (own_windows.as_slice(), parsed.own_windows.len()),
            (&["0 3 * * 3 Europe/Berlin, for 1h".to_owned()][..], 1)
        );
        assert_eq!(parsed.for_full_update(), parsed);
        assert_eq!(parsed.for_partial_update(&["Geyser"]).next, None, "the next window is for the full update");

        let status = server.status.as_mut().unwrap();
        status.conditions = serde_json::from_value(json!([{
            "type": "PartialUpdate", "status": "True", "reason": "OwnWindow", "message": "", "lastTransitionTime": "2026-01-21T12:00:00Z",
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
