//! Pure. What may come alone while everything else stays at what runs: the scope of a request to apply now
//! (`nightshift.dev/apply-now: <unix>;only=plugin/NAME`), and Plugins that may not wait (`spec.urgent`).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crds::{PaperMCServer, Plugin};
use jiff::Timestamp;
use kube::ResourceExt;
use resolver::lock::{Lock, LockReason};
use resolver::request::Request;
use scheduler::gate::Gate;

use super::check::CheckedServer;
use crate::k8s::labels::APPLY_NOW;
use crate::requeue::Outcome;

mod narrow;

pub(crate) use narrow::{Narrowed, narrow};

/// As many as names that help, and no more.
const NAMED: usize = 5;

/// As much as `status.lastHandled` holds: what it does not hold would never be known as accepted.
const LONGEST: usize = 1_024;

/// What may change; never empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Scope {
    /// Paper, with the Java and the image that it needs.
    pub(crate) paper: bool,
    /// Names of Plugin objects.
    pub(crate) plugins: BTreeSet<String>,
}

/// What comes alone in one pass.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Alone {
    /// Nothing: all that is planned comes together.
    #[default]
    Nothing,
    /// What a person asks for: that is planned, and nothing else.
    Asked(Scope),
    /// What may not wait for a window (`spec.urgent` of a Plugin): that is planned, until a window opens.
    Urgent(Scope),
    /// What a person asks for cannot come, and why. It is tried again for as long as the request counts.
    Refused(String),
    /// Nothing is newer of what a person asks for; in words. The request is served by that.
    UpToDate(String),
}

impl Alone {
    /// Whether the request to apply now opens the gate. One that is refused must not: what is planned then is more than it names.
    pub(crate) fn opens_the_gate(&self) -> bool {
        match self {
            Self::Nothing | Self::Asked(_) | Self::Urgent(_) => true,
            Self::Refused(_) | Self::UpToDate(_) => false,
        }
    }

    /// For a condition: whether something comes alone, the reason, and the words.
    pub(crate) fn in_words(&self) -> Option<(bool, &'static str, String)> {
        match self {
            Self::Nothing | Self::UpToDate(_) => None,
            Self::Asked(scope) => {
                let text = format!("`{APPLY_NOW}` names {scope}: everything else stays at what runs");
                Some((true, "Asked", text))
            }
            Self::Urgent(scope) => {
                let text =
                    format!("`spec.urgent`: {scope} waits for no window, and everything else stays at what runs");
                Some((true, "Urgent", text))
            }
            Self::Refused(why) => Some((false, "Refused", why.clone())),
        }
    }

    /// What somebody has to be told who asked in vain.
    pub(crate) fn refusal(&self) -> Option<&str> {
        match self {
            Self::Refused(why) | Self::UpToDate(why) => Some(why),
            Self::Nothing | Self::Asked(_) | Self::Urgent(_) => None,
        }
    }

    /// When a server has to be looked at because what comes alone is planned no longer: at the end of the request, or when a
    /// window opens, and not minutes after it.
    pub(crate) fn in_time(&self, outcome: Outcome, until: Option<Timestamp>, now: Timestamp) -> Outcome {
        self.ends(until).map_or(outcome, |ends| outcome.no_later_than(ends, now))
    }

    /// When it is planned no longer, if something else can be by then.
    pub(crate) fn ends(&self, until: Option<Timestamp>) -> Option<Timestamp> {
        match self {
            Self::Asked(_) | Self::Urgent(_) | Self::Refused(_) => until,
            Self::Nothing | Self::UpToDate(_) => None,
        }
    }
}

impl Scope {
    /// The scope of the server's request to apply now, if it has one; `Err` says what is wrong with it.
    pub(crate) fn asked(server: &PaperMCServer) -> Option<Result<Self, String>> {
        let written = server.annotations().get(APPLY_NOW)?;
        let (_, options) = written.split_once(';')?;
        if written.len() > LONGEST {
            return Some(Err(format!("`{APPLY_NOW}` is longer than {LONGEST} characters; ask for fewer at a time")));
        }
        Some(Self::read(options))
    }

    /// The Plugins of a server that may not wait for its window; None where nothing comes by itself, and in an opening of a
    /// window: there all that is planned comes together, and what has begun is brought to its end. Unless that `has_to_wait` for the server
    /// that is followed: they do not.
    pub(crate) fn urgent(
        server: &CheckedServer,
        request: &Request,
        plugins: &[Arc<Plugin>],
        has_to_wait: bool,
        now: Timestamp,
    ) -> Option<Self> {
        let windows = &server.windows;
        let is_shut = has_to_wait || matches!(windows.gate(now), Gate::Shut { .. });
        if !server.changes_by_itself() || !is_shut {
            return None;
        }
        let urgent: BTreeSet<String> =
            plugins.iter().filter(|plugin| plugin.spec.urgent).map(|plugin| plugin.name_any()).collect();
        let wishes = request.plugins.iter().map(|wish| &wish.object).filter(|object| urgent.contains(*object));
        let plugins: BTreeSet<String> = wishes.cloned().collect();
        (!plugins.is_empty()).then_some(Self { paper: false, plugins })
    }

    /// Everything that a request asks for, and everything that somebody has asked for of what runs.
    pub(crate) fn everything(request: &Request, runs: &Lock) -> Self {
        let wishes = request.plugins.iter().map(|wish| &wish.object);
        Self { paper: true, plugins: wishes.chain(asked_of(runs)).cloned().collect() }
    }

    /// Whether this Plugin may change.
    pub(crate) fn has(&self, object: &str) -> bool {
        self.plugins.contains(object)
    }

    /// Its parts, each alone.
    pub(crate) fn parts(&self) -> Vec<Self> {
        let paper = self.paper.then(|| Self { paper: true, ..Self::default() });
        let plugin = |name: &String| Self { paper: false, plugins: BTreeSet::from([name.clone()]) };
        paper.into_iter().chain(self.plugins.iter().map(plugin)).collect()
    }

    /// Both.
    pub(crate) fn and(&self, other: &Self) -> Self {
        Self { paper: self.paper || other.paper, plugins: self.plugins.union(&other.plugins).cloned().collect() }
    }

    /// What is left without the other.
    pub(crate) fn without(&self, other: &Self) -> Self {
        Self { paper: self.paper && !other.paper, plugins: self.plugins.difference(&other.plugins).cloned().collect() }
    }

    /// What is wrong with names that mean nothing on this server. A Plugin that is gone means its removal, for as long as what
    /// it asked for runs.
    pub(crate) fn unknown(&self, request: &Request, runs: &Lock) -> Option<String> {
        let known = Self::everything(request, runs).plugins;
        let strange = self.plugins.difference(&known).next()?;
        let fix = match known.iter().take(NAMED).map(|name| format!("plugin/{name}")).collect::<Vec<_>>() {
            names if names.is_empty() => "it has none".to_owned(),
            names if known.len() > NAMED => format!("write {} or another of its {}", names.join(", "), known.len()),
            names => format!("write {}", names.join(" or ")),
        };
        Some(format!("`{APPLY_NOW}` names plugin/{strange}, which is no Plugin for this server; {fix}"))
    }

    /// Whether what it names differs between two sets.
    pub(crate) fn differs(&self, a: &Lock, b: &Lock) -> bool {
        let named = |lock: &Lock| -> BTreeSet<(String, String)> {
            let plugins = lock.plugins.iter().filter(|plugin| match &plugin.reason {
                LockReason::RequestedBy(objects) => objects.iter().any(|object| self.has(object)),
                LockReason::NeededBy(_) => false,
            });
            plugins.map(|plugin| (plugin.project_id.clone(), plugin.release_id.clone())).collect()
        };
        (self.paper && a.paper_name() != b.paper_name()) || named(a) != named(b)
    }

    fn read(options: &str) -> Result<Self, String> {
        const WAY: &str =
            "write `<unix>;only=plugin/NAME`, several with commas, or `<unix>` alone for all that is planned";
        let wrong = |what: String| format!("`{APPLY_NOW}`: {what}; {WAY}");
        let Some(names) = options.trim().strip_prefix("only=") else {
            return Err(wrong(format!("`{options}` is not known")));
        };
        let mut scope = Self::default();
        for name in names.split(',').map(str::trim) {
            match name.strip_prefix("plugin/") {
                Some(plugin) if !plugin.is_empty() => drop(scope.plugins.insert(plugin.to_owned())),
                None if name == "paper" => scope.paper = true,
                Some(_) | None => return Err(wrong(format!("`{name}` is neither `paper` nor `plugin/` and a name"))),
            }
        }
        Ok(scope)
    }
}

/// As a request writes it.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paper = self.paper.then(|| "paper".to_owned());
        let names = paper.into_iter().chain(self.plugins.iter().map(|name| format!("plugin/{name}")));
        f.write_str(&names.collect::<Vec<_>>().join(","))
    }
}

/// The names of the Plugins that asked for what runs.
fn asked_of(runs: &Lock) -> impl Iterator<Item = &String> {
    runs.plugins.iter().flat_map(|plugin| match &plugin.reason {
        LockReason::RequestedBy(objects) => objects.as_slice(),
        LockReason::NeededBy(_) => &[],
    })
}

/// What a person reads who asked for what cannot come alone; `with` is what has to come along, if that is known.
pub(crate) fn not_alone(scope: &Scope, with: Option<&Scope>) -> String {
    let no = format!("no set holds everything but {scope} at what runs, and is newer");
    match with {
        Some(with) => format!(
            "{no}: {with} has to come along. Ask again with `;only={}`, or without `;only=` for all that is planned",
            scope.and(with)
        ),
        None => format!("{no}; ask again without `;only=` for all that is planned"),
    }
}

/// What a person reads who asked for what is as new as it may be.
pub(crate) fn up_to_date(scope: &Scope) -> String {
    format!("nothing of {scope} can change now: what runs is what its Plugin and the server let it have")
}

#[cfg(test)]
mod tests;
