//! Pure. Reads a user's approval of one exact version set (`nightshift.dev/approve`), or the request to apply it now
//! (`nightshift.dev/apply`). Both name the digest of its lock, so they apply only to the set that the user has seen.

use crds::PaperMCServer;
use crds::annotations::{APPLY, APPROVE, names};
use crds::paper_mc_server::{Approval, HandledRequests};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

use super::pinned_set::PinnedSet;

/// How long a request for a set that is not planned is reported: as long as it would have opened the gate.
const WORTH_A_WORD: SignedDuration = SignedDuration::from_mins(30);

/// The user's requests about the planned set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApprovalState {
    /// Whether `approval: Required` is set and this set is not approved.
    pub(crate) needs_approval: bool,
    /// When `nightshift.dev/apply` or `nightshift.dev/rollback-to` was first observed to name this set.
    pub(crate) apply_since: Option<Timestamp>,
    /// A recent `nightshift.dev/apply` that names neither the planned set nor the running one. An old request may stay on the server for
    /// ever after it was handled.
    pub(crate) applies_another: Option<String>,
}

impl ApprovalState {
    /// The state for the set `planned` while `runs` is stable. A first start needs no approval. Changed pod settings for the running set
    /// need none either.
    pub(crate) fn of(
        server: &PaperMCServer,
        before: Option<&HandledRequests>,
        planned: &str,
        runs: Option<&str>,
        undo: Option<&PinnedSet>,
        now: Timestamp,
    ) -> Self {
        let said = |annotation: &str| server.annotations().get(annotation).map(String::as_str);
        let apply = said(APPLY);
        let is_another_set = runs.is_some_and(|runs| runs != planned);
        let is_approved = is_named(server, planned);
        let apply_since = apply.filter(|digest| names(digest, planned)).map(|digest| first_seen(before, digest, now));
        let undo_since = undo.and_then(|undo| match undo {
            PinnedSet::To { digest, since } if digest == planned => Some(*since),
            PinnedSet::To { .. } | PinnedSet::Unknown { .. } | PinnedSet::Held { .. } => None,
        });
        let is_asked_for = is_approved || undo_since.is_some();
        Self {
            needs_approval: server.spec.approval == Approval::Required && is_another_set && !is_asked_for,
            // If two requests name the set, the later one keeps the gate open for longer.
            apply_since: apply_since.max(undo_since),
            applies_another: apply
                .filter(|digest| !names(digest, planned) && !runs.is_some_and(|runs| names(digest, runs)))
                .filter(|digest| now < first_seen(before, digest, now) + WORTH_A_WORD)
                .map(str::to_owned),
        }
    }
}

/// Whether a user has approved exactly this set, or requested it.
pub(crate) fn is_named(server: &PaperMCServer, digest: &str) -> bool {
    let said = |annotation: &str| server.annotations().get(annotation);
    [said(APPROVE), said(APPLY)].into_iter().flatten().any(|written| names(written, digest))
}

/// Whether a user has requested exactly this set. An approval alone is not enough.
pub(crate) fn is_asked_for(server: &PaperMCServer, digest: &str) -> bool {
    server.annotations().get(APPLY).is_some_and(|written| names(written, digest))
}

/// The request for one exact set with the instant at which it was first observed, for the status. A request that is removed is forgotten,
/// and counts again when it is set again.
pub(crate) fn noted(
    server: &PaperMCServer,
    before: Option<&HandledRequests>,
    now: Timestamp,
) -> Option<(String, Timestamp)> {
    let digest = server.annotations().get(APPLY)?;
    let kept = crate::error_chain::cut(digest, 253);
    Some((kept, first_seen(before, digest, now)))
}

fn first_seen(before: Option<&HandledRequests>, digest: &str, now: Timestamp) -> Timestamp {
    let same = before.filter(|before| before.apply.as_deref() == Some(crate::error_chain::cut(digest, 253).as_str()));
    same.and_then(|before| before.apply_seen_at).unwrap_or_else(|| whole_second(now))
}

/// The instant truncated to whole seconds: the gate always opens at a whole second.
pub(super) fn whole_second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const RUNS: &str = "1111111111111111111111111111111111111111111111111111111111111111";
    const PLANNED: &str = "2222222222222222222222222222222222222222222222222222222222222222";

    fn server(approval: &str, annotations: &Value) -> PaperMCServer {
        serde_json::from_value(json!({
            "metadata": {"name": "lobby", "annotations": annotations},
            "spec": {"updateStrategy": "auto", "approval": approval},
        }))
        .unwrap()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn needs(server: &PaperMCServer, planned: &str, runs: Option<&str>) -> bool {
        ApprovalState::of(server, None, planned, runs, None, at(0)).needs_approval
    }

    #[test]
    fn approval_must_name_planned_lock_where_required() {
        let required = |annotations: Value| server("Required", &annotations);
        assert!(needs(&required(json!({})), PLANNED, Some(RUNS)));
        assert!(!needs(&server("Automatic", &json!({})), PLANNED, Some(RUNS)));
        assert!(!needs(&required(json!({})), PLANNED, None), "a first start");
        assert!(!needs(&required(json!({})), RUNS, Some(RUNS)), "other settings for what runs");
        for annotation in ["nightshift.dev/approve", "nightshift.dev/apply"] {
            assert!(!needs(&required(json!({annotation: PLANNED})), PLANNED, Some(RUNS)));
            assert!(!needs(&required(json!({annotation: &PLANNED[..16]})), PLANNED, Some(RUNS)));
            assert!(needs(&required(json!({annotation: &PLANNED[..15]})), PLANNED, Some(RUNS)), "too few digits");
            assert!(needs(&required(json!({annotation: RUNS})), PLANNED, Some(RUNS)), "that was the set before");
        }
        assert!(needs(&required(json!({"nightshift.dev/apply-now": "0"})), PLANNED, Some(RUNS)));
    }

    #[test]
    fn approval_does_not_request_the_update() {
        let says = |annotation: &str, digest: &str| server("Required", &json!({annotation: digest}));
        let approves = says("nightshift.dev/approve", PLANNED);
        assert!(is_named(&approves, PLANNED) && !is_asked_for(&approves, PLANNED));
        let asks = says("nightshift.dev/apply", PLANNED);
        assert!(is_named(&asks, PLANNED) && is_asked_for(&asks, PLANNED) && !is_asked_for(&asks, RUNS));
    }

    #[test]
    fn rollback_to_lock_approves_only_that_lock() {
        let required = server("Required", &json!({"nightshift.dev/apply": PLANNED}));
        let back = |digest: &str, second| PinnedSet::To { digest: digest.to_owned(), since: at(second) };
        let said = |server: &PaperMCServer, undo: &PinnedSet| {
            let consent = ApprovalState::of(server, None, PLANNED, Some(RUNS), Some(undo), at(100));
            (consent.needs_approval, consent.apply_since)
        };
        let silent = server("Required", &json!({}));
        assert_eq!(said(&silent, &back(PLANNED, 7)), (false, Some(at(7))));
        assert_eq!(said(&silent, &back(RUNS, 7)), (true, None));
        assert_eq!(said(&silent, &PinnedSet::Unknown { asked: PLANNED.to_owned() }), (true, None));
        let held = PinnedSet::Held { digest: PLANNED.to_owned(), others: Vec::new() };
        assert_eq!(said(&silent, &held), (true, None), "to hold a set is not to ask for it");
        assert_eq!(said(&required, &back(PLANNED, 7)), (false, Some(at(100))), "asked for twice");
    }

    #[test]
    fn apply_request_counts_from_first_observation() {
        let asks = server("Automatic", &json!({"nightshift.dev/apply": PLANNED}));
        let half = SignedDuration::from_millis(500);
        let since = |before: Option<&HandledRequests>| {
            ApprovalState::of(&asks, before, PLANNED, Some(RUNS), None, at(100) + half).apply_since
        };
        assert_eq!(since(None), Some(at(100)), "whole seconds");
        let handled = |digest: &str| HandledRequests {
            apply: Some(digest.to_owned()),
            apply_seen_at: Some(at(7)),
            ..HandledRequests::default()
        };
        assert_eq!(since(Some(&handled(PLANNED))), Some(at(7)));
        assert_eq!(since(Some(&handled(RUNS))), Some(at(100)), "that was another request");
        assert_eq!(noted(&asks, Some(&handled(PLANNED)), at(100)), Some((PLANNED.to_owned(), at(7))));
        assert_eq!(noted(&server("Automatic", &json!({})), Some(&handled(PLANNED)), at(100)), None, "taken away");
    }

    #[test]
    fn apply_request_for_unplanned_lock_is_reported() {
        let asks = |digest: &str| server("Automatic", &json!({"nightshift.dev/apply": digest}));
        let another = |digest| ApprovalState::of(&asks(digest), None, PLANNED, Some(RUNS), None, at(0)).applies_another;
        assert_eq!(another("333333333333333333"), Some("333333333333333333".to_owned()));
        assert_eq!((another(RUNS), another(PLANNED)), (None, None));
        let old = HandledRequests {
            apply: Some("333333333333333333".to_owned()),
            apply_seen_at: Some(at(0)),
            ..HandledRequests::default()
        };
        let asked = asks("333333333333333333");
        let told = |second| {
            ApprovalState::of(&asked, Some(&old), PLANNED, Some(RUNS), None, at(second)).applies_another.is_some()
        };
        assert_eq!((told(1799), told(1800)), (true, false), "it may have been served long ago");
    }
}
