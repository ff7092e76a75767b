//! Pure. Defines the labels and annotations of Nightshift.

use std::collections::BTreeMap;

/// Marks every object that the operator created. The pod watch selects by it.
pub(crate) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "nightshift");
/// The kind of an object. All objects that make up the pod of a server have `papermc`.
pub(crate) const NAME: &str = "app.kubernetes.io/name";
/// The server a child belongs to.
pub(crate) const SERVER: &str = "nightshift.dev/server";
/// The whole digest of a lock. Names and label values contain only 16 digits of it.
pub(crate) const LOCK_DIGEST: &str = "nightshift.dev/lock-digest";
/// The operator's signature of a `ConfigMap`'s content: 128 hex digits.
pub(crate) const SIGNATURE: &str = "nightshift.dev/signature";
/// The digest of the agent in the pod: 16 hex digits. Two images with the same one have the same agent.
pub(crate) const AGENT_DIGEST: &str = "nightshift.dev/agent-digest";
/// Digest of a child as the operator applied it last: 16 hex digits. With it, the next process can tell that it has
/// nothing to apply.
pub(crate) const APPLIED: &str = "nightshift.dev/applied";
/// State that must survive a restart of the operator, as JSON: `RecordedFacts`. It is on the StatefulSet, so that
/// one resourceVersion guards the facts and the decision together.
pub(crate) const FACTS: &str = "nightshift.dev/facts";
/// A permission on a Service or a budget: the UID of the server that may take it over.
pub(crate) const ADOPT: &str = "nightshift.dev/adopt";
/// A permission on a Secret: the servers of its namespace may name it.
pub(crate) const ALLOW_USE: (&str, &str) = ("nightshift.dev/allow-use", "true");
/// Digest of the images that a node has to pull, on the pod that pulls them: 16 hex digits.
pub(crate) const IMAGES: &str = "nightshift.dev/images";
/// A user's request to apply the planned update now: unix seconds. The operator never removes it.
pub(crate) const APPLY_NOW: &str = "nightshift.dev/apply-now";
/// A user's request for an online backup: unix seconds. The operator never removes it.
pub(crate) const BACKUP_NOW: &str = "nightshift.dev/backup-now";

/// Whether a Secret with these labels may be named by the servers of its namespace.
pub(crate) fn allows_use(labels: &BTreeMap<String, String>) -> bool {
    labels.get(ALLOW_USE.0).is_some_and(|value| value == ALLOW_USE.1)
}

/// The command that gives a Secret the label.
pub(crate) fn allow_use_command(namespace: &str, secret: &str) -> String {
    format!("kubectl -n {namespace} label secret {secret} {}={}", ALLOW_USE.0, ALLOW_USE.1)
}

/// The labels that select the one pod of a server. They are immutable in a StatefulSet, so they must never change.
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
