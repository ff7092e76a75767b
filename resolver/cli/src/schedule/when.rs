//! Pure. Decides when changes would be applied, from the windows of the server and the operator's status.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::written::{Opening, WrittenWindow, next_opening};
use crate::input::from_status::{LeaderServer, Schedule};
use resolver::explanation::{Explanation, Hint, HintStep, SolvedExplanation};
use resolver::model::request::Request;
use scheduler::maintenance::format_time;

/// Suffix of the operator's text for a window that an empty server does not need.
const OR_WHEN_EMPTY: &str = " or when empty";

/// Why a server keeps its version set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum BlockedReason {
    /// `nightshift.dev/rollback-to` pins it to an earlier version set.
    RollbackTo,
    /// `*` in `spec.hold` keeps the running version set.
    Hold,
}

/// When a server would be restarted.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum RestartTime {
    /// Never: there are no changes.
    Never,
    /// At once: a first start needs no window.
    FirstStart,
    /// Now: a window is open.
    Open,
    /// Now, without a window: `spec.urgent` of a Plugin.
    Urgent {
        /// Blackouts in which it still waits, as they are written.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        blackouts: Vec<String>,
    },
    /// When this window opens, according to the operator, or to the spec if the operator has not reported it yet.
    Window {
        /// The time.
        opens: Timestamp,
        /// Text for users, in the server's zone.
        text: String,
        /// The update may run earlier when no player has been online for this long.
        #[serde(skip_serializing_if = "Option::is_none")]
        empty_for: Option<String>,
    },
    /// In the next of these windows, whose time is unknown.
    Windows {
        /// As they are written: cron, zone, length.
        windows: Vec<String>,
        /// Blackouts in which no window applies, as they are written.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        blackouts: Vec<String>,
        /// The update may run earlier when no player has been online for this long.
        #[serde(skip_serializing_if = "Option::is_none")]
        empty_for: Option<String>,
    },
    /// In the next of a Plugin's own windows, if no window of the server opens earlier. The time is unknown.
    OwnWindows {
        /// As they are written: cron, zone, length.
        windows: Vec<String>,
        /// Blackouts in which no window applies, as they are written.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        blackouts: Vec<String>,
    },
    /// Only on request: no window is enabled.
    Manual,
    /// Not while the server is pinned to a version set.
    Held {
        /// The field or annotation that pins it.
        by: BlockedReason,
    },
    /// In a window after the version set is approved: `spec.approval` is `Required`.
    Approval {
        /// It needs no window.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        urgent: bool,
        /// The digest of the operator's planned update, for the annotation `nightshift.dev/approve`.
        #[serde(skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
    },
    /// In a window after another server has run the same version set for long enough: `spec.follows`.
    Followed {
        /// The other server.
        server: String,
        /// How long it must have run the same version set, as written in the spec.
        soak: String,
        /// The condition that it does not meet yet, according to the operator.
        #[serde(skip_serializing_if = "Option::is_none")]
        waits: Option<String>,
    },
    /// Only on request, or after updates are resumed: `spec.suspend` is true.
    Suspended,
}

impl RestartTime {
    /// When the full update of a server is applied. `is_new` is a first start, `is_same` means no changes. The query is
    /// made at `now` about `at`.
    pub(crate) fn full_update(
        (is_new, is_same): (bool, bool),
        schedule: Option<&Schedule>,
        now: Timestamp,
        at: Timestamp,
    ) -> Self {
        let Schedule {
            zone,
            windows,
            blackouts,
            is_suspended,
            is_held,
            holds_all,
            unapproved,
            follows,
            next,
            empty_for,
            is_open,
            approval: _,
            urgent: _,
            own_windows: _,
            planned_partial: _,
            down: _,
            no_backup: _,
            image_problem: _,
            scheduled_restart: _,
        } = schedule.map(Schedule::for_full_update).unwrap_or_default();
        let is_open = is_open && at <= now;
        match next {
            _ if is_same => Self::Never,
            _ if is_new => Self::FirstStart,
            _ if is_held => Self::Held { by: BlockedReason::RollbackTo },
            _ if holds_all => Self::Held { by: BlockedReason::Hold },
            _ if unapproved.is_some() => {
                Self::Approval { urgent: false, digest: unapproved.and_then(|approval| approval.digest) }
            }
            // After a request of a user, the operator reports an open window.
            _ if is_suspended && !is_open => Self::Suspended,
            _ if windows.is_empty() => Self::Manual,
            // An operator that reports a window also knows the state of the other server.
            _ if follows.as_ref().is_some_and(|followed| followed.waits.is_some() || next.is_none() && !is_open) => {
                let LeaderServer { server, soak, waits } = follows.expect("the guard checks that it is set");
                Self::Followed { server, soak, waits }
            }
            _ if is_open => Self::Open,
            Some((opens, text)) if opens > now.max(at) => Self::Window { opens, text, empty_for },
            // The operator has not updated the status since that time.
            Some(_) | None => match next_opening(&windows, &blackouts, now.max(at)) {
                Some(Opening::Now) if at <= now => Self::Open,
                Some(Opening::At(opens)) => {
                    let or = if empty_for.is_some() { OR_WHEN_EMPTY } else { "" };
                    Self::Window { opens, text: format!("{}{or}", format_time(opens, &zone, now)), empty_for }
                }
                Some(Opening::Now) | None => {
                    Self::Windows { windows: texts(&windows), blackouts: texts(&blackouts), empty_for }
                }
            },
        }
    }

    /// When a partial update is applied: in `own_windows`, those of its Plugins, or at once if there are none, because it is urgent. `schedule` is
    /// that of the partial update.
    pub(crate) fn partial_update(
        own_windows: Option<&[WrittenWindow]>,
        schedule: &Schedule,
        now: Timestamp,
        at: Timestamp,
    ) -> Self {
        let Schedule { zone, windows, blackouts, unapproved, follows, next, is_open, .. } = schedule.clone();
        let is_open = is_open && at <= now;
        if let Some(unapproved) = unapproved {
            return Self::Approval { urgent: own_windows.is_none(), digest: unapproved.digest };
        }
        let Some(own_windows) = own_windows else { return Self::Urgent { blackouts: texts(&blackouts) } };
        let next = next.filter(|(opens, _)| *opens > now.max(at));
        match (follows, next) {
            (Some(LeaderServer { server, soak, waits }), next) if waits.is_some() || next.is_none() && !is_open => {
                Self::Followed { server, soak, waits }
            }
            _ if is_open => Self::Open,
            (_, Some((opens, text))) => Self::Window { opens, text, empty_for: None },
            (_, None) => match next_opening(own_windows.iter().chain(&windows), &blackouts, now.max(at)) {
                Some(Opening::Now) if at <= now => Self::Open,
                Some(Opening::At(opens)) => {
                    Self::Window { opens, text: format_time(opens, &zone, now), empty_for: None }
                }
                Some(Opening::Now) | None => {
                    Self::OwnWindows { windows: texts(own_windows), blackouts: texts(&blackouts) }
                }
            },
        }
    }

    /// Whether it is applied automatically, and not now.
    pub(crate) fn is_deferred(&self) -> bool {
        match self {
            Self::Window { .. } | Self::Windows { .. } | Self::Approval { .. } | Self::Followed { .. } => true,
            Self::Never
            | Self::FirstStart
            | Self::Open
            | Self::Urgent { .. }
            | Self::OwnWindows { .. }
            | Self::Manual
            | Self::Held { .. }
            | Self::Suspended => false,
        }
    }

    /// Whether no other time can be earlier.
    pub(crate) fn is_definite(&self) -> bool {
        match self {
            Self::Open | Self::Urgent { .. } | Self::Window { .. } | Self::Approval { .. } => true,
            Self::Never
            | Self::FirstStart
            | Self::Windows { .. }
            | Self::OwnWindows { .. }
            | Self::Followed { .. }
            | Self::Manual
            | Self::Held { .. }
            | Self::Suspended => false,
        }
    }

    /// The same for changes that are allowed in windows only, such as a newer Minecraft.
    pub(crate) fn restricted_to_windows(self) -> Self {
        match self {
            Self::Window { opens, text, empty_for: _ } => {
                let text = text.strip_suffix(OR_WHEN_EMPTY).unwrap_or(&text).to_owned();
                Self::Window { opens, text, empty_for: None }
            }
            Self::Windows { windows, blackouts, empty_for: _ } => Self::Windows { windows, blackouts, empty_for: None },
            other @ (Self::Never
            | Self::FirstStart
            | Self::Open
            | Self::Urgent { .. }
            | Self::OwnWindows { .. }
            | Self::Manual
            | Self::Held { .. }
            | Self::Approval { .. }
            | Self::Followed { .. }
            | Self::Suspended) => other,
        }
    }

    /// Whether it may be applied outside of windows, so that a scheduled restart includes it.
    pub(crate) fn is_opportunistic(&self) -> bool {
        match self {
            Self::Window { empty_for, .. } | Self::Windows { empty_for, .. } => empty_for.is_some(),
            Self::Never
            | Self::FirstStart
            | Self::Open
            | Self::Urgent { .. }
            | Self::OwnWindows { .. }
            | Self::Manual
            | Self::Held { .. }
            | Self::Approval { .. }
            | Self::Followed { .. }
            | Self::Suspended => false,
        }
    }

    /// The text that follows "is changed".
    pub(crate) fn phrase(&self) -> String {
        match self {
            Self::Never => "not at all".to_owned(),
            Self::FirstStart => "at once: a first start needs no window".to_owned(),
            Self::Open => "now: a window is open".to_owned(),
            Self::Urgent { blackouts } => format!("now: it is urgent (`spec.urgent`){}", blackout_condition(blackouts)),
            Self::Window { opens: _, text, empty_for: _ } => text.clone(),
            Self::Windows { windows, blackouts, empty_for } => {
                let or = empty_for.as_ref().map(|time| format!(", or when no player has been online for {time}"));
                let (windows, or) = (windows.join("; "), or.unwrap_or_default());
                format!("in its next window ({windows}){or}{}", blackout_condition(blackouts))
            }
            Self::OwnWindows { windows, blackouts } => {
                let windows = windows.join("; ");
                format!(
                    "in a window of its Plugin ({windows}), if that opens before one of the server{}",
                    blackout_condition(blackouts)
                )
            }
            Self::Held { by: BlockedReason::RollbackTo } => {
                "when `nightshift.dev/rollback-to`, which pins it to an earlier version set, is removed".to_owned()
            }
            Self::Held { by: BlockedReason::Hold } => {
                "when `*`, which pins it to the running version set, is removed from `spec.hold`".to_owned()
            }
            Self::Approval { urgent, digest } => {
                let when = if *urgent { "as soon as" } else { "in a window after" };
                let how = digest.as_ref().map(|digest| format!(": `nightshift.dev/approve={digest}`"));
                format!("{when} the set is approved{}", how.unwrap_or_default())
            }
            Self::Followed { server, soak, waits } => {
                let waits = waits.as_ref().map(|waits| format!(" ({waits})")).unwrap_or_default();
                format!("in a window after {server} has run the same version set for {soak} (`spec.follows`){waits}")
            }
            Self::Suspended => "on request (`nightshift.dev/apply-now`): it is suspended (`spec.suspend`)".to_owned(),
            Self::Manual => "on request (`nightshift.dev/apply-now`): no window is enabled".to_owned(),
        }
    }
}

/// As they are written.
fn texts(written: &[impl ToString]) -> Vec<String> {
    written.iter().map(ToString::to_string).collect()
}

/// The condition that blackouts add to a time that does not consider them.
fn blackout_condition(blackouts: &[String]) -> String {
    match blackouts.join("; ") {
        none if none.is_empty() => none,
        blackouts => format!(", if no blackout is on ({blackouts})"),
    }
}

/// Warning where an irreversible step is chosen or proposed and no backup is taken before it.
const NO_BACKUP_WARNING: &str = "No backup of the worlds is taken before a one-way step (`spec.backup`).";

/// Schedules of the servers of the query.
pub(crate) struct ServerSchedules<'a> {
    /// By server name. A server that is not in the map has no known windows.
    pub(crate) schedules: &'a BTreeMap<String, Schedule>,
    /// The requests of the servers, with their running version sets.
    pub(crate) requests: &'a [Request],
    /// The current time.
    pub(crate) now: Timestamp,
    /// The time of the query.
    pub(crate) at: Timestamp,
}

impl ServerSchedules<'_> {
    /// When an answer or one of its hints would be applied. `None` for a past time, and for a server that is not
    /// running, because a first start waits for no window.
    pub(crate) fn schedule_sentences(&self, explanation: &Explanation) -> Option<String> {
        let (server, hints, changes) = match explanation {
            // A version set that is stopped is applied in no window. The changes of a hint would be applied with it.
            Explanation::Solved(solved) if solved.deploy_blocker().is_some() => return None,
            Explanation::Solved(solved) => (&solved.server, &solved.hints, solved.is_change()),
            Explanation::Impossible(impossible) => (&impossible.server, &impossible.hints, false),
            Explanation::WhyNot(why) => (&why.server, &why.hints, false),
            Explanation::WhyNotRelease(_) | Explanation::Unanswerable(_) | Explanation::GaveUp(_) => return None,
        };
        let schedule = self.schedules.get(server)?;
        let runs = self.requests.iter().any(|request| request.server == *server && request.running.is_some());
        if !runs || self.at < self.now || (!changes && hints.is_empty()) {
            return None;
        }
        let mut when = RestartTime::full_update((false, false), Some(schedule), self.now, self.at);
        // The result of a hint is unknown here. It may be a newer Minecraft.
        let is_plain = matches!(explanation, Explanation::Solved(solved) if changes && !is_one_way(solved));
        if !is_plain {
            when = when.restricted_to_windows();
        }
        // The approval is for the operator's planned update, and a hint changes it.
        if let RestartTime::Approval { digest, .. } = &mut when
            && !changes
        {
            *digest = None;
        }
        let short_name = server.rsplit('/').next().unwrap_or(server);
        let (later, then): (Vec<&Hint>, Vec<&Hint>) = hints.iter().partition(|hint| resolves_after(hint, &when));
        let applied = match (changes, then.is_empty()) {
            (true, true) => Some(format!("{short_name} is changed {}.", when.phrase())),
            (true, false) => {
                Some(format!("{short_name} is changed {}. The same applies with one of these options.", when.phrase()))
            }
            (false, false) => Some(format!("With one of these options, {short_name} is changed {}.", when.phrase())),
            (false, true) => None,
        };
        let later = (!later.is_empty()).then(|| {
            // The operator reports only the next window. For a later one, the written schedule is used.
            let are_reported = applied.is_some() && matches!(when, RestartTime::Windows { .. });
            let written = || {
                let windows = texts(&schedule.windows).join("; ");
                format!(" ({windows}){}", blackout_condition(&texts(&schedule.blackouts)))
            };
            let windows = if are_reported { String::new() } else { written() };
            format!("Updates that become possible by themselves are applied in the first window after that{windows}.")
        });
        let is_irreversible = matches!(explanation, Explanation::Solved(solved) if is_one_way(solved))
            || hints.iter().any(|hint| hint.irreversible_from.is_some());
        let no_backup = (is_irreversible && schedule.no_backup).then(|| NO_BACKUP_WARNING.to_owned());
        Some(applied.into_iter().chain(later).chain(no_backup).collect::<Vec<_>>().join(" "))
    }
}

/// Whether the chosen version set has another Minecraft version or another software.
fn is_one_way(solved: &SolvedExplanation) -> bool {
    let before = solved.paper.instead_of.as_ref();
    before.is_some_and(|before| before.software != solved.software || before.minecraft < solved.paper.minecraft)
}

/// Whether the hint is to wait until a time after the window.
fn resolves_after(hint: &Hint, when: &RestartTime) -> bool {
    let [HintStep::WaitUntil { at }] = hint.steps.as_slice() else { return false };
    match when {
        RestartTime::Window { opens, .. } => at > opens,
        RestartTime::Open
        | RestartTime::Urgent { .. }
        | RestartTime::Windows { .. }
        | RestartTime::OwnWindows { .. } => true,
        RestartTime::Never
        | RestartTime::FirstStart
        | RestartTime::Manual
        | RestartTime::Held { .. }
        | RestartTime::Approval { .. }
        | RestartTime::Followed { .. }
        | RestartTime::Suspended => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::from_status::PendingApproval;
    use crate::schedule::written::WrittenBlackout;

    fn window(cron: &str, duration: &str) -> WrittenWindow {
        WrittenWindow {
            cron: cron.to_owned(),
            zone: "UTC".to_owned(),
            duration: duration.to_owned(),
            latest_start: None,
        }
    }

    fn yearly() -> WrittenBlackout {
        WrittenBlackout::Recurring(window("@yearly", "24h"))
    }

    #[test]
    fn restart_time_comes_from_operator_and_is_never_past() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let opens = at("2026-01-25T03:00:00Z");
        let schedule = Schedule {
            windows: vec![window("0 4 * * 0", "1h")],
            blackouts: vec![yearly()],
            next: Some((opens, "Sun 25 Jan 04:00 CET".to_owned())),
            ..Schedule::default()
        };
        let before = at("2026-01-21T12:00:00Z");
        let when = |schedule: &Schedule, now| RestartTime::full_update((false, false), Some(schedule), now, now);
        let text = "Sun 25 Jan 04:00 CET".to_owned();
        assert_eq!(when(&schedule, before), RestartTime::Window { opens, text, empty_for: None });
        let by_spec = RestartTime::Window {
            opens: at("2026-01-25T04:00:00Z"),
            text: "Sun 25 Jan 04:00 UTC".to_owned(),
            empty_for: None,
        };
        assert_eq!(when(&schedule, opens), by_spec, "the status is from before that instant");
        let silent = Schedule { next: None, ..schedule.clone() };
        assert_eq!(when(&silent, before), by_spec, "the operator has not reported a window");
        assert_eq!(when(&silent, at("2026-01-25T04:30:00Z")), RestartTime::Open);
        let open = Schedule { is_open: true, ..schedule.clone() };
        assert_eq!(when(&open, before), RestartTime::Open);
        // The operator reports open windows only for the current time.
        let later = |schedule, at| RestartTime::full_update((false, false), Some(schedule), before, at);
        assert_eq!(later(&open, at("2026-01-22T12:00:00Z")), when(&schedule, before));
        assert_eq!(later(&open, opens), when(&schedule, opens));
        let unapproved = Schedule { unapproved: Some(PendingApproval { digest: None }), ..open.clone() };
        assert_eq!(when(&unapproved, before), RestartTime::Approval { urgent: false, digest: None });
        let held = Schedule { holds_all: true, ..unapproved.clone() };
        assert_eq!(when(&held, before), RestartTime::Held { by: BlockedReason::Hold });
        assert!(when(&held, before).phrase().contains("removed from `spec.hold`"));
        assert!(!when(&held, before).is_deferred(), "a hold also stops partial updates");
        let rolled_back = Schedule { is_held: true, ..held.clone() };
        assert_eq!(when(&rolled_back, before), RestartTime::Held { by: BlockedReason::RollbackTo }, "a rollback wins");
        assert_eq!(
            RestartTime::full_update((true, false), Some(&held), before, before),
            RestartTime::FirstStart,
            "a hold does not stop a first start"
        );
        assert_eq!(RestartTime::full_update((false, true), Some(&held), before, before), RestartTime::Never);
        assert_eq!(when(&Schedule { is_suspended: true, ..schedule.clone() }, before), RestartTime::Suspended);
        assert_eq!(when(&Schedule { windows: Vec::new(), ..open }, before), RestartTime::Manual);
        assert_eq!(RestartTime::full_update((true, false), Some(&schedule), before, before), RestartTime::FirstStart);
        assert_eq!(RestartTime::full_update((false, true), Some(&schedule), before, before), RestartTime::Never);
    }

    #[test]
    fn follower_is_reported_when_operator_waits_or_is_silent() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let (now, opens) = (at("2026-01-21T12:00:00Z"), at("2026-01-25T03:00:00Z"));
        let follows = |waits: Option<&str>| {
            Some(LeaderServer { server: "staging".to_owned(), soak: "48h".to_owned(), waits: waits.map(str::to_owned) })
        };
        let phrase = |waits, next: Option<&str>, is_open| {
            let windows = vec![window("@daily", "1h")];
            let next = next.map(|words| (opens, words.to_owned()));
            let schedule = Schedule { windows, follows: follows(waits), next, is_open, ..Schedule::default() };
            RestartTime::full_update((false, false), Some(&schedule), now, now).phrase()
        };
        let rule = "in a window after staging has run the same version set for 48h (`spec.follows`)";
        assert_eq!(phrase(None, None, false), rule);
        let waits = "waits for staging, which runs ViaVersion 5.5.1 still";
        assert_eq!(phrase(Some(waits), None, false), format!("{rule} ({waits})"));
        assert_eq!(phrase(None, Some("Sun 25 Jan 04:00 CET"), false), "Sun 25 Jan 04:00 CET");
        assert_eq!(phrase(None, None, true), "now: a window is open");
    }

    #[test]
    fn opportunistic_update_is_reported_unless_bound_to_windows() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let (now, opens) = (at("2026-01-21T12:00:00Z"), at("2026-01-25T03:00:00Z"));
        let mut schedule =
            Schedule { windows: vec![window("soon", "1h")], empty_for: Some("10m".to_owned()), ..Schedule::default() };
        let when = |schedule: &Schedule| RestartTime::full_update((false, false), Some(schedule), now, now);
        let written = "in its next window (soon UTC, for 1h)";
        assert_eq!(when(&schedule).phrase(), format!("{written}, or when no player has been online for 10m"));
        assert_eq!(when(&schedule).restricted_to_windows().phrase(), written);
        schedule.windows = vec![window("@daily", "1h")];
        assert_eq!(when(&schedule).phrase(), "Thu 22 Jan 00:00 UTC or when empty");
        schedule.next = Some((opens, "Sun 25 Jan 04:00 CET or when empty".to_owned()));
        assert_eq!(when(&schedule).phrase(), "Sun 25 Jan 04:00 CET or when empty");
        assert_eq!(when(&schedule).restricted_to_windows().phrase(), "Sun 25 Jan 04:00 CET");
        assert!(when(&schedule).is_opportunistic() && !when(&schedule).restricted_to_windows().is_opportunistic());
    }

    #[test]
    fn partial_update_is_urgent_or_in_its_own_window() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let (now, opens) = (at("2026-01-21T12:00:00Z"), at("2026-01-25T03:00:00Z"));
        let own = [window("0 3 * * 3", "1h")];
        let phrase = |own: Option<&[WrittenWindow]>, schedule: &Schedule| {
            RestartTime::partial_update(own, schedule, now, now).phrase()
        };
        let plain = Schedule::default();
        assert_eq!(phrase(None, &plain), "now: it is urgent (`spec.urgent`)");
        let dark = Schedule { blackouts: vec![yearly()], ..plain.clone() };
        let unless = ", if no blackout is on (@yearly UTC, for 24h)";
        assert_eq!(phrase(None, &dark), format!("now: it is urgent (`spec.urgent`){unless}"));
        assert_eq!(phrase(Some(&own), &dark), "Wed 28 Jan 03:00 UTC");
        let earlier = Schedule { windows: vec![window("0 4 * * 0", "1h")], ..dark.clone() };
        assert_eq!(phrase(Some(&own), &earlier), "Sun 25 Jan 04:00 UTC", "a window of the server opens first");
        let written = "in a window of its Plugin (soon UTC, for 1h), if that opens before one of the server";
        assert_eq!(phrase(Some(&[window("soon", "1h")]), &dark), format!("{written}{unless}"));
        let reported = Schedule { next: Some((opens, "Sun 25 Jan 04:00 CET".to_owned())), ..plain.clone() };
        assert_eq!(phrase(Some(&own), &reported), "Sun 25 Jan 04:00 CET");
        assert_eq!(phrase(Some(&own), &Schedule { is_open: true, ..reported.clone() }), "now: a window is open");
        let follows = Some(LeaderServer { server: "staging".to_owned(), soak: "48h".to_owned(), waits: None });
        let after = Schedule { follows, ..plain };
        assert!(phrase(Some(&own), &after).starts_with("in a window after staging"));
        assert_eq!(phrase(None, &after), "now: it is urgent (`spec.urgent`)", "an urgent update does not wait");
        let unapproved = Schedule { unapproved: Some(PendingApproval { digest: None }), ..reported };
        assert_eq!(phrase(Some(&own), &unapproved), "in a window after the set is approved");
        assert_eq!(phrase(None, &unapproved), "as soon as the set is approved");
    }
}
