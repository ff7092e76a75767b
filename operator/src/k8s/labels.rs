//! Pure. Labels and annotations of ours.

use std::collections::BTreeMap;

/// Marks everything the operator made; the pod watch selects by it.
pub(crate) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "nightshift");
/// What kind of thing it is: what makes up the pod of a server is a `papermc`.
pub(crate) const NAME: &str = "app.kubernetes.io/name";
/// The server a child belongs to.
pub(crate) const SERVER: &str = "nightshift.dev/server";
/// The whole digest of a lock (names and labels only hold 16 digits of it).
pub(crate) const LOCK_DIGEST: &str = "nightshift.dev/lock-digest";
/// What must survive a restart of the operator, as JSON: `scheduler::Facts`. On the StatefulSet, so that its
/// resourceVersion guards the facts and the decision together.
pub(crate) const FACTS: &str = "nightshift.dev/facts";
/// What a node is asked for, on the pod that has it pull images: 16 hex digits.
pub(crate) const IMAGES: &str = "nightshift.dev/images";
/// A person's request to apply what is planned now: unix seconds (L112). Never removed by us.
pub(crate) const APPLY_NOW: &str = "nightshift.dev/apply-now";
/// A person's request for a copy of the running server: unix seconds. Never removed by us.
pub(crate) const BACKUP_NOW: &str = "nightshift.dev/backup-now";

/// The labels that select the one pod of a server. Immutable in a StatefulSet, so from the first commit.
pub(crate) fn selector(server: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(NAME.to_owned(), "papermc".to_owned()), (SERVER.to_owned(), server.to_owned())])
}

/// The labels of every child of a server.
pub(crate) fn child(server: &str) -> BTreeMap<String, String> {
    let mut labels = selector(server);
    labels.insert("app.kubernetes.io/instance".to_owned(), server.to_owned());
    labels.insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
    labels
}
