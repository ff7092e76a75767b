//! Edge (writes). Simulates the requests of users during a run, and their withdrawal: by the spec and by annotations.

use crds::annotations::{APPROVE, PREVIOUS, RESTORE_FROM, ROLLBACK_TO};
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::cluster::SimCluster;
use crate::clock::now;
use crate::k8s::labels::{APPLY_NOW, BACKUP_NOW};

/// How long after a user's request its action may begin.
pub(super) const REQUEST_VALID_FOR: SignedDuration = SignedDuration::from_mins(30);

/// An action of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UserAction {
    /// Scales the server to zero, and up again.
    ScaleDown,
    ScaleUp,
    /// Another heap, which changes the template of the pod.
    ChangeHeap,
    /// `nightshift.dev/apply-now`
    ApplyNow,
    /// `nightshift.dev/rollback-to: previous`, and its removal.
    RollBack,
    EndRollBack,
    /// `spec.suspend`, and its removal.
    Suspend,
    Resume,
    /// `*` in `spec.hold`, and an empty list.
    Hold,
    EndHold,
    /// `nightshift.dev/approve` with the planned version set.
    Approve,
    /// `nightshift.dev/backup-now`
    BackUp,
    /// `nightshift.dev/restore-from` with an existing backup.
    Restore,
    /// Fixes the cause of failures. The template changes, so that the newer version sets are tried again.
    FixCause,
}

impl SimCluster {
    /// Writes the change as a user does.
    pub(super) fn apply_user_action(&mut self, action: UserAction) {
        match action {
            UserAction::ScaleDown => self.spec("replicas", &json!(0)),
            UserAction::ScaleUp => self.spec("replicas", &json!(1)),
            UserAction::ChangeHeap => self.spec("jvm", &json!({"heap": "2Gi"})),
            UserAction::ApplyNow => {
                self.invariants.requested_until = Some(now() + REQUEST_VALID_FOR);
                self.annotate(APPLY_NOW, Some(&now().as_second().to_string()));
            }
            UserAction::RollBack => {
                self.invariants.requested_until = Some(now() + REQUEST_VALID_FOR);
                self.allow_repeated_updates();
                self.annotate(ROLLBACK_TO, Some(PREVIOUS));
            }
            UserAction::EndRollBack => self.annotate(ROLLBACK_TO, None),
            UserAction::Suspend => {
                self.invariants.suspended_since = Some(now());
                self.spec("suspend", &json!(true));
            }
            UserAction::Hold => self.spec("hold", &json!(["*"])),
            UserAction::EndHold => self.spec("hold", &json!([])),
            UserAction::Approve => {
                let server = self.objects.get(&self.server_key()).expect("the server object exists");
                let planned = server["status"]["availableUpdate"]["digest"].as_str().map(str::to_owned);
                if let Some(planned) = planned {
                    self.annotate(APPROVE, Some(&planned));
                    self.invariants.approved.insert(planned);
                }
            }
            UserAction::BackUp => self.annotate(BACKUP_NOW, Some(&now().as_second().to_string())),
            UserAction::Restore => {
                if let Some(restore) = self.choose_restore() {
                    self.annotate(RESTORE_FROM, Some(&restore));
                }
            }
            UserAction::FixCause => {
                self.invariants.fixed_at = Some(now());
                self.spec("podTemplate", &json!({"metadata": {"annotations": {"example.com/mended": "1"}}}));
            }
            UserAction::Resume => {
                self.invariants.suspended_since = None;
                self.spec("suspend", &json!(false));
            }
        }
        self.has_changes = true;
    }

    fn spec(&mut self, field: &str, value: &Value) {
        self.objects.change(&self.server_key(), now(), |server| server["spec"][field] = value.clone());
    }

    fn annotate(&mut self, name: &str, value: Option<&str>) {
        self.objects.change(&self.server_key(), now(), |server| {
            let annotations = &mut server["metadata"]["annotations"];
            match value {
                Some(value) => annotations[name] = json!(value),
                None => drop(annotations.as_object_mut().and_then(|annotations| annotations.remove(name))),
            }
        });
    }
}
