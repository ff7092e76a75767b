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
pub(crate) fn build_body(channel: &NotifyChannel, namespace: &str, server: &str, notice: &NotificationState) -> Value {
    let kind = channel.kind;
    let escape = |value: &str| escape(kind, value);
    let words = channel.texts.of(notice.occasion).map_or_else(|| ours(notice), |theirs| with_doubt(theirs, notice));
    let text = fill(&words, |place| {
        Some(match place {
            "namespace" => escape(namespace),
            "server" => escape(server),
            "what" => escape(&notice.what),
            "when" => escape(notice.when.as_deref().unwrap_or("-")),
            "down" => escape(notice.down.as_deref().unwrap_or("-")),
            "why" => escape(notice.why.as_deref().unwrap_or("-")),
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
fn ours(notice: &NotificationState) -> String {
    let what = match notice.occasion {
        NotificationEvent::Planned => "update planned, {when}: {what}",
        NotificationEvent::Soon => "an update begins at {when}: {what}",
        NotificationEvent::Done if notice.why.is_some() && notice.down.is_some() => {
            "updated, not proven: {why}; down for {down}: {what}"
        }
        NotificationEvent::Done if notice.why.is_some() => "updated, not proven: {why}: {what}",
        NotificationEvent::Done if notice.down.is_some() => "updated, down for {down}: {what}",
        NotificationEvent::Done => "updated: {what}",
        NotificationEvent::RolledBack => "an update did not work here, and what ran before comes back: {what}. {why}",
        NotificationEvent::Failed => {
            "an update did not work here and does not go back by itself; somebody has to decide: {what}. {why}"
        }
        NotificationEvent::Blocked => "nothing newer for 14 days: {what}",
        NotificationEvent::BackupFailed => "there is no copy that should be there: {what}",
        NotificationEvent::CrashLoop => "the server crashes again and again; somebody has to look: {what}",
        NotificationEvent::WorldDamaged => "the world is damaged; somebody has to look: {what}",
    };
    format!("{{namespace}}/{{server}}: {what}")
}

/// The user's text. If an update is not verified and the text has no place for the reason, the reason is appended. The
/// user's "all is well" would not fit such an update.
fn with_doubt(theirs: &str, notice: &NotificationState) -> String {
    let is_silent = notice.occasion == NotificationEvent::Done && notice.why.is_some() && !theirs.contains("{why}");
    if is_silent { format!("{theirs}\nnot proven: {{why}}") } else { theirs.to_owned() }
}

/// Fills in the placeholders. Any other text in braces stays as it is.
fn fill(words: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut text = String::new();
    let mut rest = words;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let filled = after.split_once('}').and_then(|(place, left)| Some((value(place)?, left)));
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
    for character in value.chars().map(|it| if it.is_control() { ' ' } else { it }) {
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
    let kept = text.chars().take_while(|character| match left.checked_sub(character.len_utf16()) {
        Some(after) => {
            left = after;
            true
        }
        None => false,
    });
    kept.chain(['…']).collect()
}

#[cfg(test)]
mod tests;
