//! Pure. What comes alone while everything else stays at what runs: the scope of a request to apply now
//! (`nightshift.dev/apply-now: <unix>;only=plugin/NAME`), and Plugins that wait for no window of the server; see [`early`].

use crds::PaperMCServer;
use jiff::Timestamp;
use kube::ResourceExt;
use resolver::lock::Lock;
use resolver::partial::Scope;
use resolver::request::Request;

use crate::k8s::labels::APPLY_NOW;
use crate::requeue::Outcome;

pub(crate) mod urgent;

use urgent::UrgentUpdate;

/// As many as names that help, and no more.
const NAMED: usize = 5;

/// As much as `status.lastHandled` holds: what it does not hold would never be known as accepted.
const LONGEST: usize = 1_024;

/// What comes alone in one pass.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum PartialSelection {
    /// Nothing: all that is planned comes together.
    #[default]
    Nothing,
    /// What a person asks for: that is planned, and nothing else.
    Asked(Scope),
    /// What waits for no window of the server: that is planned, until one opens.
    Early(UrgentUpdate),
    /// What a person asks for cannot come, and why. It is tried again for as long as the request counts.
    Refused(String),
    /// Nothing is newer of what a person asks for; in words. The request is served by that.
    UpToDate(String),
}

impl PartialSelection {
    /// Whether the request to apply now opens the gate. One that is refused must not: what is planned then is more than it names.
    pub(crate) fn opens_the_gate(&self) -> bool {
        match self {
            Self::Nothing | Self::Asked(_) | Self::Early(_) => true,
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
            Self::Early(early) => {
                let (reason, who) = early.in_words();
                Some((true, reason, format!("{who}, and everything else stays at what runs")))
            }
            Self::Refused(why) => Some((false, "Refused", why.clone())),
        }
    }

    /// What somebody has to be told who asked in vain.
    pub(crate) fn refusal(&self) -> Option<&str> {
        match self {
            Self::Refused(why) | Self::UpToDate(why) => Some(why),
            Self::Nothing | Self::Asked(_) | Self::Early(_) => None,
        }
    }

    /// When a server has to be looked at because what comes alone is planned no longer: at the end of the request, or when a
    /// window opens, and not minutes after it.
    pub(crate) fn in_time(&self, outcome: Outcome, until: Option<Timestamp>, now: Timestamp) -> Outcome {
        self.ends(until).map_or(outcome, |ends| outcome.no_later_than(ends, now))
    }

    /// When it is planned no longer, if something else can be by then. `until`: the end of the request, or the next opening of a window of
    /// the server.
    pub(crate) fn ends(&self, until: Option<Timestamp>) -> Option<Timestamp> {
        match self {
            Self::Asked(_) | Self::Refused(_) => until,
            Self::Early(early) => until.into_iter().chain(early.changes_at()).min(),
            Self::Nothing | Self::UpToDate(_) => None,
        }
    }

    /// What comes without a window of the server.
    pub(crate) fn early(&self) -> Option<&UrgentUpdate> {
        match self {
            Self::Early(early) => Some(early),
            Self::Nothing | Self::Asked(_) | Self::Refused(_) | Self::UpToDate(_) => None,
        }
    }
}

/// The scope of the server's request to apply now, if it has one; `Err` says what is wrong with it.
pub(crate) fn asked(server: &PaperMCServer) -> Option<Result<Scope, String>> {
    let written = server.annotations().get(APPLY_NOW)?;
    let (_, options) = written.split_once(';')?;
    if written.len() > LONGEST {
        return Some(Err(format!("`{APPLY_NOW}` is longer than {LONGEST} characters; ask for fewer at a time")));
    }
    Some(read(options))
}

/// What is wrong with names that mean nothing on this server. A Plugin that is gone means its removal, for as long as what it asked for runs.
pub(crate) fn unknown(scope: &Scope, request: &Request, runs: &Lock) -> Option<String> {
    let known = Scope::everything(request, runs).plugins;
    let strange = scope.plugins.difference(&known).next()?;
    let fix = match known.iter().take(NAMED).map(|name| format!("plugin/{name}")).collect::<Vec<_>>() {
        names if names.is_empty() => "it has none".to_owned(),
        names if known.len() > NAMED => format!("write {} or another of its {}", names.join(", "), known.len()),
        names => format!("write {}", names.join(" or ")),
    };
    Some(format!("`{APPLY_NOW}` names plugin/{strange}, which is no Plugin for this server; {fix}"))
}

fn read(options: &str) -> Result<Scope, String> {
    const WAY: &str = "write `<unix>;only=plugin/NAME`, several with commas, or `<unix>` alone for all that is planned";
    let wrong = |what: String| format!("`{APPLY_NOW}`: {what}; {WAY}");
    let Some(names) = options.trim().strip_prefix("only=") else {
        return Err(wrong(format!("`{options}` is not known")));
    };
    let mut scope = Scope::default();
    for name in names.split(',').map(str::trim) {
        match name.strip_prefix("plugin/") {
            Some(plugin) if !plugin.is_empty() => drop(scope.plugins.insert(plugin.to_owned())),
            None if name == "paper" => scope.paper = true,
            Some(_) | None => return Err(wrong(format!("`{name}` is neither `paper` nor `plugin/` and a name"))),
        }
    }
    Ok(scope)
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
