//! Edge (writes). What people ask for in the middle of all, and take back: by the spec and by annotations.

use crds::annotations::{APPROVE, PREVIOUS, RESTORE_FROM, ROLLBACK_TO};
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::cluster::SimCluster;
use crate::clock::now;
use crate::k8s::labels::{APPLY_NOW, BACKUP_NOW};

/// What a person asks for now is begun within so long.
pub(super) const ASKED_FOR: SignedDuration = SignedDuration::from_mins(30);

/// What somebody wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UserAction {
    /// No server, and one again.
    Down,
    Up,
    /// Another heap: another template of the pod.
    AnotherHeap,
    /// `nightshift.dev/apply-now`
    Now,
    /// `nightshift.dev/rollback-to: previous`, and without it.
    Back,
    On,
    /// `spec.suspend`, and without it.
    Rest,
    NoRest,
    /// `*` in `spec.hold`, and nothing in it.
    Hold,
    LetGo,
    /// `nightshift.dev/approve`: whatever is planned.
    Approve,
    /// `nightshift.dev/backup-now`
    Copy,
    /// `nightshift.dev/restore-from`: one of the copies that there are.
    Restore,
    /// What newer sets fail for goes, and they are asked for as another one.
    Mend,
}

impl SimCluster {
    /// Somebody writes it.
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
