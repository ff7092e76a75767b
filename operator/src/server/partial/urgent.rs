//! Pure. Selects Plugins that wait for no window of the server: urgent ones (`spec.urgent`), and those with windows of their own
//! (`spec.windows`).
//!
//! A Plugin's own windows are additional windows for it, in which it is applied as a partial update. In a window of the server the whole
//! plan is applied together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crds::Plugin;
use jiff::Timestamp;
use kube::ResourceExt;
use resolver::model::request::Request;
use resolver::partial::Scope;
use scheduler::maintenance::{Gate, Windows};

use validate::CheckedServer;
use validate::windows::check_plugin_windows;

/// Number of upcoming openings that are tried for a partial update. Each costs a solve in each pass.
const MAX_OPENINGS: usize = 4;

/// An update that waits for no window of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UrgentUpdate {
    /// Urgent Plugins.
    Urgent(Scope),
    /// Plugins in their own windows.
    InOwnWindow(PluginWindow),
    /// Both at once.
    Both {
        /// The urgent Plugins.
        urgent: Scope,
        /// The Plugins in their own windows.
        own_window: PluginWindow,
    },
}

/// Plugins whose own windows are open at the same time, or open next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PluginWindow {
    pub(crate) scope: Scope,
    /// Open until their window ends or a window of the server opens. Closed until their window opens.
    pub(crate) gate: Gate,
    /// Next opening of their windows. If one is open now, the opening after it.
    next: Option<Timestamp>,
    /// When other Plugins may be selected.
    changes_at: Option<Timestamp>,
}

/// Plugins that may be updated without a window of the server, if a partial update is possible.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct UrgentCandidates {
    /// The urgent Plugins.
    pub(crate) urgent: Option<Scope>,
    /// The Plugins in their own windows: open windows first, then those that open before a window of the server.
    pub(crate) own_windows: Vec<PluginWindow>,
}

impl UrgentCandidates {
    /// The candidates of a server. It has none if it is not updated automatically. It also has none in a window, because the whole plan is
    /// applied together there and what has begun is completed. The exception is a plan that `has_to_wait` for the followed server: urgent
    /// Plugins do not. A Plugin with its own windows must be due (`is_due`): a release that does not fit into the whole set would block it.
    pub(crate) fn new(
        server: &CheckedServer,
        request: &Request,
        plugins: &[Arc<Plugin>],
        has_to_wait: bool,
        is_due: impl Fn(&Scope) -> bool,
        now: Timestamp,
    ) -> Self {
        let is_shut = has_to_wait || matches!(server.updates.windows.gate(now), Gate::Shut { .. });
        if !server.updates_automatically() || !is_shut {
            return Self::default();
        }
        let is_requested =
            |plugin: &&Arc<Plugin>| request.plugins.iter().any(|requested| requested.object == plugin.name_any());
        let (urgent, patient): (Vec<&Arc<Plugin>>, Vec<&Arc<Plugin>>) =
            plugins.iter().filter(is_requested).partition(|plugin| plugin.spec.urgent);
        let urgent = urgent.into_iter().map(|plugin| plugin.name_any()).collect();
        let own_windows = patient.into_iter().filter_map(|plugin| {
            let scope = Scope::from_plugins(BTreeSet::from([plugin.name_any()]))?;
            let (windows, _) = check_plugin_windows(plugin, &server.updates.zone);
            let windows = Windows { windows, enabled: true, blackouts: server.updates.windows.blackouts.clone() };
            (!windows.windows.is_empty() && is_due(&scope)).then_some((scope, windows))
        });
        let own_windows = openings(&own_windows.collect::<Vec<_>>(), server.updates.windows.next_opening(now), now);
        Self { urgent: Scope::from_plugins(urgent), own_windows }
    }
}

/// The openings of the Plugins' own windows. All open windows are combined into one. Upcoming openings follow in order, if they precede
/// `servers`, the next opening of a window of the server.
fn openings(own_windows: &[(Scope, Windows)], servers: Option<Timestamp>, now: Timestamp) -> Vec<PluginWindow> {
    let mut open: Option<PluginWindow> = None;
    let mut ahead: BTreeMap<Timestamp, PluginWindow> = BTreeMap::new();
    for (scope, windows) in own_windows {
        let (gate, next) = (windows.gate(now), windows.next_opening(now));
        let one =
            PluginWindow { scope: scope.clone(), gate: limit_to_server_window(gate, servers), next, changes_at: None };
        match gate {
            Gate::Open { .. } | Gate::NoNewStarts { .. } => open = Some(one.merge(open)),
            Gate::Shut { opens: Some(opens) } if servers.is_none_or(|servers| opens < servers) => {
                let others = ahead.remove(&opens);
                ahead.insert(opens, one.merge(others));
            }
            Gate::Shut { opens: _ } => {}
        }
    }
    let next = ahead.first_key_value().map(|(opens, _)| *opens);
    let changes_at = |window: &PluginWindow| window.gate.until().into_iter().chain(next).min();
    let all = open.into_iter().chain(ahead.into_values().take(MAX_OPENINGS));
    all.map(|window| PluginWindow { changes_at: changes_at(&window), ..window }).collect()
}

/// Closes the gate when a window of the server opens, because the whole plan is applied then.
fn limit_to_server_window(gate: Gate, servers: Option<Timestamp>) -> Gate {
    let earlier = |at: Timestamp| servers.map_or(at, |servers| at.min(servers));
    match gate {
        Gate::Open { opened_at, until } => Gate::Open { opened_at, until: earlier(until) },
        Gate::NoNewStarts { opened_at, until, opens } => {
            Gate::NoNewStarts { opened_at, until: earlier(until), opens: opens.into_iter().chain(servers).min() }
        }
        shut @ Gate::Shut { .. } => shut,
    }
}

/// The gate of two updates that are applied together. It closes when the first of them has to end. An update may begin while one of them
/// allows it, as where windows of a server overlap.
fn intersect_gates(one: Gate, other: Gate) -> Gate {
    let both = |(a, b): (Timestamp, Timestamp), (c, d): (Timestamp, Timestamp)| (a.min(c), b.min(d));
    match (one, other) {
        (
            Gate::Open { opened_at: a, until: b },
            Gate::Open { opened_at: c, until: d } | Gate::NoNewStarts { opened_at: c, until: d, .. },
        )
        | (Gate::NoNewStarts { opened_at: a, until: b, .. }, Gate::Open { opened_at: c, until: d }) => {
            let (opened_at, until) = both((a, b), (c, d));
            Gate::Open { opened_at, until }
        }
        (
            Gate::NoNewStarts { opened_at: a, until: b, opens },
            Gate::NoNewStarts { opened_at: c, until: d, opens: also },
        ) => {
            let (opened_at, until) = both((a, b), (c, d));
            Gate::NoNewStarts { opened_at, until, opens: opens.into_iter().chain(also).min() }
        }
        (Gate::Shut { opens }, Gate::Shut { opens: also }) => Gate::Shut { opens: opens.into_iter().chain(also).min() },
        (shut @ Gate::Shut { .. }, Gate::Open { .. } | Gate::NoNewStarts { .. })
        | (Gate::Open { .. } | Gate::NoNewStarts { .. }, shut @ Gate::Shut { .. }) => shut,
    }
}

impl PluginWindow {
    /// Whether a window is open now.
    pub(crate) fn is_open(&self) -> bool {
        self.gate.until().is_some()
    }

    fn merge(self, others: Option<Self>) -> Self {
        let Some(others) = others else { return self };
        Self {
            scope: self.scope.union(&others.scope),
            gate: intersect_gates(self.gate, others.gate),
            next: self.next.into_iter().chain(others.next).min(),
            changes_at: None,
        }
    }
}

impl UrgentUpdate {
    /// The gate for this update. `since` is the instant at which it was found, from which the gate of an urgent update is open. Only the
    /// blackouts of `windows`, those of the server, count for it.
    pub(crate) fn gate(&self, windows: &Windows, since: Timestamp, now: Timestamp) -> Gate {
        match self {
            Self::Urgent(_) => windows.without_windows(since, now),
            Self::InOwnWindow(own_window) => own_window.gate,
            Self::Both { urgent: _, own_window } => {
                intersect_gates(windows.without_windows(since, now), own_window.gate)
            }
        }
    }

    /// Whether it waits for no followed server. Urgent updates do not. A Plugin beside one was checked not to have to.
    pub(crate) fn is_independent_of_leader(&self) -> bool {
        match self {
            Self::Urgent(_) | Self::Both { .. } => true,
            Self::InOwnWindow(_) => false,
        }
    }

    /// The Plugins in their own windows.
    pub(crate) fn own_window(&self) -> Option<&PluginWindow> {
        match self {
            Self::Urgent(_) => None,
            Self::InOwnWindow(own_window) | Self::Both { urgent: _, own_window } => Some(own_window),
        }
    }

    /// Next opening of such a window.
    pub(crate) fn next_opening(&self) -> Option<Timestamp> {
        self.own_window()?.next
    }

    /// When other Plugins may be selected, or these no longer.
    pub(crate) fn changes_at(&self) -> Option<Timestamp> {
        self.own_window()?.changes_at
    }

    /// The reason of a condition and its message.
    pub(crate) fn reason_and_message(&self) -> (&'static str, String) {
        let waits_for_none = |scope: &Scope| format!("`spec.urgent`: {scope} waits for no window");
        match self {
            Self::Urgent(scope) => ("Urgent", waits_for_none(scope)),
            Self::InOwnWindow(PluginWindow { scope, .. }) => {
                ("OwnWindow", format!("`spec.windows` of a Plugin: {scope} is updated in its own window"))
            }
            Self::Both { urgent, own_window } => {
                let own_window = format!("{} is updated with it in its own window (`spec.windows`)", own_window.scope);
                ("Urgent", format!("{}, and {own_window}", waits_for_none(urgent)))
            }
        }
    }
}

#[cfg(test)]
mod tests;
