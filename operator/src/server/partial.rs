//! Pure. Selects a partial update, while all other packages stay at their running versions. Its scope is that of an apply-now request
//! (`nightshift.dev/apply-now: <unix>;only=plugin/NAME`), or consists of Plugins that wait for no window of the server ([`urgent`]).

use crds::PaperMCServer;
use jiff::Timestamp;
use kube::ResourceExt;
use resolver::model::lock::Lock;
use resolver::model::request::Request;
use resolver::partial::Scope;

use crate::k8s::labels::APPLY_NOW;

pub(crate) mod urgent;

use urgent::UrgentUpdate;

/// Number of names that an error message lists.
const MAX_NAMED: usize = 5;

/// Maximum length that `status.lastHandled` holds. The acceptance of a longer request could not be recorded.
const MAX_LENGTH: usize = 1_024;

/// The partial update of one pass.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum PartialSelection {
    /// No partial update: the whole plan is applied together.
    #[default]
    Nothing,
    /// Only the scope that a user requested is planned.
    Requested(Scope),
    /// Only the update that waits for no window of the server is planned, until a window opens.
    Urgent(UrgentUpdate),
    /// The requested scope cannot change, and why. It is tried again for as long as the request is valid.
    Refused(String),
    /// The requested scope is up to date, with a message. The request counts as handled.
    UpToDate(String),
}

impl PartialSelection {
    /// Whether the apply-now request opens the gate. A rejected request does not, because the plan is then wider than its scope.
    pub(crate) fn can_open_gate(&self) -> bool {
        match self {
            Self::Nothing | Self::Requested(_) | Self::Urgent(_) => true,
            Self::Refused(_) | Self::UpToDate(_) => false,
        }
    }

    /// The message for a user whose request has no effect.
    pub(crate) fn refusal(&self) -> Option<&str> {
        match self {
            Self::Refused(why) | Self::UpToDate(why) => Some(why),
            Self::Nothing | Self::Requested(_) | Self::Urgent(_) => None,
        }
    }

    /// When the partial update is no longer planned, if the plan can change by then. `until` is the end of the request, or the next opening
    /// of a window of the server.
    pub(crate) fn ends_at(&self, until: Option<Timestamp>) -> Option<Timestamp> {
        match self {
            Self::Requested(_) | Self::Refused(_) => until,
            Self::Urgent(urgent) => until.into_iter().chain(urgent.changes_at()).min(),
            Self::Nothing | Self::UpToDate(_) => None,
        }
    }

    /// The update that waits for no window of the server.
    pub(crate) fn urgent(&self) -> Option<&UrgentUpdate> {
        match self {
            Self::Urgent(urgent) => Some(urgent),
            Self::Nothing | Self::Requested(_) | Self::Refused(_) | Self::UpToDate(_) => None,
        }
    }
}

/// The scope of the server's apply-now request, if it has one. `Err` holds the problem of an invalid one.
pub(crate) fn requested_scope(server: &PaperMCServer) -> Option<Result<Scope, String>> {
    let written = server.annotations().get(APPLY_NOW)?;
    let (_, options) = written.split_once(';')?;
    if written.len() > MAX_LENGTH {
        return Some(Err(format!(
            "`{APPLY_NOW}` is longer than {MAX_LENGTH} characters: request fewer plugins at a time"
        )));
    }
    Some(parse_scope(options))
}

/// Checks the names of the scope against the Plugins of this server. The name of a deleted Plugin means its removal, for as long as its
/// packages run.
pub(crate) fn check_names(scope: &Scope, request: &Request, runs: &Lock) -> Option<String> {
    let plugins = Scope::everything(request, runs).plugins;
    let strange = scope.plugins.difference(&plugins).next()?;
    let fix = match plugins.iter().take(MAX_NAMED).map(|name| format!("plugin/{name}")).collect::<Vec<_>>() {
        names if names.is_empty() => "the server has no Plugins".to_owned(),
        names if plugins.len() > MAX_NAMED => {
            format!("write {} or another of its {} plugins", names.join(", "), plugins.len())
        }
        names => format!("write {}", names.join(" or ")),
    };
    Some(format!("`{APPLY_NOW}` names plugin/{strange}, which is not a Plugin of this server: {fix}"))
}

fn parse_scope(options: &str) -> Result<Scope, String> {
    const USAGE: &str =
        "write `<unix>;only=plugin/NAME`, several with commas, or `<unix>` alone for the whole planned update";
    let wrong = |problem: String| format!("`{APPLY_NOW}`: {problem}: {USAGE}");
    let Some(names) = options.trim().strip_prefix("only=") else {
        return Err(wrong(format!("`{options}` is unknown")));
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
pub(crate) fn needs_others_message(scope: &Scope, with: Option<&Scope>) -> String {
    let no = format!("no newer version set changes {scope} only");
    match with {
        Some(with) => format!(
            "{no}: {with} has to change with it. Repeat the request with `;only={}`, or without `;only=` for the \
            whole planned update",
            scope.union(with)
        ),
        None => format!("{no}: repeat the request without `;only=` for the whole planned update"),
    }
}

/// The message for a scope that is up to date.
pub(crate) fn up_to_date_message(scope: &Scope) -> String {
    format!("{scope} cannot change now: its Plugin and the server allow no newer version than the running one")
}

#[cfg(test)]
mod tests;
