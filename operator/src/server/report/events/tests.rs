//! Pure. Tests the reports of a server with a pinned set.

use scheduler::observation::Revision;

use super::*;
use crate::server::report::tests::{Pass, record};

fn held() -> PinnedSet {
    PinnedSet::Held { digest: record(130).files.lock.clone(), others: Vec::new() }
}

#[test]
fn held_server_is_reported_until_released() {
    let mut pass = Pass::new();
    assert_ne!(pass.status().next_window.as_deref(), Some("held"));
    assert!(pass.event_texts("PinnedToSet").is_empty() && pass.event_texts("Resumed").is_empty());
    pass.plan.selection.pinned_set = Some(held());
    let status = pass.status();
    let condition = status.conditions.iter().find(|condition| condition.type_ == "PinnedToSet").unwrap();
    assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("True", "Held"));
    assert!(condition.message.contains("`spec.hold`"), "{}", condition.message);
    assert_eq!(status.next_window.as_deref(), Some("held"));
    assert_eq!(pass.event_texts("PinnedToSet").len(), 1);

    let mut pass = pass.next();
    assert!(pass.event_texts("Resumed").is_empty(), "the server is still held");
    pass.plan.selection.pinned_set = None;
    assert_eq!(pass.event_texts("Resumed").len(), 1);
    assert!(!pass.status().conditions.iter().any(|condition| condition.type_ == "PinnedToSet"));
}

#[test]
fn held_server_pod_settings_wait_for_window() {
    let mut pass = Pass::new();
    pass.plan.goal.revision = Revision(3);
    pass.plan.selection.pinned_set = Some(held());
    let planned = pass.event_texts("UpdatePlanned").pop().unwrap();
    assert!(!planned.starts_with("Requested") && planned.contains("settings of the pod"), "{planned}");
    assert_ne!(pass.status().next_window.as_deref(), Some("held"), "a held server takes pod settings");
    let pinned_set = PinnedSet::RollbackTo { digest: record(130).files.lock.clone(), since: pass.report().pass.now };
    pass.plan.selection.pinned_set = Some(pinned_set);
    assert!(pass.event_texts("UpdatePlanned").pop().unwrap().starts_with("Requested: "));
}
