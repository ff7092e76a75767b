//! Pure. Selects a partial update, while all other packages stay at their running versions. Its scope is that of an apply-now request
//! (`nightshift.dev/apply-now: <unix>;only=plugin/NAME`), or consists of Plugins that wait for no window of the server ([`urgent`]).

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

/// Number of names that an error message lists.
const NAMED: usize = 5;

/// Maximum length that `status.lastHandled` holds. The acceptance of a longer request could not be recorded.
const LONGEST: usize = 1_024;

/// The partial update of one pass.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum PartialSelection {
    /// No partial update: the whole plan is applied together.
    #[default]
    Nothing,
    /// Only the scope that a user requested is planned.
    Asked(Scope),
    /// Only the update that waits for no window of the server is planned, until a window opens.
    Early(UrgentUpdate),
    /// The requested scope cannot change, and why. It is tried again for as long as the request is valid.
    Refused(String),
    /// The requested scope is up to date, with a message. The request counts as handled.
    UpToDate(String),
}

impl PartialSelection {
    /// Whether the apply-now request opens the gate. A rejected request does not, because the plan is then wider than its scope.
    pub(crate) fn opens_the_gate(&self) -> bool {
        match self {
            Self::Nothing | Self::Asked(_) | Self::Early(_) => true,
            Self::Refused(_) | Self::UpToDate(_) => false,
        }
    }

    /// For a condition: whether there is a partial update, the reason, and the message.
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

    /// The message for a user whose request has no effect.
    pub(crate) fn refusal(&self) -> Option<&str> {
        match self {
            Self::Refused(why) | Self::UpToDate(why) => Some(why),
            Self::Nothing | Self::Asked(_) | Self::Early(_) => None,
        }
    }

    /// Requeues the server when the partial update is no longer planned, and not minutes later. That is at the end of the request, or when
    /// a window opens.
    pub(crate) fn in_time(&self, outcome: Outcome, until: Option<Timestamp>, now: Timestamp) -> Outcome {
        self.ends(until).map_or(outcome, |ends| outcome.no_later_than(ends, now))
    }

    /// When the partial update is no longer planned, if the plan can change by then. `until` is the end of the request, or the next opening
    /// of a window of the server.
    pub(crate) fn ends(&self, until: Option<Timestamp>) -> Option<Timestamp> {
        match self {
            Self::Asked(_) | Self::Refused(_) => until,
            Self::Early(early) => until.into_iter().chain(early.changes_at()).min(),
            Self::Nothing | Self::UpToDate(_) => None,
        }
    }

    /// The update that waits for no window of the server.
    pub(crate) fn early(&self) -> Option<&UrgentUpdate> {
        match self {
            Self::Early(early) => Some(early),
            Self::Nothing | Self::Asked(_) | Self::Refused(_) | Self::UpToDate(_) => None,
        }
    }
}

/// The scope of the server's apply-now request, if it has one. `Err` holds the problem of an invalid one.
pub(crate) fn asked(server: &PaperMCServer) -> Option<Result<Scope, String>> {
    let written = server.annotations().get(APPLY_NOW)?;
    let (_, options) = written.split_once(';')?;
    if written.len() > LONGEST {
        return Some(Err(format!("`{APPLY_NOW}` is longer than {LONGEST} characters; ask for fewer at a time")));
    }
    Some(read(options))
}

/// Checks the names of the scope against the Plugins of this server. The name of a deleted Plugin means its removal, for as long as its
/// packages run.
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

/// The message for a scope that cannot change on its own. `with` holds the packages that have to change with it, if known.
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

/// The message for a scope that is up to date.
pub(crate) fn up_to_date(scope: &Scope) -> String {
    format!("nothing of {scope} can change now: what runs is what its Plugin and the server let it have")
}

#[cfg(test)]
mod tests;
