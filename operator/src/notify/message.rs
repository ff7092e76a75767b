//! Pure. Builds the message for a channel from Nightshift's text or the user's, in the syntax of its chat.
//!
//! Names of plugins and texts of verifications come from third parties. They must not mention users, become links or
//! change the format of a message, so these values are escaped. The admin wrote the text around them.

use std::fmt::Write as _;

use crds::paper_mc_server::{ChatKind, NotificationEvent, NotificationState, NotifyChannel};
use serde_json::{Value, json};

/// Discord refuses longer messages. It counts UTF-16 units, as JavaScript does.
const DISCORD_LIMIT: usize = 2_000;
/// Slack truncates longer messages, and refuses much longer ones.
const SLACK_LIMIT: usize = 40_000;
/// `SUPPRESS_EMBEDS` of Discord: no previews of links.
const NO_PREVIEWS: u32 = 1 << 2;

/// The whole body of the request.
pub(crate) fn build_body(
    channel: &NotifyChannel,
    namespace: &str,
    server: &str,
    notification: &NotificationState,
) -> Value {
    let kind = channel.kind;
    let escape = |value: &str| escape(kind, value);
    let template = channel
        .texts
        .text_for(notification.event)
        .map_or_else(|| default_text(notification), |user_text| with_unverified_reason(user_text, notification));
    let text = fill(&template, |placeholder| {
        Some(match placeholder {
            "namespace" => escape(namespace),
            "server" => escape(server),
            "what" => escape(&notification.what),
            "when" => escape(notification.when.as_deref().unwrap_or("-")),
            "down" => escape(notification.down.as_deref().unwrap_or("-")),
            "why" => escape(notification.why.as_deref().unwrap_or("-")),
            _ => return None,
        })
    });
    match kind {
        ChatKind::Discord => json!({
            "content": cut(&text, DISCORD_LIMIT), "allowed_mentions": {"parse": []}, "flags": NO_PREVIEWS,
        }),
        ChatKind::Slack => json!({"text": cut(&text, SLACK_LIMIT), "unfurl_links": false}),
    }
}

/// The text of a notification without a text of the user's.
fn default_text(notification: &NotificationState) -> String {
    let template = match notification.event {
        NotificationEvent::Planned => "update planned, {when}: {what}",
        NotificationEvent::Soon => "an update starts at {when}: {what}",
        NotificationEvent::Done if notification.why.is_some() && notification.down.is_some() => {
            "updated in {down}, not verified: {why}. Update: {what}"
        }
        NotificationEvent::Done if notification.why.is_some() => "updated, not verified: {why}. Update: {what}",
        NotificationEvent::Done if notification.down.is_some() => "updated in {down}: {what}",
        NotificationEvent::Done => "updated: {what}",
        NotificationEvent::RolledBack => "an update failed and is rolled back: {what}. {why}",
        NotificationEvent::Failed => {
            "an update failed and is not rolled back automatically. Action required: {what}. {why}"
        }
        NotificationEvent::Blocked => "no newer version for 14 days: {what}",
        NotificationEvent::BackupFailed => "a backup is missing: {what}",
        NotificationEvent::CrashLoop => "the server crashes repeatedly. Action required: {what}",
        NotificationEvent::NotResponding => "the server does not answer. Action required: {what}",
        NotificationEvent::WorldDamaged => "the world is damaged. Action required: {what}",
    };
    format!("{{namespace}}/{{server}}: {template}")
}

/// The user's text. If an update is not verified and the text has no place for the reason, the reason is appended. The
/// user's "all is well" would not fit such an update.
fn with_unverified_reason(user_text: &str, notification: &NotificationState) -> String {
    let is_silent =
        notification.event == NotificationEvent::Done && notification.why.is_some() && !user_text.contains("{why}");
    if is_silent { format!("{user_text}\nnot verified: {{why}}") } else { user_text.to_owned() }
}

/// Fills in the placeholders. Any other text in braces stays as it is.
fn fill(template: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let filled = after.split_once('}').and_then(|(placeholder, left)| Some((value(placeholder)?, left)));
        rest = if let Some((value, left)) = filled {
            text.push_str(&value);
            left
        } else {
            text.push('{');
            after
        };
    }
    text.push_str(rest);
    text
}

/// A value as plain text. A zero-width space follows `@`, because receivers of Slack's format read mentions from plain
/// text.
fn escape(kind: ChatKind, value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for character in value.chars().map(|character| if character.is_control() { ' ' } else { character }) {
        match (kind, character) {
            (_, '@') => escaped.push_str("@\u{200b}"),
            (ChatKind::Discord, '\\' | '*' | '_' | '~' | '`' | '|' | '<' | '>' | '#' | '[' | ']') => {
                write!(escaped, "\\{character}").expect("writing into a String cannot fail");
            }
            (ChatKind::Slack, '&') => escaped.push_str("&amp;"),
            (ChatKind::Slack, '<') => escaped.push_str("&lt;"),
            (ChatKind::Slack, '>') => escaped.push_str("&gt;"),
            (ChatKind::Discord | ChatKind::Slack, plain) => escaped.push(plain),
        }
    }
    escaped
}

/// At most `limit` UTF-16 units.
fn cut(text: &str, limit: usize) -> String {
    if text.encode_utf16().count() <= limit {
        return text.to_owned();
    }
    let mut left = limit - '…'.len_utf16();
    let shortened = text.chars().take_while(|character| match left.checked_sub(character.len_utf16()) {
        Some(after) => {
            left = after;
            true
        }
        None => false,
    });
    shortened.chain(['…']).collect()
}

#[cfg(test)]
mod tests;
