//! Pure. Defines the records of locks and of stable revisions.

use agent_api::FileSet;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use resolver::model::lock::Lock;
use scheduler::observation::DataVersion;

use super::baseline::Baseline;

/// A lock as stored in its `ConfigMap`.
#[derive(Debug, Clone)]
pub(crate) struct LockRecord {
    pub(crate) lock: Lock,
    pub(crate) files: FileSet,
}

/// The lock in a pod template: its `ConfigMap`, and the digest of the files that count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MountedLock {
    pub(crate) map: String,
    pub(crate) files_digest: String,
}

impl LockRecord {
    /// The world format of its Minecraft version. It is 0 if the JAR did not declare one. The number then never counts as older, and the
    /// agent compares version names when it opens the world.
    pub(crate) fn world(&self) -> DataVersion {
        DataVersion(self.files.data_version.unwrap_or(0))
    }
}

/// A stable revision: the state to which a lost server returns, and the target of a roll-back.
#[derive(Debug, Clone)]
pub(crate) struct StableRecord {
    pub(crate) template: PodTemplateSpec,
    /// The baseline against which the next verification compares.
    pub(crate) baseline: Baseline,
    /// Why its own verification did not pass. `None` if it passed.
    pub(crate) unverified: Option<String>,
    /// The digest of the template before the API server filled in defaults. `None` if it was not known.
    pub(crate) source: Option<[u8; 32]>,
}
