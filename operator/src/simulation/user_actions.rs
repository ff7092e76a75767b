//! Edge (writes). Simulates the requests of users during a run, and their withdrawal: by the spec and by annotations.

use crds::annotations::{APPROVE, PREVIOUS, RESTORE_FROM, ROLLBACK_TO};
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::cluster::SimCluster;
use crate::clock::now;
use crate::k8s::labels::{APPLY_NOW, BACKUP_NOW};

/// How long after a user's request its action may begin.
pub(super) const ASKED_FOR: SignedDuration = SignedDuration::from_mins(30);

/// An action of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UserAction {
    /// Scales the server to zero, and up again.
    Down,
    Up,
    /// Another heap, which changes the template of the pod.
    AnotherHeap,
    /// `nightshift.dev/apply-now`
    Now,
    /// `nightshift.dev/rollback-to: previous`, and its removal.
    Back,
    On,
    /// `spec.suspend`, and its removal.
    Rest,
    NoRest,
    /// `*` in `spec.hold`, and an empty list.
    Hold,
    LetGo,
    /// `nightshift.dev/approve` with the planned version set.
    Approve,
    /// `nightshift.dev/backup-now`
    Copy,
    /// `nightshift.dev/restore-from` with an existing backup.
    Restore,
    /// Fixes the cause of failures. The template changes, so that the newer version sets are tried again.
    Mend,
}

impl SimCluster {
    /// Writes the change as a user does.
    pub(super) fn write(&mut self, wish: UserAction) {
        match wish {
            UserAction::Down => self.spec("replicas", &json!(0)),
            UserAction::Up => self.spec("replicas", &json!(1)),
            UserAction::AnotherHeap => self.spec("jvm", &json!({"heap": "2Gi"})),
            UserAction::Now => {
                self.ledger.asked_until = Some(now() + ASKED_FOR);
                self.annotate(APPLY_NOW, Some(&now().as_second().to_string()));
            }
            UserAction::Back => {
                self.ledger.asked_until = Some(now() + ASKED_FOR);
                self.note_taken_back();
                self.annotate(ROLLBACK_TO, Some(PREVIOUS));
            }
            UserAction::On => self.annotate(ROLLBACK_TO, None),
            UserAction::Rest => {
                self.ledger.suspended_since = Some(now());
                self.spec("suspend", &json!(true));
            }
            UserAction::Hold => self.spec("hold", &json!(["*"])),
            UserAction::LetGo => self.spec("hold", &json!([])),
            UserAction::Approve => {
                let server = self.objects.get(&self.key_of_server()).expect("nobody deletes it");
                let planned = server["status"]["availableUpdate"]["digest"].as_str().map(str::to_owned);
                if let Some(planned) = planned {
                    self.annotate(APPROVE, Some(&planned));
                    self.ledger.approved.insert(planned);
                }
            }
            UserAction::Copy => self.annotate(BACKUP_NOW, Some(&now().as_second().to_string())),
            UserAction::Restore => {
                if let Some(copy) = self.choose_copy() {
                    self.annotate(RESTORE_FROM, Some(&copy));
                }
            }
            UserAction::Mend => {
                self.ledger.mended_at = Some(now());
                self.spec("podTemplate", &json!({"metadata": {"annotations": {"example.com/mended": "1"}}}));
            }
            UserAction::NoRest => {
                self.ledger.suspended_since = None;
                self.spec("suspend", &json!(false));
            }
        }
        self.news = true;
    }

    fn spec(&mut self, field: &str, value: &Value) {
        self.objects.change(&self.key_of_server(), now(), |server| server["spec"][field] = value.clone());
    }

    fn annotate(&mut self, name: &str, value: Option<&str>) {
        self.objects.change(&self.key_of_server(), now(), |server| {
            let annotations = &mut server["metadata"]["annotations"];
            match value {
                Some(value) => annotations[name] = json!(value),
                None => drop(annotations.as_object_mut().and_then(|annotations| annotations.remove(name))),
            }
        });
    }
}
