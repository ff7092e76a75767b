//! Edge (writes). Simulates the `StatefulSet` controller, as measured (`kubernetes-notes.md` of the design, 1a to 1f)
//! and read (`completeRollingUpdate`).

use serde_json::{Value, json};

use super::cluster::SimCluster;
use super::fake_node::is_ready;
use super::invariants::revision;
use super::objects::{Key, is_being_deleted};
use crate::clock::now;
use crate::template_revision::digest;

impl SimCluster {
    /// One pass of the controller.
    pub(super) fn run_controller(&mut self) {
        self.controller_at = None;
        let key = self.stateful_set_key();
        let Ok(stateful_set) = self.objects.get(&key).cloned() else { return };
        let update = self.history_entry(&stateful_set["spec"]["template"]);
        let current = stateful_set["status"]["currentRevision"].as_str().map_or_else(|| update.clone(), str::to_owned);
        let is_scaled_to_zero = stateful_set["spec"]["replicas"] == 0;
        let is_open = stateful_set["spec"]["updateStrategy"]["rollingUpdate"]["partition"].as_i64().unwrap_or(0) == 0;
        let pod = self.objects.get(&self.pod_key()).ok().cloned();
        let revision_label =
            |pod: &Value| pod["metadata"]["labels"]["controller-revision-hash"].as_str().unwrap_or_default().to_owned();
        let is_ready = pod.as_ref().is_some_and(is_ready);
        let (replicas, updated) =
            (usize::from(pod.is_some()), pod.as_ref().is_some_and(|pod| revision_label(pod) == update));
        let wanted = usize::from(!is_scaled_to_zero);
        let all_updated = usize::from(updated) == wanted && usize::from(is_ready) == wanted;
        let completes = all_updated && current != update;
        let current = if all_updated { update.clone() } else { current };
        let generation = stateful_set["metadata"]["generation"].clone();
        self.objects.change(&key, now(), |stateful_set| {
            stateful_set["status"] = json!({
                "observedGeneration": generation, "replicas": replicas, "readyReplicas": usize::from(is_ready),
                "currentRevision": current, "updateRevision": update,
            });
        });
        if completes {
            self.trace("controller: the update is complete; currentRevision = updateRevision");
            self.mark_changed();
        }
        match pod {
            None if !is_scaled_to_zero => {
                let revision = if is_open { &update } else { &current };
                self.create_pod(revision);
            }
            Some(pod) if is_scaled_to_zero && !is_being_deleted(&pod) => {
                self.delete_pod("controller: deletes the pod, since replicas is 0");
            }
            Some(pod) if is_open && revision_label(&pod) != update && !is_being_deleted(&pod) => {
                self.check_replaced(&update);
                self.delete_pod("controller: deletes the pod, to replace it");
            }
            None | Some(_) => {}
        }
    }

    /// The entry of its history with this template. Creates one if there is none.
    fn history_entry(&mut self, template: &Value) -> String {
        // As in Kubernetes, the name is the same for the same template, even if the history was lost in between.
        let name = format!("{}-{}", self.scenario.server_index.name, &hex::encode(digest(template))[..10]);
        if self.objects.get(&Key::new("controllerrevisions", &name)).is_ok() {
            return name;
        }
        self.revisions.insert(name.clone(), revision(template));
        let mut stored = template.clone();
        stored["$patch"] = json!("replace");
        let entry = json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": name},
            "revision": self.objects.list("controllerrevisions", &[]).len() + 1, "data": {"spec": {"template": stored}},
        });
        self.objects.create("controllerrevisions", entry, now()).expect("a new entry");
        self.mark_changed();
        name
    }

    /// The template in an entry of its history. `None` if the entry was deleted with an earlier `StatefulSet`.
    fn entry_template(&self, entry: &str) -> Option<Value> {
        let entry = self.objects.get(&Key::new("controllerrevisions", entry)).ok()?;
        let mut template = entry["data"]["spec"]["template"].clone();
        template.as_object_mut()?.remove("$patch");
        Some(template)
    }

    fn create_pod(&mut self, revision: &str) {
        let mut pod = self.entry_template(revision).expect("the revision exists");
        let name = self.pod_key().name;
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        pod["metadata"]["name"] = json!(name);
        pod["metadata"]["namespace"] = json!(super::fake_api_server::NAMESPACE);
        pod["metadata"]["labels"]["controller-revision-hash"] = json!(revision);
        if let Some(node) = self.node_for_new_pod() {
            pod["spec"]["nodeName"] = json!(node);
        } else {
            self.record_disturbance();
        }
        self.trace(format!("controller: creates the pod of revision {revision}"));
        self.check_created(revision);
        self.objects.create("pods", pod, now()).expect("a new pod");
        self.mark_changed();
        self.start_pod();
    }

    /// Deletes a pod with its grace period.
    pub(super) fn delete_pod(&mut self, why: &str) {
        self.trace(why);
        // The pod may not exist.
        let _ = self.objects.delete(&self.pod_key(), (None, None), now());
        self.mark_changed();
    }
}
