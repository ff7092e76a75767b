//! Pure. Reads a user's approval of one exact version set (`nightshift.dev/approve`), or the request to apply it now
//! (`nightshift.dev/apply`). Both name the digest of its lock, so they apply only to the set that the user has seen.

use crds::PaperMCServer;
use crds::annotations::{APPLY, APPROVE, matches_digest};
use crds::paper_mc_server::{Approval, HandledRequests};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

use super::pinned_set::PinnedSet;
use crate::clock::truncate_to_second;

/// How long a request for a set that is not planned is reported: as long as it would have opened the gate.
const REPORT_REQUEST_FOR: SignedDuration = SignedDuration::from_mins(30);

/// The user's requests about the planned set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApprovalState {
    /// Whether `approval: Required` is set and this set is not approved.
    pub(crate) needs_approval: bool,
    /// When `nightshift.dev/apply` or `nightshift.dev/rollback-to` was first observed to name this set.
    pub(crate) apply_since: Option<Timestamp>,
    /// A recent `nightshift.dev/apply` that names neither the planned set nor the running one. An old request may stay on the server for
    /// ever after it was handled.
    pub(crate) requests_other_set: Option<String>,
}

impl ApprovalState {
    /// The state for the set `planned` while `runs` is stable. A first start needs no approval. Changed pod settings for the running set
    /// need none either.
    pub(crate) fn new(
        server: &PaperMCServer,
        before: Option<&HandledRequests>,
        planned: &str,
        runs: Option<&str>,
        pinned_set: Option<&PinnedSet>,
        now: Timestamp,
    ) -> Self {
        let annotation_value = |annotation: &str| server.annotations().get(annotation).map(String::as_str);
        let apply = annotation_value(APPLY);
        let is_other_set = runs.is_some_and(|runs| runs != planned);
        let is_approved = is_approved_or_requested(server, planned);
        let apply_since =
            apply.filter(|digest| matches_digest(digest, planned)).map(|digest| first_observed_at(before, digest, now));
        let pinned_since = pinned_set.and_then(|pinned_set| match pinned_set {
            PinnedSet::RollbackTo { digest, since } if digest == planned => Some(*since),
            PinnedSet::RollbackTo { .. } | PinnedSet::Unknown { .. } | PinnedSet::Held { .. } => None,
        });
        let is_approved = is_approved || pinned_since.is_some();
        Self {
            needs_approval: server.spec.approval == Approval::Required && is_other_set && !is_approved,
            // If two requests name the set, the later one keeps the gate open for longer.
            apply_since: apply_since.max(pinned_since),
            requests_other_set: apply
                .filter(|digest| {
                    !matches_digest(digest, planned) && !runs.is_some_and(|runs| matches_digest(digest, runs))
                })
                .filter(|digest| now < first_observed_at(before, digest, now) + REPORT_REQUEST_FOR)
                .map(str::to_owned),
        }
    }
}

/// Whether a user has approved exactly this set, or requested it.
pub(crate) fn is_approved_or_requested(server: &PaperMCServer, digest: &str) -> bool {
    let annotation_value = |annotation: &str| server.annotations().get(annotation);
    [annotation_value(APPROVE), annotation_value(APPLY)]
        .into_iter()
        .flatten()
        .any(|written| matches_digest(written, digest))
}

/// Whether a user has requested exactly this set. An approval alone is not enough.
pub(crate) fn is_requested(server: &PaperMCServer, digest: &str) -> bool {
    server.annotations().get(APPLY).is_some_and(|written| matches_digest(written, digest))
}

/// The request for one exact set with the instant at which it was first observed, for the status. A request that is removed is forgotten,
/// and counts again when it is set again.
pub(crate) fn recorded_request(
    server: &PaperMCServer,
    before: Option<&HandledRequests>,
    now: Timestamp,
) -> Option<(String, Timestamp)> {
    let digest = server.annotations().get(APPLY)?;
    let stored = crate::error_chain::cut(digest, 253);
    Some((stored, first_observed_at(before, digest, now)))
}

fn first_observed_at(before: Option<&HandledRequests>, digest: &str, now: Timestamp) -> Timestamp {
    let same = before.filter(|before| before.apply.as_deref() == Some(crate::error_chain::cut(digest, 253).as_str()));
    same.and_then(|before| before.apply_seen_at).unwrap_or_else(|| truncate_to_second(now))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const RUNNING: &str = "1111111111111111111111111111111111111111111111111111111111111111";
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

    fn needs_approval(server: &PaperMCServer, planned: &str, runs: Option<&str>) -> bool {
        ApprovalState::new(server, None, planned, runs, None, at(0)).needs_approval
    }

    #[test]
    fn approval_must_name_planned_lock_where_required() {
        let required = |annotations: Value| server("Required", &annotations);
        assert!(needs_approval(&required(json!({})), PLANNED, Some(RUNNING)));
        assert!(!needs_approval(&server("Automatic", &json!({})), PLANNED, Some(RUNNING)));
        assert!(!needs_approval(&required(json!({})), PLANNED, None), "a first start");
        assert!(!needs_approval(&required(json!({})), RUNNING, Some(RUNNING)), "new settings for the running set");
        for annotation in ["nightshift.dev/approve", "nightshift.dev/apply"] {
            assert!(!needs_approval(&required(json!({annotation: PLANNED})), PLANNED, Some(RUNNING)));
            assert!(!needs_approval(&required(json!({annotation: &PLANNED[..16]})), PLANNED, Some(RUNNING)));
            assert!(
                needs_approval(&required(json!({annotation: &PLANNED[..15]})), PLANNED, Some(RUNNING)),
                "too few digits"
            );
            assert!(
                needs_approval(&required(json!({annotation: RUNNING})), PLANNED, Some(RUNNING)),
                "the approval names the running set"
            );
        }
        assert!(needs_approval(&required(json!({"nightshift.dev/apply-now": "0"})), PLANNED, Some(RUNNING)));
    }

    #[test]
    fn approval_does_not_request_the_update() {
        let annotated = |annotation: &str, digest: &str| server("Required", &json!({annotation: digest}));
        let approves = annotated("nightshift.dev/approve", PLANNED);
        assert!(is_approved_or_requested(&approves, PLANNED) && !is_requested(&approves, PLANNED));
        let requesting = annotated("nightshift.dev/apply", PLANNED);
        assert!(
            is_approved_or_requested(&requesting, PLANNED)
                && is_requested(&requesting, PLANNED)
                && !is_requested(&requesting, RUNNING)
        );
    }

    #[test]
    fn rollback_to_lock_approves_only_that_lock() {
        let required = server("Required", &json!({"nightshift.dev/apply": PLANNED}));
        let pinned = |digest: &str, second| PinnedSet::RollbackTo { digest: digest.to_owned(), since: at(second) };
        let approval_of = |server: &PaperMCServer, pinned_set: &PinnedSet| {
            let approval = ApprovalState::new(server, None, PLANNED, Some(RUNNING), Some(pinned_set), at(100));
            (approval.needs_approval, approval.apply_since)
        };
        let silent = server("Required", &json!({}));
        assert_eq!(approval_of(&silent, &pinned(PLANNED, 7)), (false, Some(at(7))));
        assert_eq!(approval_of(&silent, &pinned(RUNNING, 7)), (true, None));
        assert_eq!(approval_of(&silent, &PinnedSet::Unknown { requested: PLANNED.to_owned() }), (true, None));
        let held = PinnedSet::Held { digest: PLANNED.to_owned(), others: Vec::new() };
        assert_eq!(approval_of(&silent, &held), (true, None), "holding a set does not request it");
        assert_eq!(approval_of(&required, &pinned(PLANNED, 7)), (false, Some(at(100))), "the later request counts");
    }

    #[test]
    fn apply_request_counts_from_first_observation() {
        let requesting = server("Automatic", &json!({"nightshift.dev/apply": PLANNED}));
        let half = SignedDuration::from_millis(500);
        let since = |before: Option<&HandledRequests>| {
            ApprovalState::new(&requesting, before, PLANNED, Some(RUNNING), None, at(100) + half).apply_since
        };
        assert_eq!(since(None), Some(at(100)), "rounded to whole seconds");
        let handled = |digest: &str| HandledRequests {
            apply: Some(digest.to_owned()),
            apply_seen_at: Some(at(7)),
            ..HandledRequests::default()
        };
        assert_eq!(since(Some(&handled(PLANNED))), Some(at(7)));
        assert_eq!(since(Some(&handled(RUNNING))), Some(at(100)), "the record is of another request");
        assert_eq!(recorded_request(&requesting, Some(&handled(PLANNED)), at(100)), Some((PLANNED.to_owned(), at(7))));
        assert_eq!(
            recorded_request(&server("Automatic", &json!({})), Some(&handled(PLANNED)), at(100)),
            None,
            "the annotation was removed"
        );
    }

    #[test]
    fn apply_request_for_unplanned_lock_is_reported() {
        let requesting = |digest: &str| server("Automatic", &json!({"nightshift.dev/apply": digest}));
        let another = |digest| {
            ApprovalState::new(&requesting(digest), None, PLANNED, Some(RUNNING), None, at(0)).requests_other_set
        };
        assert_eq!(another("333333333333333333"), Some("333333333333333333".to_owned()));
        assert_eq!((another(RUNNING), another(PLANNED)), (None, None));
        let old = HandledRequests {
            apply: Some("333333333333333333".to_owned()),
            apply_seen_at: Some(at(0)),
            ..HandledRequests::default()
        };
        let long_request = requesting("333333333333333333");
        let is_reported = |second| {
            ApprovalState::new(&long_request, Some(&old), PLANNED, Some(RUNNING), None, at(second))
                .requests_other_set
                .is_some()
        };
        assert_eq!((is_reported(1799), is_reported(1800)), (true, false), "an old request is no longer reported");
    }
}
