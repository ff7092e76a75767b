use serde_json::{Value, json};

use super::*;
use crate::server::test_server::server;
use validate::check;

const NOON: &str = "2026-11-22T12:00:00Z";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A Plugin of this name. `more` is added to its spec.
fn plugin(name: &str, more: &Value) -> Arc<Plugin> {
    let mut spec = json!({
        "source": {"type": "modrinth", "project": name}, "instanceSelector": {"matchLabels": {}},
    });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Arc::new(serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap())
}

fn windows(crons: &[&str]) -> Value {
    let window = |(at, cron): (usize, &&str)| json!({"name": format!("w{at}"), "cron": cron, "duration": "1h"});
    json!({"windows": crons.iter().enumerate().map(window).collect::<Vec<_>>()})
}

fn request() -> Request {
    let plugin_request = |object: &str| {
        json!({
            "object": object, "key": {"source": "modrinth", "project": object}, "version": {"strategy": "auto"},
            "delay": "PT0S", "channel": "release",
        })
    };
    serde_json::from_value(json!({
        "server": "games/lobby", "paper": {"strategy": "auto"}, "delay": "PT0S", "channel": "STABLE",
        "plugins": [plugin_request("geyser"), plugin_request("warps"), plugin_request("claims")],
    }))
    .unwrap()
}

/// The candidates at this instant on a server with this spec.
fn candidates(spec: Value, plugins: &[Arc<Plugin>], has_to_wait: bool, now: &str) -> UrgentCandidates {
    let server = check(&server(spec)).unwrap();
    UrgentCandidates::new(&server, &request(), plugins, has_to_wait, |_| true, at(now))
}

fn sundays() -> Value {
    json!({"updateSchedule": {"maintenanceWindow": {"cron": "0 4 * * 0"}}})
}

fn urgent_scope(spec: Value, has_to_wait: bool) -> Option<String> {
    let plugins = [
        plugin("geyser", &json!({"urgent": true})),
        plugin("warps", &json!({})),
        plugin("elsewhere", &json!({"urgent": true})),
    ];
    candidates(spec, &plugins, has_to_wait, NOON).urgent.map(|scope| scope.to_string())
}

#[test]
fn urgent_plugin_needs_no_window_and_joins_open_one() {
    let window = |window: Value| json!({"updateSchedule": {"maintenanceWindow": window}});
    assert_eq!(urgent_scope(sundays(), false).as_deref(), Some("plugin/geyser"));
    let open = || window(json!({"cron": "30 11 * * *", "duration": "1h"}));
    assert_eq!(urgent_scope(open(), false), None);
    assert_eq!(urgent_scope(open(), true).as_deref(), Some("plugin/geyser"), "the rest is not applied in this window");
    let ending = json!({"cron": "30 11 * * *", "duration": "1h", "latestStart": "45m"});
    assert_eq!(urgent_scope(window(ending), false), None, "an update that has begun is completed");
}

#[test]
fn early_update_is_not_planned_for_suspended_server() {
    let window = json!({"maintenanceWindow": {"cron": "0 4 * * 0"}});
    let off = json!({"maintenanceWindow": {"enabled": false, "cron": "0 4 * * 0"}});
    let plugins = [plugin("geyser", &json!({"urgent": true})), plugin("warps", &windows(&["0 12 * * *"]))];
    for spec in [json!({"updateSchedule": window, "suspend": true}), json!({}), json!({"updateSchedule": off})] {
        assert_eq!(candidates(spec.clone(), &plugins, true, NOON), UrgentCandidates::default(), "{spec}");
    }
}

/// The Plugins in their own windows, as `plugin/warps 12:00-13:00`, or as `plugin/warps 13:00` before they open.
fn own_windows(spec: Value, plugins: &[Arc<Plugin>], now: &str) -> Vec<String> {
    let clock = |at: Timestamp| at.strftime("%a %H:%M").to_string();
    let format_window = |own_window: PluginWindow| match own_window.gate {
        Gate::Open { opened_at, until } => format!("{} {}-{}", own_window.scope, clock(opened_at), clock(until)),
        Gate::NoNewStarts { until, .. } => format!("{} ends {}", own_window.scope, clock(until)),
        Gate::Shut { opens } => format!("{} {}", own_window.scope, opens.map(clock).unwrap_or_default()),
    };
    candidates(spec, plugins, false, now).own_windows.into_iter().map(format_window).collect()
}

#[test]
fn plugin_window_opens_for_that_plugin_alone() {
    let warps = |cron: &str| [plugin("warps", &windows(&[cron])), plugin("claims", &json!({}))];
    assert_eq!(own_windows(sundays(), &warps("30 11 * * *"), NOON), ["plugin/warps Sun 11:30-Sun 12:30"]);
    assert_eq!(own_windows(sundays(), &warps("0 13 * * *"), NOON), ["plugin/warps Sun 13:00"]);
    let at_noon_too = json!({"updateSchedule": {"maintenanceWindow": {"cron": "15 12 * * *"}}});
    assert_eq!(own_windows(at_noon_too.clone(), &warps("30 11 * * *"), NOON), ["plugin/warps Sun 11:30-Sun 12:15"]);
    assert_eq!(
        own_windows(at_noon_too.clone(), &warps("15 12 * * *"), NOON),
        Vec::<String>::new(),
        "the server's window applies everything"
    );
    assert_eq!(
        own_windows(at_noon_too, &warps("30 11 * * *"), "2026-11-22T12:20:00Z"),
        Vec::<String>::new(),
        "the server's window is open"
    );
}

#[test]
fn plugins_with_open_windows_update_together() {
    let plugins = [
        plugin("claims", &windows(&["45 11 * * *"])),
        plugin("geyser", &windows(&["0 14 * * *", "0 20 * * *"])),
        plugin("warps", &windows(&["30 11 * * *"])),
    ];
    let now = own_windows(sundays(), &plugins, NOON);
    assert_eq!(now, ["plugin/claims,plugin/warps Sun 11:30-Sun 12:30", "plugin/geyser Sun 14:00"]);
    let later = own_windows(sundays(), &plugins, "2026-11-22T12:30:00Z");
    assert_eq!(later, ["plugin/claims Sun 11:45-Sun 12:45", "plugin/geyser Sun 14:00", "plugin/warps Mon 11:30"]);
}

#[test]
fn plugin_window_changes_when_another_opens() {
    let plugins = [plugin("claims", &windows(&["45 11 * * *"])), plugin("warps", &windows(&["15 12 * * *"]))];
    let [open, ahead] = candidates(sundays(), &plugins, false, NOON).own_windows.try_into().unwrap();
    let (noon, own_update) = (at("2026-11-22T12:15:00Z"), UrgentUpdate::InOwnWindow(open));
    assert_eq!((own_update.changes_at(), own_update.next_opening()), (Some(noon), Some(at("2026-11-23T11:45:00Z"))));
    assert_eq!(UrgentUpdate::InOwnWindow(ahead).next_opening(), Some(noon));
}

#[test]
fn plugin_window_admits_no_start_after_latest_start() {
    let ending = json!({"windows": [{"name": "a", "cron": "30 11 * * *", "duration": "1h", "latestStart": "40m"}]});
    let ends = plugin("warps", &ending);
    assert_eq!(own_windows(sundays(), std::slice::from_ref(&ends), NOON), ["plugin/warps ends Sun 12:30"]);
    let both = own_windows(sundays(), &[ends, plugin("claims", &windows(&["0 12 * * *"]))], NOON);
    assert_eq!(both, ["plugin/claims,plugin/warps Sun 11:30-Sun 12:30"]);
}

#[test]
fn plugin_window_yields_to_blackouts_and_uses_server_zone() {
    let mut spec = sundays();
    spec["updateSchedule"]["blackouts"] = json!([{"name": "event", "cron": "0 11 * * 0", "duration": "90m"}]);
    let warps = plugin("warps", &windows(&["45 11 * * *"]));
    assert_eq!(own_windows(spec, std::slice::from_ref(&warps), NOON), ["plugin/warps Sun 12:30"]);
    let mut spec = sundays();
    spec["timeZone"] = json!("Europe/Berlin");
    assert_eq!(own_windows(spec, &[warps], NOON), ["plugin/warps Mon 10:45"]);
}

#[test]
fn urgent_plugin_ignores_its_own_window() {
    let mut urgent = windows(&["0 12 * * *"]);
    urgent["urgent"] = json!(true);
    let plugins = [plugin("geyser", &urgent), plugin("warps", &windows(&["0 12 30 2 *", "0 13 * * *"]))];
    let all = candidates(sundays(), &plugins, false, NOON);
    assert_eq!(all.urgent.unwrap().to_string(), "plugin/geyser");
    assert_eq!(own_windows(sundays(), &plugins, NOON), ["plugin/warps Sun 13:00"]);
    let server = check(&server(sundays())).unwrap();
    assert_eq!(UrgentCandidates::new(&server, &request(), &plugins, false, |_| false, at(NOON)).own_windows, []);
}

#[test]
fn plugin_beside_urgent_one_keeps_its_own_window() {
    let window = server(sundays());
    let windows = check(&window).unwrap().updates.windows;
    let gate = |own_window: Gate| {
        let own_window = PluginWindow { scope: Scope::default(), gate: own_window, next: None, changes_at: None };
        UrgentUpdate::Both { urgent: Scope::default(), own_window }.gate(&windows, at("2026-11-22T11:50:00Z"), at(NOON))
    };
    let (opened_at, until) = (at("2026-11-22T11:30:00Z"), at("2026-11-22T12:30:00Z"));
    let open = Gate::Open { opened_at, until };
    assert_eq!(gate(open), open);
    assert_eq!(gate(Gate::NoNewStarts { opened_at, until, opens: None }), open);
}
