//! Pure. Tests the text of messages.

use crds::paper_mc_server::{ChatKind, NotificationEvent, NotificationState, NotifyChannel};
use serde_json::{Value, json};

use super::*;

fn channel(kind: ChatKind, texts: &Value) -> NotifyChannel {
    serde_json::from_value(json!({
        "name": "team", "type": kind.as_str(), "secret": {"name": "chat", "key": "address"}, "texts": texts,
    }))
    .unwrap()
}

fn notification(event: NotificationEvent, more: &Value) -> NotificationState {
    let mut notification = json!({
        "event": event.as_str(), "about": "0123456789abcdef", "at": "2026-11-22T03:00:00Z",
        "until": "2026-11-23T03:00:00Z", "what": "ViaVersion 5.6.0 -> 5.7.1",
    });
    notification.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(notification).unwrap()
}

fn rendered(kind: ChatKind, texts: &Value, notification: &NotificationState) -> String {
    let body = build_body(&channel(kind, texts), "games", "lobby", notification);
    let field = if kind == ChatKind::Discord { "content" } else { "text" };
    body[field].as_str().unwrap().to_owned()
}

fn slack(event: NotificationEvent, more: &Value) -> String {
    rendered(ChatKind::Slack, &json!({}), &notification(event, more))
}

#[test]
fn message_defaults_name_server_and_details() {
    let bad = json!({"why": "CoreProtect 23.1 did not enable"});
    let lines = [
        slack(NotificationEvent::Planned, &json!({"when": "Sun 22 Nov 04:00 CET"})),
        slack(NotificationEvent::Soon, &json!({"when": "Sun 22 Nov 04:00 CET"})),
        slack(NotificationEvent::Done, &json!({"down": "21 s"})),
        slack(NotificationEvent::Done, &json!({})),
        slack(NotificationEvent::Done, &json!({"down": "21 s", "why": "the server's log could not be read"})),
        slack(NotificationEvent::RolledBack, &bad),
        slack(NotificationEvent::Failed, &bad),
        slack(NotificationEvent::Blocked, &json!({"what": "Paper 26.2 is blocked by GriefPrevention"})),
        slack(NotificationEvent::BackupFailed, &json!({"what": "the backup volume is full"})),
        slack(NotificationEvent::CrashLoop, &json!({"what": "its process exited 3 times within an hour"})),
        slack(NotificationEvent::NotResponding, &json!({"what": "it has not answered a ping since 03:00"})),
        slack(NotificationEvent::WorldDamaged, &json!({"what": "Chunk [1, 2] is allocated, but stream is missing"})),
    ];
    insta::assert_snapshot!(lines.join("\n").replace("-&gt;", "->"), @r"
    games/lobby: update planned, Sun 22 Nov 04:00 CET: ViaVersion 5.6.0 -> 5.7.1
    games/lobby: an update starts at Sun 22 Nov 04:00 CET: ViaVersion 5.6.0 -> 5.7.1
    games/lobby: updated in 21 s: ViaVersion 5.6.0 -> 5.7.1
    games/lobby: updated: ViaVersion 5.6.0 -> 5.7.1
    games/lobby: updated in 21 s, not verified: the server's log could not be read. Update: ViaVersion 5.6.0 -> 5.7.1
    games/lobby: an update failed and is rolled back: ViaVersion 5.6.0 -> 5.7.1. CoreProtect 23.1 did not enable
    games/lobby: an update failed and is not rolled back automatically. Action required: ViaVersion 5.6.0 -> 5.7.1. CoreProtect 23.1 did not enable
    games/lobby: no newer version for 14 days: Paper 26.2 is blocked by GriefPrevention
    games/lobby: a backup is missing: the backup volume is full
    games/lobby: the server crashes repeatedly. Action required: its process exited 3 times within an hour
    games/lobby: the server does not answer. Action required: it has not answered a ping since 03:00
    games/lobby: the world is damaged. Action required: Chunk [1, 2] is allocated, but stream is missing
    ");
}

#[test]
fn message_template_is_rendered_per_language_line() {
    let texts =
        json!({"done": "**{server}** is back after {down}: {what}\n{server} ist nach {down} wieder da ({why})"});
    let done = notification(NotificationEvent::Done, &json!({"down": "21 s", "what": "Via_Version 5.7.1"}));
    let text = rendered(ChatKind::Discord, &texts, &done);
    assert_eq!(text, "**lobby** is back after 21 s: Via\\_Version 5.7.1\nlobby ist nach 21 s wieder da (-)");
    let soon = rendered(ChatKind::Discord, &texts, &notification(NotificationEvent::Soon, &json!({})));
    assert!(soon.starts_with("games/lobby: "), "the default text without a template: {soon}");
}

#[test]
fn message_template_cannot_hide_unverified_update() {
    let texts = json!({"done": "{server} is back"});
    let rendered =
        |texts: &Value, more: &Value| rendered(ChatKind::Slack, texts, &notification(NotificationEvent::Done, more));
    let unverified = json!({"why": "plugins/Shop.jar differs"});
    assert_eq!(rendered(&texts, &unverified), "lobby is back\nnot verified: plugins/Shop.jar differs");
    assert_eq!(rendered(&texts, &json!({})), "lobby is back");
    let with_placeholder = json!({"done": "{server} is back ({why})"});
    assert_eq!(rendered(&with_placeholder, &unverified), "lobby is back (plugins/Shop.jar differs)");
}

#[test]
fn message_keeps_unknown_placeholders_and_does_not_expand_values() {
    let texts = json!({"done": "{who} {what} } { {down"});
    let done = notification(NotificationEvent::Done, &json!({"what": "{server}"}));
    assert_eq!(rendered(ChatKind::Discord, &texts, &done), "{who} {server} } { {down");
}

#[test]
fn message_escapes_mentions_links_and_markup_in_names() {
    let evil = "@everyone <!channel> <@1> [x](https://example.org) **a** `b` & \u{7}\nend";
    let evil = notification(NotificationEvent::Done, &json!({"what": evil, "down": "1 s"}));
    let discord = build_body(&channel(ChatKind::Discord, &json!({})), "games", "lobby", &evil);
    assert_eq!(discord["allowed_mentions"], json!({"parse": []}));
    assert_eq!(discord["flags"], 4);
    let text = discord["content"].as_str().unwrap();
    let expected =
        "@\u{200b}everyone \\<!channel\\> \\<@\u{200b}1\\> \\[x\\](https://example.org) \\*\\*a\\*\\* \\`b\\` &   end";
    assert!(text.ends_with(expected), "{text}");
    let text = rendered(ChatKind::Slack, &json!({}), &evil);
    assert!(
        text.ends_with(
            "@\u{200b}everyone &lt;!channel&gt; &lt;@\u{200b}1&gt; [x](https://example.org) **a** `b` &amp;   end"
        ),
        "{text}"
    );
}

#[test]
fn message_fits_limit_of_its_chat() {
    let texts = json!({"done": "{what}".repeat(166)});
    for unit in ["x", "ä", "😀", "<", "&", "*"] {
        let done = notification(NotificationEvent::Done, &json!({"what": unit.repeat(1_024 / unit.len())}));
        for (kind, limit) in [(ChatKind::Discord, 2_000), (ChatKind::Slack, 40_000)] {
            let units = rendered(kind, &texts, &done).encode_utf16().count();
            assert!(units <= limit && units > limit - 3, "{unit} {units}");
        }
    }
}
