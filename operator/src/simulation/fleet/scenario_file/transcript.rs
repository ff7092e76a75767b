//! Pure. Renders the transcript of a scenario file: the actions of cluster, server, players and operator, in a text
//! that is the same in each run.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use regex::{Captures, Regex};
use serde_json::Value;

use crate::simulation::cluster::SimCluster;

impl SimCluster {
    /// An object was created. Events are the ones that users read.
    pub(in crate::simulation) fn trace_created(&mut self, plural: &str, made: &Value) {
        if plural == "pods" {
            self.record_pull(made);
        }
        if plural == "events" {
            let text = |field: &str| made[field].as_str().unwrap_or_default().replace('\n', " / ");
            self.trace_if_scripted(format!("Event: {} {}: {}", text("type"), text("reason"), text("note")));
        }
    }

    /// Adds the conditions whose status or reason has changed.
    pub(in crate::simulation) fn trace_conditions(&mut self, before: Option<&Value>) {
        let Ok(server) = self.objects.get(&self.server_key()) else { return };
        let (old, new) = (before.map(conditions).unwrap_or_default(), conditions(server));
        let mut lines = Vec::new();
        for (name, condition) in &new {
            let is_unchanged = old
                .get(name)
                .is_some_and(|old| (&old["status"], &old["reason"]) == (&condition["status"], &condition["reason"]));
            let text = |field: &str| condition[field].as_str().unwrap_or_default().replace('\n', " / ");
            if !is_unchanged && condition["reason"] != "StepExecuted" {
                lines.push(format!("condition: {name}={} {}: {}", text("status"), text("reason"), text("message")));
            }
        }
        let removed = old.keys().filter(|name| !new.contains_key(*name));
        lines.extend(removed.map(|name| format!("condition: {name} is removed")));
        for line in lines {
            self.trace_if_scripted(line);
        }
    }

    /// Adds whether the pod may be evicted, if that has changed.
    pub(in crate::simulation) fn trace_budget(&mut self, before: Option<&Value>) {
        let allows = |budget: &Value| budget["spec"]["maxUnavailable"] == 1;
        let Ok(budget) = self.objects.get(&self.budget_key()) else { return };
        let is_allowed = allows(budget);
        if before.is_some_and(|before| allows(before) != is_allowed) {
            let verb = if is_allowed { "allows" } else { "forbids" };
            self.trace_if_scripted(format!("operator: {verb} the eviction of the pod"));
        }
    }
}

fn conditions(server: &Value) -> BTreeMap<String, Value> {
    let all = server["status"]["conditions"].as_array().into_iter().flatten();
    all.map(|condition| (condition["type"].as_str().unwrap_or_default().to_owned(), condition.clone())).collect()
}

/// Names values that differ between runs, or after a change of a template: `revision A`, `lock 1`, `backup 1`.
#[derive(Debug)]
pub(super) struct Names {
    by_value: BTreeMap<String, String>,
    revisions: usize,
    locks: usize,
    backups: usize,
    patterns: Patterns,
}

/// The patterns, in the order in which they are replaced.
#[derive(Debug, Clone)]
struct Patterns {
    second_fraction: Regex,
    real_time: Regex,
    date_text: Regex,
    uid: Regex,
    volume: Regex,
    dated_folder: Regex,
    backup: Regex,
    revision: Regex,
    lock: Regex,
}

impl Patterns {
    fn new() -> Self {
        let pattern = |text: &str| Regex::new(text).expect("a pattern");
        Self {
            second_fraction: pattern(r"(:[0-9]{2})\.[0-9]+Z"),
            real_time: pattern(r"\b20(?:[01][0-9]|2[0-9])-[0-9]{2}-[0-9]{2}T[0-9:]+Z"),
            date_text: pattern(r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) ([0-9]{1,2} [A-Z][a-z]{2} [0-9]{2}:[0-9]{2})"),
            uid: pattern(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
            volume: pattern(r"/(?:dev/shm|tmp)/[A-Za-z0-9._]+"),
            dated_folder: pattern(r"\.nightshift/(kept|set-aside)/20[0-9]{6}T[0-9]{6}Z"),
            backup: pattern(
                r"\b20[0-9]{6}T[0-9]{6}Z[-a-z0-9]*|\b20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}Z?[-a-z0-9]*",
            ),
            revision: pattern(
                r"(?:revision |update/|roll-back/|restart/|drain/|restore/)[0-9a-zA-Z:.-]{8,64}(?:/[0-9TZ:.-]+)?",
            ),
            lock: pattern(r"\b[0-9a-f]{64}\b|\b[0-9a-f]{16}\b|\b[0-9a-f]{12}\b|\b[0-9a-f]{8}\b"),
        }
    }
}

impl Names {
    pub(super) fn new() -> Self {
        Self { by_value: BTreeMap::new(), revisions: 0, locks: 0, backups: 0, patterns: Patterns::new() }
    }

    /// The text with these names.
    pub(super) fn replace_names(&mut self, text: &str, cluster: &SimCluster) -> String {
        let mut text = text.to_owned();
        // The controller names its entries differently from the operator's revisions.
        for (entry, revision) in &cluster.revisions {
            text = text.replace(&format!("revision {entry}"), &format!("revision {revision}"));
        }
        let patterns = self.patterns.clone();
        let text = patterns.second_fraction.replace_all(&text, "${1}Z").into_owned();
        let text = patterns.real_time.replace_all(&text, "<a real time>").into_owned();
        let scenario_date = |found: &Captures<'_>| scenario_date_text(&found[0]);
        let text = patterns.date_text.replace_all(&text, scenario_date).into_owned();
        let text = patterns.uid.replace_all(&text, "<uid>").into_owned();
        let text = patterns.volume.replace_all(&text, "<volume>").into_owned();
        // These folders have the names of real seconds, which may be those of the backup beside them or one second later.
        let text = patterns.dated_folder.replace_all(&text, ".nightshift/${1}/<a real time>").into_owned();
        let text = patterns.backup.replace_all(&text, |found: &Captures<'_>| self.backup(&found[0])).into_owned();
        let text = patterns.revision.replace_all(&text, |found: &Captures<'_>| self.revision(&found[0])).into_owned();
        patterns.lock.replace_all(&text, |found: &Captures<'_>| self.lock(&found[0])).into_owned()
    }

    fn revision(&mut self, text: &str) -> String {
        let from = text.find([' ', '/']).map_or(0, |at| at + 1);
        let (kind, revision) = text.split_at(from);
        match kind {
            "restart/" => return "a restart".to_owned(),
            "drain/" => return "the move to another node".to_owned(),
            "restore/" => return "the restore".to_owned(),
            _ => {}
        }
        if !revision.as_bytes().iter().take(8).all(u8::is_ascii_hexdigit) {
            return text.to_owned();
        }
        let key = format!("revision {}", &revision[..8]);
        if !self.by_value.contains_key(&key) {
            let letter = char::from(b'A' + u8::try_from(self.revisions).unwrap_or(25).min(25));
            self.by_value.insert(key.clone(), letter.to_string());
            self.revisions += 1;
        }
        let kind = match kind {
            "update/" => "the update to ",
            "roll-back/" => "the roll-back from ",
            _ => "",
        };
        format!("{kind}revision {}", self.by_value[&key])
    }

    fn lock(&mut self, text: &str) -> String {
        let key = format!("lock {}", &text[..8]);
        if !self.by_value.contains_key(&key) {
            self.locks += 1;
            self.by_value.insert(key.clone(), format!("#{}", self.locks));
        }
        self.by_value[&key].clone()
    }

    fn backup(&mut self, text: &str) -> String {
        if !self.by_value.contains_key(text) {
            self.backups += 1;
            self.by_value.insert(text.to_owned(), format!("backup-{}", self.backups));
        }
        self.by_value[text].clone()
    }
}

/// A date in words, if it belongs to the scenario.
fn scenario_date_text(text: &str) -> String {
    let is_one = jiff::fmt::strtime::parse("%a %d %b %H:%M %Y", format!("{text} 2030"))
        .and_then(|parsed| parsed.to_datetime())
        .is_ok_and(|date| date.weekday() == weekday(text) && date.month() <= 3);
    if is_one { text.to_owned() } else { "<a real time>".to_owned() }
}

fn weekday(text: &str) -> jiff::civil::Weekday {
    use jiff::civil::Weekday::{Friday, Monday, Saturday, Sunday, Thursday, Tuesday, Wednesday};
    let days = [Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday];
    let names = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    names.iter().position(|name| text.starts_with(name)).map_or(Sunday, |at| days[at])
}

/// A line of the transcript: `Sun 03:00:04  operator   deletes the pod`.
pub(super) fn format_line(at: Timestamp, server: Option<&str>, text: &str) -> String {
    let at = at.to_zoned(TimeZone::UTC).strftime("%a %H:%M:%S").to_string();
    let server = server.map(|server| format!("{server:<10} ")).unwrap_or_default();
    let is_actor = |actor: &str| actor.len() < 20 && !actor.contains('"');
    match text.split_once(": ").filter(|(actor, _)| is_actor(actor)) {
        Some((actor, rest)) => format!("{at}  {server}{actor:<14} {rest}"),
        None => format!("{at}  {server}{text}"),
    }
}
