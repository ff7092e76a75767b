//! Pure. Determines the pinned set of a server: an earlier one (`nightshift.dev/rollback-to`), or the running one (`*` in `spec.hold`). It
//! also prunes the history of sets.

use crds::annotations::{PREVIOUS, ROLLBACK_TO, names};
use crds::paper_mc_server::{HandledRequests, HistoryEntry, WHOLE_SET};
use crds::{PaperMCServer, PaperMCServerStatus};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use serde_json::json;

use super::approval::whole_second;
use super::records::LockRecord;
use crate::error_chain::cut;

/// Number of sets that are kept whatever their age.
const KEPT: usize = 5;
/// Sets verified within this time are kept as well.
const KEPT_FOR: SignedDuration = SignedDuration::from_hours(30 * 24);
/// Maximum number of sets, for a server that changes every day.
const MOST: usize = 20;
/// Maximum length of a patch in a message. A longer command would be cut, and a truncated list would change the meaning.
const LONGEST_PATCH: usize = 512;

/// The set at which a user pins the server. It stays there until the request is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PinnedSet {
    /// A set that is kept.
    To {
        /// Digest of its lock.
        digest: String,
        /// When the request was first observed.
        since: Timestamp,
    },
    /// The named set is not kept. The running set stays, because a user who wants to roll back does not want an update.
    Unknown {
        /// The value as written.
        asked: String,
    },
    /// `*` in `spec.hold`: the running set stays.
    Held {
        /// Digest of its lock.
        digest: String,
        /// Other entries of `spec.hold`.
        others: Vec<String>,
    },
}

impl PinnedSet {
    /// The set that the server's annotation requests while `runs` is stable, otherwise the one that its spec holds. A server without a
    /// stable revision can neither roll back nor hold a set.
    pub(crate) fn of(
        server: &PaperMCServer,
        before: &PaperMCServerStatus,
        runs: Option<&str>,
        now: Timestamp,
    ) -> Option<Self> {
        let runs = runs?;
        let Some(asked) = written(server) else { return Self::held(server, runs) };
        let handled = before.last_handled.as_ref().filter(|handled| handled.rollback_to.as_ref() == Some(&asked));
        if let Some((digest, since)) = handled.and_then(|it| it.rollback_digest.clone().zip(it.rollback_seen_at)) {
            return Some(Self::To { digest, since });
        }
        let found = before.history.iter().find(|past| match asked.as_str() {
            PREVIOUS => past.lock != runs,
            digest => names(digest, &past.lock),
        });
        Some(match found {
            Some(past) => Self::To { digest: past.lock.clone(), since: whole_second(now) },
            None => Self::Unknown { asked },
        })
    }

    /// The running set, if the server's spec holds it.
    fn held(server: &PaperMCServer, runs: &str) -> Option<Self> {
        let spec = &server.spec;
        spec.holds_all().then(|| {
            let others = spec.hold.iter().filter(|name| *name != WHOLE_SET).cloned().collect();
            Self::Held { digest: runs.to_owned(), others }
        })
    }

    /// The message for a user who requests a partial update meanwhile.
    pub(crate) fn refusal(&self) -> &'static str {
        match self {
            Self::To { .. } | Self::Unknown { .. } => {
                "`nightshift.dev/rollback-to` keeps the server at an earlier set: take it away first"
            }
            Self::Held { .. } => "`*` in `spec.hold` keeps the server at the set that runs: take it away first",
        }
    }

    /// The reason of the condition.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::To { .. } => "RollbackTo",
            Self::Unknown { .. } => "UnknownSet",
            Self::Held { .. } => "Held",
        }
    }

    /// The message of the condition, with the command that ends it. `history` holds the server's sets.
    pub(crate) fn in_words(&self, namespace: &str, name: &str, history: &[HistoryEntry]) -> String {
        let way_on = format!(
            "updates go on when the annotation is taken away: `kubectl -n {namespace} annotate papermcserver {name} \
             {ROLLBACK_TO}-`"
        );
        let set = |digest: &String| {
            history.iter().find(|past| past.lock == *digest).map_or_else(|| digest.clone(), one_in_words)
        };
        match self {
            Self::To { digest, since: _ } => {
                format!("`{ROLLBACK_TO}` holds the server at the set {}; {way_on}", set(digest))
            }
            Self::Unknown { asked } => {
                let kept: Vec<String> = history.iter().take(KEPT).map(one_in_words).collect();
                let kept = if kept.is_empty() { "none".to_owned() } else { kept.join(", ") };
                format!("`{ROLLBACK_TO}` is `{asked}`, and no set of that name is kept; kept are: {kept}. {way_on}")
            }
            Self::Held { digest, others } => format!(
                "`spec.hold` of the server has `*`: the set {} stays; updates go on when it is taken away: `{}`",
                set(digest),
                let_go(namespace, name, others)
            ),
        }
    }

    /// The record that the status needs before the operator acts on the request. `None` if it is there already. `previous` would name
    /// another set as soon as the server has rolled back.
    pub(crate) fn to_note(&self, server: &PaperMCServer, before: Option<&HandledRequests>) -> Option<HandledRequests> {
        let Self::To { digest, since } = self else { return None };
        let noted = HandledRequests {
            rollback_to: written(server),
            rollback_digest: Some(digest.clone()),
            rollback_seen_at: Some(*since),
            ..before.cloned().unwrap_or_default()
        };
        (Some(&noted) != before).then_some(noted)
    }
}

/// The command that removes `*` from `spec.hold` and leaves its other entries.
fn let_go(namespace: &str, name: &str, others: &[String]) -> String {
    let hold = (!others.is_empty()).then_some(others);
    let patch = json!({"spec": {"hold": hold}}).to_string();
    if patch.len() > LONGEST_PATCH {
        return format!("kubectl -n {namespace} edit papermcserver {name}");
    }
    format!("kubectl -n {namespace} patch papermcserver {name} --type merge -p '{patch}'")
}

/// The request as it is stored in the status.
fn written(server: &PaperMCServer) -> Option<String> {
    let asked = server.annotations().get(ROLLBACK_TO)?.trim();
    (!asked.is_empty()).then(|| cut(asked, 253))
}

/// The record of a request that the status keeps. It is cleared when the request is removed or names another set, so that it counts again
/// when it is set again.
pub(crate) fn still_noted(server: &PaperMCServer, handled: HandledRequests) -> HandledRequests {
    if handled.rollback_to.is_some() && handled.rollback_to == written(server) {
        return handled;
    }
    HandledRequests { rollback_to: None, rollback_digest: None, rollback_seen_at: None, ..handled }
}

/// How a set came to run on this server.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SetOrigin {
    /// Downtime of the update in seconds.
    pub(crate) down_seconds: Option<u32>,
    /// Number of players that were online.
    pub(crate) players: Option<u32>,
    /// Whether it was kept without verification.
    pub(crate) unproven: bool,
}

/// The history of sets with the running one in front, without the ones that are pruned. An unverified set counts as verified from the
/// instant at which a pass verifies it.
pub(crate) fn history(
    before: &[HistoryEntry],
    runs: Option<&LockRecord>,
    came: SetOrigin,
    is_proven: bool,
    now: Timestamp,
) -> Vec<HistoryEntry> {
    let mut history = before.to_vec();
    if let Some(LockRecord { lock, files }) = runs
        && history.first().is_none_or(|newest| newest.lock != files.lock)
    {
        history.retain(|past| past.lock != files.lock);
        let version = cut(&format!("{}-{}", lock.minecraft, lock.build), 64);
        let SetOrigin { down_seconds, players, unproven } = came;
        let lock = files.lock.clone();
        history.insert(0, HistoryEntry { lock, version, settled_at: now, unproven, down_seconds, players });
    } else if let Some(newest) = history.first_mut().filter(|newest| newest.unproven && is_proven) {
        (newest.unproven, newest.settled_at) = (false, now);
    }
    let mut place = 0;
    history.retain(|past| {
        place += 1;
        place <= KEPT || place <= MOST && past.settled_at + KEPT_FOR > now
    });
    history
}

/// Enough digits of the digest for a request, and the version.
fn one_in_words(past: &HistoryEntry) -> String {
    let doubt = if past.unproven { ", not proven" } else { "" };
    format!("{} ({}{doubt})", past.lock.get(..16).unwrap_or(&past.lock), past.version)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const OLD: &str = "1111111111111111111111111111111111111111111111111111111111111111";
    const RUNS: &str = "2222222222222222222222222222222222222222222222222222222222222222";

    fn server(annotations: &Value) -> PaperMCServer {
        serde_json::from_value(json!({
            "metadata": {"name": "lobby", "annotations": annotations}, "spec": {"updateStrategy": "auto"},
        }))
        .unwrap()
    }

    fn asks(what: &str) -> PaperMCServer {
        server(&json!({"nightshift.dev/rollback-to": what}))
    }

    fn holds(hold: &Value, annotations: &Value) -> PaperMCServer {
        let mut server = server(annotations);
        server.spec.hold = serde_json::from_value(hold.clone()).unwrap();
        server
    }

    fn held(others: &[&str]) -> PinnedSet {
        PinnedSet::Held { digest: RUNS.to_owned(), others: others.iter().map(|name| (*name).to_owned()).collect() }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn past(lock: &str, second: i64) -> HistoryEntry {
        let version = "1.21.10-130".to_owned();
        let (lock, settled_at) = (lock.to_owned(), at(second));
        HistoryEntry { lock, version, settled_at, unproven: false, down_seconds: None, players: None }
    }

    fn status(history: &[&str], handled: Option<HandledRequests>) -> PaperMCServerStatus {
        let history = history.iter().map(|lock| past(lock, 0)).collect();
        PaperMCServerStatus { history, last_handled: handled, ..PaperMCServerStatus::default() }
    }

    fn to(digest: &str, second: i64) -> PinnedSet {
        PinnedSet::To { digest: digest.to_owned(), since: at(second) }
    }

    #[test]
    fn pinned_set_is_named_by_digest_prefix_or_previous() {
        let kept = status(&[RUNS, OLD], None);
        for asked in [OLD, &OLD[..16], "previous", " previous\n"] {
            assert_eq!(PinnedSet::of(&asks(asked), &kept, Some(RUNS), at(5)), Some(to(OLD, 5)), "{asked}");
        }
        assert_eq!(PinnedSet::of(&asks(RUNS), &kept, Some(RUNS), at(5)), Some(to(RUNS, 5)), "to stay is a wish too");
        for (asked, kept) in [(&OLD[..15], &kept), ("previous", &status(&[RUNS], None)), (OLD, &status(&[RUNS], None))]
        {
            let unknown = Some(PinnedSet::Unknown { asked: asked.to_owned() });
            assert_eq!(PinnedSet::of(&asks(asked), kept, Some(RUNS), at(5)), unknown, "{asked}");
        }
        assert_eq!(PinnedSet::of(&asks(OLD), &kept, None, at(5)), None, "nothing has settled yet");
        assert_eq!(PinnedSet::of(&asks(" "), &kept, Some(RUNS), at(5)), None);
        assert_eq!(PinnedSet::of(&server(&json!({})), &kept, Some(RUNS), at(5)), None);
    }

    #[test]
    fn pinned_set_holds_running_lock_unless_earlier_requested() {
        let kept = status(&[RUNS, OLD], None);
        let of = |hold: &Value, asked: &Value| PinnedSet::of(&holds(hold, asked), &kept, Some(RUNS), at(5));
        let silent = json!({});
        assert_eq!(of(&json!(["*"]), &silent), Some(held(&[])));
        assert_eq!(of(&json!(["maps", "*", "claims"]), &silent), Some(held(&["maps", "claims"])));
        for hold in [json!([]), json!(["maps"])] {
            assert_eq!(of(&hold, &silent), None, "{hold}");
        }
        let asks = |what: &str| json!({"nightshift.dev/rollback-to": what});
        assert_eq!(of(&json!(["*"]), &asks("previous")), Some(to(OLD, 5)), "the nearer word");
        assert!(matches!(of(&json!(["*"]), &asks("abc")), Some(PinnedSet::Unknown { .. })));
        assert_eq!(of(&json!(["*"]), &asks(" ")), Some(held(&[])));
        let server = holds(&json!(["*"]), &silent);
        assert_eq!(PinnedSet::of(&server, &kept, None, at(5)), None, "nothing has settled yet");
        assert_eq!(held(&[]).to_note(&server, None), None, "it stands in the spec");
    }

    #[test]
    fn pinned_set_message_names_lock_and_release_command() {
        let told = |others: &[&str]| held(others).in_words("games", "lobby", &[past(RUNS, 0), past(OLD, 0)]);
        let begins = "`spec.hold` of the server has `*`: the set 2222222222222222 (1.21.10-130) stays; updates go on \
                      when it is taken away: `kubectl -n games";
        let patch = |patch: &str| format!("{begins} patch papermcserver lobby --type merge -p '{patch}'`");
        assert_eq!(told(&[]), patch(r#"{"spec":{"hold":null}}"#));
        assert_eq!(told(&["maps", "claims"]), patch(r#"{"spec":{"hold":["maps","claims"]}}"#));
        let many = ["a-plugin-with-a-long-name"; 63];
        assert_eq!(told(&many), format!("{begins} edit papermcserver lobby`"));
        let unknown = PinnedSet::Unknown { asked: "abc".to_owned() };
        assert_eq!([held(&[]).reason(), to(OLD, 5).reason(), unknown.reason()], ["Held", "RollbackTo", "UnknownSet"]);
        assert!(held(&[]).refusal().contains("`spec.hold`") && unknown.refusal().contains("rollback-to"));
    }

    #[test]
    fn pinned_set_previous_stays_same_after_rollback() {
        let server = asks("previous");
        let first = PinnedSet::of(&server, &status(&[RUNS, OLD], None), Some(RUNS), at(5)).unwrap();
        let noted = first.to_note(&server, None).unwrap();
        let back = status(&[OLD, RUNS], Some(noted.clone()));
        assert_eq!(PinnedSet::of(&server, &back, Some(OLD), at(99)), Some(to(OLD, 5)));
        assert_eq!(first.to_note(&server, Some(&noted)), None, "it stands there");
        assert_eq!(still_noted(&server, noted.clone()), noted);
        for other in [super::tests::server(&json!({})), asks(RUNS)] {
            assert_eq!(
                still_noted(&other, noted.clone()),
                HandledRequests::default(),
                "and counts again when it comes again"
            );
        }
    }

    #[test]
    fn history_keeps_five_locks_and_twenty_of_last_month() {
        let day = 24 * 60 * 60;
        let of = |days: &[i64]| -> Vec<HistoryEntry> {
            days.iter().map(|ago| past(&format!("{ago:064}"), (1_000 - ago) * day)).collect()
        };
        let kept = |days: &[i64]| history(&of(days), None, SetOrigin::default(), false, at(1_000 * day)).len();
        assert_eq!(kept(&[40, 50, 60, 70, 80, 90]), 5);
        assert_eq!(kept(&[1, 2, 3, 4, 5, 29, 30, 31]), 6);
        assert_eq!(kept(&(1..29).collect::<Vec<_>>()), 20);
    }

    #[test]
    fn history_lists_running_lock_first_and_once() {
        let lock = serde_json::from_value(json!({
            "server": "games/lobby", "minecraft": "1.21.10", "build": 129, "java": 21,
            "paper": {"name": "paper.jar", "url": "", "hash": "sha256:00"}, "plugins": [], "facts": [],
        }));
        let file = json!({"path": "paper.jar", "hash": "sha256:00", "url": ""});
        let files =
            json!({"lock": RUNS, "minecraft": "1.21.10", "build": 129, "server": file, "support": [], "plugins": []});
        let record = LockRecord { lock: lock.unwrap(), files: serde_json::from_value(files).unwrap() };
        let locks = |history: &[HistoryEntry]| history.iter().map(|past| past.lock.clone()).collect::<Vec<_>>();
        let came = |down, players| SetOrigin { down_seconds: Some(down), players: Some(players), unproven: false };
        let first = history(&[past(OLD, 1)], Some(&record), came(21, 3), true, at(7));
        assert_eq!(locks(&first), [RUNS, OLD]);
        assert_eq!((first[0].version.as_str(), first[0].settled_at), ("1.21.10-129", at(7)));
        assert_eq!((first[0].down_seconds, first[0].players), (Some(21), Some(3)));
        assert_eq!(history(&first, Some(&record), came(40, 0), true, at(9)), first, "a restart is no update");
        let back = [past(OLD, 1), past(RUNS, 7)];
        assert_eq!(locks(&history(&back, Some(&record), SetOrigin::default(), true, at(9))), [RUNS, OLD]);

        let unproven = SetOrigin { unproven: true, ..came(21, 3) };
        let kept = history(&[past(OLD, 1)], Some(&record), unproven, false, at(7));
        assert_eq!(history(&kept, Some(&record), unproven, false, at(9)), kept);
        assert!(kept[0].unproven && !kept[1].unproven);
        assert_eq!(one_in_words(&kept[0]), "2222222222222222 (1.21.10-129, not proven)");
        let later = history(&kept, Some(&record), unproven, true, at(9));
        assert_eq!((later[0].unproven, later[0].settled_at), (false, at(9)), "read at last: proven since then");
        assert_eq!(history(&later, Some(&record), unproven, false, at(11)), later, "and it stays so");
    }

    #[test]
    fn pinned_set_unknown_message_lists_kept_locks() {
        let unknown = PinnedSet::Unknown { asked: "abc".to_owned() };
        let told = unknown.in_words("games", "lobby", &[past(RUNS, 0), past(OLD, 0)]);
        assert!(told.contains("`abc`") && told.contains("1111111111111111 (1.21.10-130)"), "{told}");
        assert!(
            told.ends_with("`kubectl -n games annotate papermcserver lobby nightshift.dev/rollback-to-`"),
            "{told}"
        );
        assert!(unknown.in_words("games", "lobby", &[]).contains("kept are: none"));
    }
}
