use serde_json::{Value, json};

use super::*;
use crate::server::check::check;
use crate::server::check::tests::server;

fn asked(value: &str) -> Option<Result<Scope, String>> {
    let server: crds::PaperMCServer = serde_json::from_value(json!({
        "metadata": {"name": "lobby", "annotations": {"nightshift.dev/apply-now": value}},
        "spec": {"updateStrategy": "auto"},
    }))
    .unwrap();
    Scope::asked(&server)
}

#[test]
fn a_request_names_plugins_and_paper_and_one_without_a_scope_names_nothing() {
    assert_eq!(asked("1767225600"), None);
    let scope = asked("1767225600;only=plugin/vault, paper,plugin/luckperms").unwrap().unwrap();
    assert_eq!((scope.paper, scope.to_string()), (true, "paper,plugin/luckperms,plugin/vault".to_owned()));
}

#[test]
fn a_scope_that_cannot_be_read_is_told_with_the_place_and_the_way() {
    for (options, problem) in [
        ("onyl=plugin/vault", "`onyl=plugin/vault` is not known"),
        ("", "`` is not known"),
        ("only=", "`` is neither `paper` nor `plugin/` and a name"),
        ("only=plugin/", "`plugin/` is neither"),
        ("only=plugin/vault,luckperms", "`luckperms` is neither"),
    ] {
        let why = asked(&format!("1767225600;{options}")).unwrap().unwrap_err();
        assert!(why.starts_with("`nightshift.dev/apply-now`: ") && why.contains(problem), "{why}");
        assert!(why.contains("write `<unix>;only=plugin/NAME`"), "{why}");
    }
    let why = asked(&format!("1767225600;only=plugin/{}", "x".repeat(1_024))).unwrap().unwrap_err();
    assert!(why.contains("longer than 1024 characters"), "{why}");
}

#[test]
fn a_refused_request_opens_no_gate_and_is_looked_at_again_when_it_is_over() {
    let (asked, refused) = (Alone::Asked(Scope::default()), Alone::Refused("why".to_owned()));
    assert!(Alone::Nothing.opens_the_gate() && asked.opens_the_gate());
    assert!(!refused.opens_the_gate() && !Alone::UpToDate(String::new()).opens_the_gate());
    let at = |second| Timestamp::from_second(second).unwrap();
    for alone in [asked, refused] {
        let outcome = alone.in_time(Outcome::Waiting { until: Some(at(900)) }, Some(at(60)), at(0));
        assert!(matches!(outcome, Outcome::Waiting { until: Some(until) } if until == at(60)));
    }
    let outcome = Alone::Nothing.in_time(Outcome::Waiting { until: Some(at(900)) }, Some(at(60)), at(0));
    assert!(matches!(outcome, Outcome::Waiting { until: Some(until) } if until == at(900)));
}

/// What may not wait on a server with this spec at noon, of two Plugins that it asks for and one that it does not.
fn urgent_on(spec: Value) -> Option<String> {
    urgent_beside(spec, false)
}

/// The same, where all that is planned has to wait for another server or not.
fn urgent_beside(spec: Value, has_to_wait: bool) -> Option<String> {
    let plugin = |name: &str, urgent: bool| -> Arc<Plugin> {
        let spec = json!({
            "source": {"type": "modrinth", "project": name}, "urgent": urgent, "instanceSelector": {"matchLabels": {}},
        });
        Arc::new(serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap())
    };
    let wish = |object: &str| {
        json!({
            "object": object, "key": {"source": "modrinth", "project": object}, "version": {"strategy": "auto"},
            "delay": "PT0S", "channel": "release",
        })
    };
    let request = serde_json::from_value(json!({
        "server": "games/lobby", "paper": {"strategy": "auto"}, "delay": "PT0S", "channel": "STABLE",
        "plugins": [wish("geyser"), wish("warps")],
    }));
    let plugins = [plugin("geyser", true), plugin("warps", false), plugin("elsewhere", true)];
    let noon = "2026-11-22T12:00:00Z".parse().unwrap();
    let scope = Scope::urgent(&check(&server(spec)).unwrap(), &request.unwrap(), &plugins, has_to_wait, noon);
    scope.map(|scope| scope.to_string())
}

#[test]
fn an_urgent_plugin_of_the_server_waits_for_no_window_and_in_one_everything_comes_together() {
    let window = |window: Value| json!({"updateSchedule": {"maintenanceWindow": window}});
    assert_eq!(urgent_on(window(json!({"cron": "0 4 * * 0"}))).as_deref(), Some("plugin/geyser"));
    let open = || window(json!({"cron": "30 11 * * *", "duration": "1h"}));
    assert_eq!(urgent_on(open()), None);
    assert_eq!(urgent_beside(open(), true).as_deref(), Some("plugin/geyser"), "the rest does not come in it");
    let ending = json!({"cron": "30 11 * * *", "duration": "1h", "latestStart": "45m"});
    assert_eq!(urgent_on(window(ending)), None, "what has begun there is brought to its end");
}

#[test]
fn nothing_is_urgent_on_a_server_that_is_left_alone() {
    let window = json!({"maintenanceWindow": {"cron": "0 4 * * 0"}});
    assert_eq!(urgent_beside(json!({"updateSchedule": window, "suspend": true}), true), None);
    assert_eq!(urgent_on(json!({})), None, "nobody has said that anything comes by itself");
    let off = json!({"updateSchedule": {"maintenanceWindow": {"enabled": false, "cron": "0 4 * * 0"}}});
    assert_eq!(urgent_on(off), None);
}
