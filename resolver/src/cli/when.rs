//! Pure. When what an answer says would happen: by the windows of the server, and what the operator said of them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::schedule::{Followed, Schedule};
use crate::explain::{Explanation, Hint, HintStep, Solved};
use crate::request::Request;

/// What the operator puts behind the words for a window that need not be waited for.
const OR_WHEN_EMPTY: &str = " or when empty";

/// When a server would be restarted.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum When {
    /// Not at all: nothing changes.
    Never,
    /// At once: a first start needs no window.
    FirstStart,
    /// Now: a window is open.
    Open,
    /// When this window opens, as the operator told it.
    Window {
        /// The instant.
        opens: Timestamp,
        /// For people, in the server's zone.
        in_words: String,
        /// It need not be waited for when nobody has been on for so long.
        #[serde(skip_serializing_if = "Option::is_none")]
        or_empty_for: Option<String>,
    },
    /// In the next of these windows; nobody has told yet when that is.
    Windows {
        /// As they are written: cron, zone, length.
        windows: Vec<String>,
        /// Times in which none of them counts, as they are written.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        blackouts: Vec<String>,
        /// They need not be waited for when nobody has been on for so long.
        #[serde(skip_serializing_if = "Option::is_none")]
        or_empty_for: Option<String>,
    },
    /// Only when somebody asks for it: no window is switched on.
    ByHand,
    /// Not while `nightshift.dev/rollback-to` holds it at an earlier set.
    Held,
    /// In a window after somebody has approved the set: `spec.approval` is `Required`.
    Approval {
        /// The digest of what the operator plans, for the annotation `nightshift.dev/approve`.
        #[serde(skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
    },
    /// In a window after another server has run the same for long enough: `spec.follows`.
    Followed {
        /// The other server.
        server: String,
        /// How long it must have run the same, as it is written.
        soak: String,
        /// What is missing there, as the operator told it.
        #[serde(skip_serializing_if = "Option::is_none")]
        waits: Option<String>,
    },
    /// Only when somebody asks for it, or resumes: `spec.suspend` is true.
    Suspended,
}

impl When {
    /// Of a server that `is_new`, or that nothing is to be changed on (`is_same`), asked at `now` about `at`.
    pub(super) fn of(
        (is_new, is_same): (bool, bool),
        schedule: Option<&Schedule>,
        now: Timestamp,
        at: Timestamp,
    ) -> Self {
        let Schedule {
            windows,
            blackouts,
            is_suspended,
            is_held,
            unapproved,
            follows,
            next,
            or_empty_for,
            is_open,
            by_the_clock: _,
        } = schedule.cloned().unwrap_or_default();
        let is_open = is_open && at <= now;
        match next {
            _ if is_same => Self::Never,
            _ if is_new => Self::FirstStart,
            _ if is_held => Self::Held,
            _ if unapproved.is_some() => Self::Approval { digest: unapproved.and_then(|it| it.digest) },
            // With a request of somebody, the operator says that one is open.
            _ if is_suspended && !is_open => Self::Suspended,
            _ if windows.is_empty() => Self::ByHand,
            // What is told of a window by then is told by an operator that knows how the other server fares.
            _ if follows.as_ref().is_some_and(|it| it.waits.is_some() || next.is_none() && !is_open) => {
                let Followed { server, soak, waits } = follows.expect("it is there, as the line above says");
                Self::Followed { server, soak, waits }
            }
            _ if is_open => Self::Open,
            Some((opens, in_words)) if opens > now.max(at) => Self::Window { opens, in_words, or_empty_for },
            // An operator that has not spoken since is no witness.
            Some(_) | None => Self::Windows { windows, blackouts, or_empty_for },
        }
    }

    /// The same for what may come in windows only, such as a newer Minecraft.
    pub(super) fn in_windows_only(self) -> Self {
        match self {
            Self::Window { opens, in_words, or_empty_for: _ } => {
                let in_words = in_words.strip_suffix(OR_WHEN_EMPTY).unwrap_or(&in_words).to_owned();
                Self::Window { opens, in_words, or_empty_for: None }
            }
            Self::Windows { windows, blackouts, or_empty_for: _ } => {
                Self::Windows { windows, blackouts, or_empty_for: None }
            }
            other @ (Self::Never
            | Self::FirstStart
            | Self::Open
            | Self::ByHand
            | Self::Held
            | Self::Approval { .. }
            | Self::Followed { .. }
            | Self::Suspended) => other,
        }
    }

    /// Whether it may come outside of windows: a restart by the clock takes it along.
    pub(super) fn is_opportunistic(&self) -> bool {
        match self {
            Self::Window { or_empty_for, .. } | Self::Windows { or_empty_for, .. } => or_empty_for.is_some(),
            Self::Never
            | Self::FirstStart
            | Self::Open
            | Self::ByHand
            | Self::Held
            | Self::Approval { .. }
            | Self::Followed { .. }
            | Self::Suspended => false,
        }
    }

    /// What stands behind "is changed".
    pub(super) fn in_words(&self) -> String {
        match self {
            Self::Never => "not at all".to_owned(),
            Self::FirstStart => "at once: a first start needs no window".to_owned(),
            Self::Open => "now: a window is open".to_owned(),
            Self::Window { opens: _, in_words, or_empty_for: _ } => in_words.clone(),
            Self::Windows { windows, blackouts, or_empty_for } => {
                let or = or_empty_for.as_ref().map(|time| format!(", or when nobody has been on for {time}"));
                let (windows, or) = (windows.join("; "), or.unwrap_or_default());
                match blackouts.join("; ") {
                    none if none.is_empty() => format!("in its next window ({windows}){or}"),
                    blackouts => format!("in its next window ({windows}){or}, if no blackout is on ({blackouts})"),
                }
            }
            Self::Held => {
                "when `nightshift.dev/rollback-to`, which holds it at an earlier set, is taken away".to_owned()
            }
            Self::Approval { digest: None } => "in a window after the set is approved".to_owned(),
            Self::Approval { digest: Some(digest) } => {
                format!("in a window after the set is approved: `nightshift.dev/approve={digest}`")
            }
            Self::Followed { server, soak, waits } => {
                let waits = waits.as_ref().map(|waits| format!("; it {waits}")).unwrap_or_default();
                format!("in a window after {server} has run the same for {soak} (`spec.follows`){waits}")
            }
            Self::Suspended => {
                "when somebody asks for it (`nightshift.dev/apply-now`): it is suspended (`spec.suspend`)".to_owned()
            }
            Self::ByHand => {
                "when somebody asks for it (`nightshift.dev/apply-now`): no window is switched on".to_owned()
            }
        }
    }
}

/// What is known of the times of the servers that are asked about.
pub(super) struct Timetable<'a> {
    /// By the names of the servers; one that is not there has no windows that are known.
    pub(super) schedules: &'a BTreeMap<String, Schedule>,
    /// What the servers want, and what runs on them.
    pub(super) requests: &'a [Request],
    /// The present instant.
    pub(super) now: Timestamp,
    /// The instant that is asked about.
    pub(super) at: Timestamp,
}

impl Timetable<'_> {
    /// When an answer would come true, or one of its hints. Nothing of a past instant, nor of a server that does not run: a first
    /// start waits for no window.
    pub(super) fn in_sentences(&self, explanation: &Explanation) -> Option<String> {
        let (server, hints, changes) = match explanation {
            Explanation::Solved(solved) => (&solved.server, &solved.hints, is_change(solved)),
            Explanation::Impossible(impossible) => (&impossible.server, &impossible.hints, false),
            Explanation::WhyNot(why) => (&why.server, &why.hints, false),
            Explanation::Unanswerable(_) | Explanation::GaveUp(_) => return None,
        };
        let schedule = self.schedules.get(server)?;
        let runs = self.requests.iter().any(|request| request.server == *server && request.running.is_some());
        if !runs || self.at < self.now || (!changes && hints.is_empty()) {
            return None;
        }
        let mut when = When::of((false, false), Some(schedule), self.now, self.at);
        // What a hint brings is not known here: it may be a newer Minecraft.
        let is_plain = matches!(explanation, Explanation::Solved(solved) if changes && !is_one_way(solved));
        if !is_plain {
            when = when.in_windows_only();
        }
        // What is approved is the set that the operator plans, and a hint makes another one.
        if let When::Approval { digest } = &mut when
            && !changes
        {
            *digest = None;
        }
        let short = server.rsplit('/').next().unwrap_or(server);
        let (later, then): (Vec<&Hint>, Vec<&Hint>) = hints.iter().partition(|hint| solves_itself_after(hint, &when));
        let comes = match (changes, then.is_empty()) {
            (true, true) => Some(format!("{short} is changed {}.", when.in_words())),
            (true, false) => Some(format!("{short} is changed {}; with one of these, then too.", when.in_words())),
            (false, false) => Some(format!("With one of these {short} is changed {}.", when.in_words())),
            (false, true) => None,
        };
        let later = (!later.is_empty()).then(|| "What solves itself comes in the first window after that.".to_owned());
        Some(comes.into_iter().chain(later).collect::<Vec<_>>().join(" "))
    }
}

/// Whether anything of what runs would be another.
fn is_change(solved: &Solved) -> bool {
    let changes = |plugin: &crate::explain::ChosenPlugin| !plugin.runs_now || plugin.instead_of.is_some();
    !solved.paper.runs_now || !solved.removed.is_empty() || solved.plugins.iter().any(changes)
}

/// Whether what would run is another Minecraft, or another software.
fn is_one_way(solved: &Solved) -> bool {
    let before = solved.paper.instead_of.as_ref();
    before.is_some_and(|before| before.software != solved.software || before.minecraft < solved.paper.minecraft)
}

/// Whether a hint is to wait for an instant after the window in question.
fn solves_itself_after(hint: &Hint, when: &When) -> bool {
    let [HintStep::WaitUntil { at }] = hint.steps.as_slice() else { return false };
    match when {
        When::Window { opens, .. } => at > opens,
        When::Open | When::Windows { .. } => true,
        When::Never
        | When::FirstStart
        | When::ByHand
        | When::Held
        | When::Approval { .. }
        | When::Followed { .. }
        | When::Suspended => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::schedule::Unapproved;
    use super::*;

    #[test]
    fn a_restart_is_when_the_operator_said_and_never_earlier_than_now() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let opens = at("2026-01-25T03:00:00Z");
        let schedule = Schedule {
            windows: vec!["0 4 * * 0 UTC, for 1h".to_owned()],
            blackouts: vec!["@yearly UTC, for 24h".to_owned()],
            next: Some((opens, "Sun 25 Jan 04:00 CET".to_owned())),
            is_suspended: false,
            is_held: false,
            unapproved: None,
            follows: None,
            or_empty_for: None,
            is_open: false,
            by_the_clock: None,
        };
        let before = at("2026-01-21T12:00:00Z");
        let when = |schedule: &Schedule, now| When::of((false, false), Some(schedule), now, now);
        let in_words = "Sun 25 Jan 04:00 CET".to_owned();
        assert_eq!(when(&schedule, before), When::Window { opens, in_words, or_empty_for: None });
        let (windows, blackouts) = (schedule.windows.clone(), schedule.blackouts.clone());
        assert_eq!(when(&schedule, opens), When::Windows { windows, blackouts, or_empty_for: None });
        let open = Schedule { is_open: true, ..schedule.clone() };
        assert_eq!(when(&open, before), When::Open);
        // Of another instant than the present one nobody has said that a window is open.
        let later = |schedule, at| When::of((false, false), Some(schedule), before, at);
        assert_eq!(later(&open, at("2026-01-22T12:00:00Z")), when(&schedule, before));
        assert_eq!(later(&open, opens), when(&schedule, opens));
        let unapproved = Schedule { unapproved: Some(Unapproved { digest: None }), ..open.clone() };
        assert_eq!(when(&unapproved, before), When::Approval { digest: None });
        assert_eq!(when(&Schedule { is_held: true, ..unapproved.clone() }, before), When::Held);
        assert_eq!(when(&Schedule { is_suspended: true, ..schedule.clone() }, before), When::Suspended);
        assert_eq!(when(&Schedule { windows: Vec::new(), ..open }, before), When::ByHand);
        assert_eq!(When::of((true, false), Some(&schedule), before, before), When::FirstStart);
        assert_eq!(When::of((false, true), Some(&schedule), before, before), When::Never);
    }

    #[test]
    fn a_server_that_follows_another_says_so_where_the_operator_does_or_has_said_nothing() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let (now, opens) = (at("2026-01-21T12:00:00Z"), at("2026-01-25T03:00:00Z"));
        let follows = |waits: Option<&str>| {
            Some(Followed { server: "staging".to_owned(), soak: "48h".to_owned(), waits: waits.map(str::to_owned) })
        };
        let said = |waits, next: Option<&str>, is_open| {
            let windows = vec!["@daily UTC, for 1h".to_owned()];
            let next = next.map(|words| (opens, words.to_owned()));
            let schedule = Schedule { windows, follows: follows(waits), next, is_open, ..Schedule::default() };
            When::of((false, false), Some(&schedule), now, now).in_words()
        };
        let rule = "in a window after staging has run the same for 48h (`spec.follows`)";
        assert_eq!(said(None, None, false), rule);
        let waits = "waits for staging, which runs ViaVersion 5.5.1 still";
        assert_eq!(said(Some(waits), None, false), format!("{rule}; it {waits}"));
        assert_eq!(said(None, Some("Sun 25 Jan 04:00 CET"), false), "Sun 25 Jan 04:00 CET");
        assert_eq!(said(None, None, true), "now: a window is open");
    }

    #[test]
    fn what_need_not_wait_for_a_window_says_so_and_what_has_to_does_not() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let (now, opens) = (at("2026-01-21T12:00:00Z"), at("2026-01-25T03:00:00Z"));
        let mut schedule = Schedule {
            windows: vec!["@daily UTC, for 1h".to_owned()],
            or_empty_for: Some("10m".to_owned()),
            ..Schedule::default()
        };
        let when = |schedule: &Schedule| When::of((false, false), Some(schedule), now, now);
        let written = "in its next window (@daily UTC, for 1h)";
        assert_eq!(when(&schedule).in_words(), format!("{written}, or when nobody has been on for 10m"));
        assert_eq!(when(&schedule).in_windows_only().in_words(), written);
        schedule.next = Some((opens, "Sun 25 Jan 04:00 CET or when empty".to_owned()));
        assert_eq!(when(&schedule).in_words(), "Sun 25 Jan 04:00 CET or when empty");
        assert_eq!(when(&schedule).in_windows_only().in_words(), "Sun 25 Jan 04:00 CET");
        assert!(when(&schedule).is_opportunistic() && !when(&schedule).in_windows_only().is_opportunistic());
    }
}
