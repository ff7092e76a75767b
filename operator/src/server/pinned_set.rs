//! Pure. Determines the pinned set of a server: an earlier one (`nightshift.dev/rollback-to`), or the running one (`*` in `spec.hold`). It
//! also prunes the history of sets.

use crds::annotations::{PREVIOUS, ROLLBACK_TO, matches_digest};
use crds::paper_mc_server::{HandledRequests, HistoryEntry, WHOLE_SET};
use crds::{PaperMCServer, PaperMCServerStatus};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use serde_json::json;

use super::model::records::LockRecord;
use crate::clock::truncate_to_second;
use crate::error_chain::cut;

/// Number of sets that are kept whatever their age.
const MIN_RETAINED: usize = 5;
/// Sets verified within this time are kept as well.
const RETAINED_FOR: SignedDuration = SignedDuration::from_hours(30 * 24);
/// Maximum number of sets, for a server that changes every day.
const MAX_RETAINED: usize = 20;
/// Maximum length of a patch in a message. A longer command would be cut, and a truncated list would change the meaning.
const MAX_PATCH_LENGTH: usize = 512;

/// The set at which a user pins the server. It stays there until the request is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PinnedSet {
    /// A set that is kept.
    RollbackTo {
        /// Digest of its lock.
        digest: String,
        /// When the request was first observed.
        since: Timestamp,
    },
    /// The named set is not kept. The running set stays, because a user who wants to roll back does not want an update.
    Unknown {
        /// The value as written.
        requested: String,
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
    pub(crate) fn from_server(
        server: &PaperMCServer,
        before: &PaperMCServerStatus,
        runs: Option<&str>,
        now: Timestamp,
    ) -> Option<Self> {
        let runs = runs?;
        let Some(requested) = written_request(server) else { return Self::held_by_spec(server, runs) };
        let handled = before.last_handled.as_ref().filter(|handled| handled.rollback_to.as_ref() == Some(&requested));
        if let Some((digest, since)) =
            handled.and_then(|handled| handled.rollback_digest.clone().zip(handled.rollback_seen_at))
        {
            return Some(Self::RollbackTo { digest, since });
        }
        let found = before.history.iter().find(|past| match requested.as_str() {
            PREVIOUS => past.lock != runs,
            digest => matches_digest(digest, &past.lock),
        });
        Some(match found {
            Some(past) => Self::RollbackTo { digest: past.lock.clone(), since: truncate_to_second(now) },
            None => Self::Unknown { requested },
        })
    }

    /// The running set, if the server's spec holds it.
    fn held_by_spec(server: &PaperMCServer, runs: &str) -> Option<Self> {
        let spec = &server.spec;
        spec.is_fully_held().then(|| {
            let others = spec.hold.iter().filter(|name| *name != WHOLE_SET).cloned().collect();
            Self::Held { digest: runs.to_owned(), others }
        })
    }

    /// The message for a user who requests a partial update meanwhile.
    pub(crate) fn refusal(&self) -> &'static str {
        match self {
            Self::RollbackTo { .. } | Self::Unknown { .. } => {
                "`nightshift.dev/rollback-to` pins the server to an earlier version set: remove it first"
            }
            Self::Held { .. } => "`*` in `spec.hold` pins the server to the running version set: remove it first",
        }
    }

    /// The reason of the condition.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::RollbackTo { .. } => "RollbackTo",
            Self::Unknown { .. } => "UnknownSet",
            Self::Held { .. } => "Held",
        }
    }

    /// The message of the condition, with the command that ends it. `history` holds the server's sets.
    pub(crate) fn message(&self, namespace: &str, name: &str, history: &[HistoryEntry]) -> String {
        let next_step =
            format!("To continue updates, run `kubectl -n {namespace} annotate papermcserver {name} {ROLLBACK_TO}-`.");
        let entry = |digest: &String| {
            history.iter().find(|past| past.lock == *digest).map_or_else(|| digest.clone(), format_entry)
        };
        match self {
            Self::RollbackTo { digest, since: _ } => {
                format!("`{ROLLBACK_TO}` pins the server to the version set {}. {next_step}", entry(digest))
            }
            Self::Unknown { requested } => {
                let retained: Vec<String> = history.iter().take(MIN_RETAINED).map(format_entry).collect();
                let retained = if retained.is_empty() { "none".to_owned() } else { retained.join(", ") };
                format!(
                    "`{ROLLBACK_TO}` is `{requested}`, but no such version set exists. Existing sets: {retained}. \
                    {next_step}"
                )
            }
            Self::Held { digest, others } => format!(
                "`spec.hold` of the server has `*`: the version set {} stays. To continue updates, run `{}`.",
                entry(digest),
                unhold_command(namespace, name, others)
            ),
        }
    }

    /// The record that the status needs before the operator acts on the request. `None` if it is there already. `previous` would name
    /// another set as soon as the server has rolled back.
    pub(crate) fn to_record(
        &self,
        server: &PaperMCServer,
        before: Option<&HandledRequests>,
    ) -> Option<HandledRequests> {
        let Self::RollbackTo { digest, since } = self else { return None };
        let noted = HandledRequests {
            rollback_to: written_request(server),
            rollback_digest: Some(digest.clone()),
            rollback_seen_at: Some(*since),
            ..before.cloned().unwrap_or_default()
        };
        (Some(&noted) != before).then_some(noted)
    }
}

/// The command that removes `*` from `spec.hold` and leaves its other entries.
fn unhold_command(namespace: &str, name: &str, others: &[String]) -> String {
    let hold = (!others.is_empty()).then_some(others);
    let patch = json!({"spec": {"hold": hold}}).to_string();
    if patch.len() > MAX_PATCH_LENGTH {
        return format!("kubectl -n {namespace} edit papermcserver {name}");
    }
    format!("kubectl -n {namespace} patch papermcserver {name} --type merge -p '{patch}'")
}

/// The request as it is stored in the status.
fn written_request(server: &PaperMCServer) -> Option<String> {
    let requested = server.annotations().get(ROLLBACK_TO)?.trim();
    (!requested.is_empty()).then(|| cut(requested, 253))
}

/// The record of a request that the status keeps. It is cleared when the request is removed or names another set, so that it counts again
/// when it is set again.
pub(crate) fn retained_record(server: &PaperMCServer, handled: HandledRequests) -> HandledRequests {
    if handled.rollback_to.is_some() && handled.rollback_to == written_request(server) {
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
    pub(crate) unverified: bool,
}

/// The history of sets with the running one in front, without the ones that are pruned. An unverified set counts as verified from the
/// instant at which a pass verifies it.
pub(crate) fn next_history(
    before: &[HistoryEntry],
    runs: Option<&LockRecord>,
    origin: SetOrigin,
    is_verified: bool,
    now: Timestamp,
) -> Vec<HistoryEntry> {
    let mut history = before.to_vec();
    if let Some(LockRecord { lock, files }) = runs
        && history.first().is_none_or(|newest| newest.lock != files.lock)
    {
        history.retain(|past| past.lock != files.lock);
        let version = cut(&format!("{}-{}", lock.minecraft, lock.build), 64);
        let SetOrigin { down_seconds, players, unverified } = origin;
        let lock = files.lock.clone();
        history.insert(0, HistoryEntry { lock, version, settled_at: now, unverified, down_seconds, players });
    } else if let Some(newest) = history.first_mut().filter(|newest| newest.unverified && is_verified) {
        (newest.unverified, newest.settled_at) = (false, now);
    }
    let mut position = 0;
    history.retain(|past| {
        position += 1;
        position <= MIN_RETAINED || position <= MAX_RETAINED && past.settled_at + RETAINED_FOR > now
    });
    history
}

/// Enough digits of the digest for a request, and the version.
fn format_entry(past: &HistoryEntry) -> String {
    let suffix = if past.unverified { ", not verified" } else { "" };
    format!("{} ({}{suffix})", past.lock.get(..16).unwrap_or(&past.lock), past.version)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const OLD: &str = "1111111111111111111111111111111111111111111111111111111111111111";
    const RUNNING: &str = "2222222222222222222222222222222222222222222222222222222222222222";

    fn server(annotations: &Value) -> PaperMCServer {
        serde_json::from_value(json!({
            "metadata": {"name": "lobby", "annotations": annotations}, "spec": {"updateStrategy": "auto"},
        }))
        .unwrap()
    }

    fn requesting(request: &str) -> PaperMCServer {
        server(&json!({"nightshift.dev/rollback-to": request}))
    }

    fn holding(hold: &Value, annotations: &Value) -> PaperMCServer {
        let mut server = server(annotations);
        server.spec.hold = serde_json::from_value(hold.clone()).unwrap();
        server
    }

    fn held(others: &[&str]) -> PinnedSet {
        PinnedSet::Held { digest: RUNNING.to_owned(), others: others.iter().map(|name| (*name).to_owned()).collect() }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn past(lock: &str, second: i64) -> HistoryEntry {
        let version = "1.21.10-130".to_owned();
        let (lock, settled_at) = (lock.to_owned(), at(second));
        HistoryEntry { lock, version, settled_at, unverified: false, down_seconds: None, players: None }
    }

    fn status(history: &[&str], handled: Option<HandledRequests>) -> PaperMCServerStatus {
        let history = history.iter().map(|lock| past(lock, 0)).collect();
        PaperMCServerStatus { history, last_handled: handled, ..PaperMCServerStatus::default() }
    }

    fn rollback_to(digest: &str, second: i64) -> PinnedSet {
        PinnedSet::RollbackTo { digest: digest.to_owned(), since: at(second) }
    }

    #[test]
    fn pinned_set_is_named_by_digest_prefix_or_previous() {
        let retained = status(&[RUNNING, OLD], None);
        for requested in [OLD, &OLD[..16], "previous", " previous\n"] {
            assert_eq!(
                PinnedSet::from_server(&requesting(requested), &retained, Some(RUNNING), at(5)),
                Some(rollback_to(OLD, 5)),
                "{requested}"
            );
        }
        assert_eq!(
            PinnedSet::from_server(&requesting(RUNNING), &retained, Some(RUNNING), at(5)),
            Some(rollback_to(RUNNING, 5)),
            "the running set may be requested, too"
        );
        for (requested, retained) in
            [(&OLD[..15], &retained), ("previous", &status(&[RUNNING], None)), (OLD, &status(&[RUNNING], None))]
        {
            let unknown = Some(PinnedSet::Unknown { requested: requested.to_owned() });
            assert_eq!(
                PinnedSet::from_server(&requesting(requested), retained, Some(RUNNING), at(5)),
                unknown,
                "{requested}"
            );
        }
        assert_eq!(PinnedSet::from_server(&requesting(OLD), &retained, None, at(5)), None, "no set is stable yet");
        assert_eq!(PinnedSet::from_server(&requesting(" "), &retained, Some(RUNNING), at(5)), None);
        assert_eq!(PinnedSet::from_server(&server(&json!({})), &retained, Some(RUNNING), at(5)), None);
    }

    #[test]
    fn pinned_set_holds_running_lock_unless_earlier_requested() {
        let retained = status(&[RUNNING, OLD], None);
        let of = |hold: &Value, requested: &Value| {
            PinnedSet::from_server(&holding(hold, requested), &retained, Some(RUNNING), at(5))
        };
        let silent = json!({});
        assert_eq!(of(&json!(["*"]), &silent), Some(held(&[])));
        assert_eq!(of(&json!(["maps", "*", "claims"]), &silent), Some(held(&["maps", "claims"])));
        for hold in [json!([]), json!(["maps"])] {
            assert_eq!(of(&hold, &silent), None, "{hold}");
        }
        let annotation = |request: &str| json!({"nightshift.dev/rollback-to": request});
        assert_eq!(of(&json!(["*"]), &annotation("previous")), Some(rollback_to(OLD, 5)), "the annotation wins");
        assert!(matches!(of(&json!(["*"]), &annotation("abc")), Some(PinnedSet::Unknown { .. })));
        assert_eq!(of(&json!(["*"]), &annotation(" ")), Some(held(&[])));
        let server = holding(&json!(["*"]), &silent);
        assert_eq!(PinnedSet::from_server(&server, &retained, None, at(5)), None, "no set is stable yet");
        assert_eq!(held(&[]).to_record(&server, None), None, "the spec has it already");
    }

    #[test]
    fn pinned_set_message_names_lock_and_release_command() {
        let message = |others: &[&str]| held(others).message("games", "lobby", &[past(RUNNING, 0), past(OLD, 0)]);
        let begins = "`spec.hold` of the server has `*`: the version set 2222222222222222 (1.21.10-130) stays. To \
        continue updates, run `kubectl -n games";
        let patch = |patch: &str| format!("{begins} patch papermcserver lobby --type merge -p '{patch}'`.");
        assert_eq!(message(&[]), patch(r#"{"spec":{"hold":null}}"#));
        assert_eq!(message(&["maps", "claims"]), patch(r#"{"spec":{"hold":["maps","claims"]}}"#));
        let many = ["a-plugin-with-a-long-name"; 63];
        assert_eq!(message(&many), format!("{begins} edit papermcserver lobby`."));
        let unknown = PinnedSet::Unknown { requested: "abc".to_owned() };
        assert_eq!(
            [held(&[]).reason(), rollback_to(OLD, 5).reason(), unknown.reason()],
            ["Held", "RollbackTo", "UnknownSet"]
        );
        assert!(held(&[]).refusal().contains("`spec.hold`") && unknown.refusal().contains("rollback-to"));
    }

    #[test]
    fn pinned_set_previous_stays_same_after_rollback() {
        let server = requesting("previous");
        let first = PinnedSet::from_server(&server, &status(&[RUNNING, OLD], None), Some(RUNNING), at(5)).unwrap();
        let noted = first.to_record(&server, None).unwrap();
        let rolled_back = status(&[OLD, RUNNING], Some(noted.clone()));
        assert_eq!(PinnedSet::from_server(&server, &rolled_back, Some(OLD), at(99)), Some(rollback_to(OLD, 5)));
        assert_eq!(first.to_record(&server, Some(&noted)), None, "the record exists already");
        assert_eq!(retained_record(&server, noted.clone()), noted);
        for other in [super::tests::server(&json!({})), requesting(RUNNING)] {
            assert_eq!(
                retained_record(&other, noted.clone()),
                HandledRequests::default(),
                "a removed request counts again when it is set again"
            );
        }
    }

    #[test]
    fn history_keeps_five_locks_and_twenty_of_last_month() {
        let day = 24 * 60 * 60;
        let of = |days: &[i64]| -> Vec<HistoryEntry> {
            days.iter().map(|ago| past(&format!("{ago:064}"), (1_000 - ago) * day)).collect()
        };
        let retained = |days: &[i64]| next_history(&of(days), None, SetOrigin::default(), false, at(1_000 * day)).len();
        assert_eq!(retained(&[40, 50, 60, 70, 80, 90]), 5);
        assert_eq!(retained(&[1, 2, 3, 4, 5, 29, 30, 31]), 6);
        assert_eq!(retained(&(1..29).collect::<Vec<_>>()), 20);
    }

    #[test]
    fn history_lists_running_lock_first_and_once() {
        let lock = serde_json::from_value(json!({
            "server": "games/lobby", "minecraft": "1.21.10", "build": 129, "java": 21,
            "paper": {"name": "paper.jar", "url": "", "hash": "sha256:00"}, "plugins": [], "facts": [],
        }));
        let file = json!({"path": "paper.jar", "hash": "sha256:00", "url": ""});
        let files = json!({"lock": RUNNING, "minecraft": "1.21.10", "build": 129, "server": file, "support": [], "plugins": []});
        let record = LockRecord { lock: lock.unwrap(), files: serde_json::from_value(files).unwrap() };
        let locks = |history: &[HistoryEntry]| history.iter().map(|past| past.lock.clone()).collect::<Vec<_>>();
        let origin = |down, players| SetOrigin { down_seconds: Some(down), players: Some(players), unverified: false };
        let first = next_history(&[past(OLD, 1)], Some(&record), origin(21, 3), true, at(7));
        assert_eq!(locks(&first), [RUNNING, OLD]);
        assert_eq!((first[0].version.as_str(), first[0].settled_at), ("1.21.10-129", at(7)));
        assert_eq!((first[0].down_seconds, first[0].players), (Some(21), Some(3)));
        assert_eq!(next_history(&first, Some(&record), origin(40, 0), true, at(9)), first, "a restart is no update");
        let rolled_back = [past(OLD, 1), past(RUNNING, 7)];
        assert_eq!(
            locks(&next_history(&rolled_back, Some(&record), SetOrigin::default(), true, at(9))),
            [RUNNING, OLD]
        );

        let unverified = SetOrigin { unverified: true, ..origin(21, 3) };
        let retained = next_history(&[past(OLD, 1)], Some(&record), unverified, false, at(7));
        assert_eq!(next_history(&retained, Some(&record), unverified, false, at(9)), retained);
        assert!(retained[0].unverified && !retained[1].unverified);
        assert_eq!(format_entry(&retained[0]), "2222222222222222 (1.21.10-129, not verified)");
        let later = next_history(&retained, Some(&record), unverified, true, at(9));
        assert_eq!((later[0].unverified, later[0].settled_at), (false, at(9)), "verified from this pass on");
        assert_eq!(next_history(&later, Some(&record), unverified, false, at(11)), later, "a set stays verified");
    }

    #[test]
    fn pinned_set_unknown_message_lists_kept_locks() {
        let unknown = PinnedSet::Unknown { requested: "abc".to_owned() };
        let message = unknown.message("games", "lobby", &[past(RUNNING, 0), past(OLD, 0)]);
        assert!(message.contains("`abc`") && message.contains("1111111111111111 (1.21.10-130)"), "{message}");
        assert!(
            message.ends_with("`kubectl -n games annotate papermcserver lobby nightshift.dev/rollback-to-`."),
            "{message}"
        );
        assert!(unknown.message("games", "lobby", &[]).contains("Existing sets: none"));
    }
}
