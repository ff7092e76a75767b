//! Pure. Reports the plugins of the running version set that the server did not enable.

use std::collections::BTreeSet;

use agent_api::{Server, is_same_plugin};
use crds::paper_mc_server::{PluginState, PluginStateKind};
use resolver::model::bundled_plugins::bundled_in;
use resolver::model::lock::LockedPlugin;

use super::context::MAX_MESSAGE_LENGTH;
use crate::error_chain::cut;
use crate::server::model::baseline::count_enabled;
use crate::server::observe::Observed;
use crate::server::verify::{is_bundled, not_enabled};

/// Type of the condition.
pub(super) const PLUGINS_ENABLED: &str = "PluginsEnabled";
/// Reason of the condition.
pub(super) const NOT_ENABLED: &str = "NotEnabled";

/// The plugins of the server's last start.
pub(super) struct RunningPlugins {
    enabled: usize,
    /// The managed plugins that did not enable, and the unmanaged ones that the server lists as such.
    not_enabled: BTreeSet<String>,
}

impl RunningPlugins {
    /// The plugins of the pod. `None` while the agent has not read them.
    pub(super) fn of_pod(observed: &Observed) -> Option<Self> {
        let report = observed.reply.report.as_deref()?;
        let Server::Up { plugins: Some(plugins), .. } = &report.server else { return None };
        let record = observed.pod_lock.as_deref()?;
        let bundled: Vec<_> =
            bundled_in(record.lock.software, &record.lock.minecraft).map(|plugin| plugin.name).collect();
        let managed = not_enabled(plugins, &record.files, &bundled);
        let is_counted =
            |name: &str| is_bundled(&bundled, name) || managed.iter().any(|managed| is_same_plugin(managed, name));
        let unmanaged = plugins.iter().filter(|(name, plugin)| !plugin.enabled && !is_counted(name));
        let names = managed.iter().map(|name| (*name).to_owned());
        Some(Self {
            enabled: count_enabled(Some(report)),
            not_enabled: names.chain(unmanaged.map(|(name, _)| name.clone())).collect(),
        })
    }

    /// The same for a pod that runs the stable version set, or the first one. A failed update is reported as such.
    pub(super) fn of_stable_set(observed: &Observed) -> Option<Self> {
        let is_first = observed.facts.settled.is_none();
        Self::of_pod(observed).filter(|_| is_first || observed.runs_stable_files())
    }

    /// The message of the condition. `None` if all plugins are enabled: then there is no condition.
    pub(super) fn message(&self) -> Option<String> {
        if self.not_enabled.is_empty() {
            return None;
        }
        let names: Vec<&str> = self.not_enabled.iter().map(String::as_str).collect();
        let text = format!(
            "{}. Not enabled: {}. See the log of container `papermc`.",
            self.count_text(),
            cut(&names.join(", "), MAX_MESSAGE_LENGTH / 2)
        );
        Some(text)
    }

    /// For example `6 plugins enabled` or `2 of 4 plugins enabled`.
    pub(super) fn count_text(&self) -> String {
        match (self.enabled, self.not_enabled.len()) {
            (1, 0) => "1 plugin enabled".to_owned(),
            (enabled, 0) => format!("{enabled} plugins enabled"),
            (enabled, others) => format!("{enabled} of {} plugins enabled", enabled + others),
        }
    }
}

/// The IDs of the projects in the stable lock of which a JAR did not enable. While the plugins are unknown, the last status counts.
pub(super) fn projects_not_enabled(observed: &Observed, before: &[PluginState]) -> BTreeSet<String> {
    let Some(record) = observed.stable_lock.as_deref() else { return BTreeSet::new() };
    let running = RunningPlugins::of_stable_set(observed);
    let is_not_enabled = |plugin: &&LockedPlugin| match &running {
        Some(running) => plugin.files().any(|locked| {
            let path = format!("plugins/{}", locked.name);
            let mut files = record.files.plugins.iter().filter(|file| file.path == path);
            files.any(|file| file.plugin.as_ref().is_some_and(|name| running.not_enabled.contains(name)))
        }),
        None => before.iter().any(|state| {
            state.state == PluginStateKind::NotEnabled
                && state.name == cut(&plugin.name, 64)
                && state.current_version.as_ref() == Some(&cut(&plugin.version, 64))
        }),
    };
    record.lock.plugins.iter().filter(is_not_enabled).map(|plugin| plugin.project_id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use agent_api::File;
    use serde_json::{Value, json};

    use super::*;
    use crate::server::model::records::LockRecord;
    use crate::server::report::tests::{Pass, message, record};

    /// A server whose stable set has Shop and Via.
    fn pass(plugins: &Value) -> Pass {
        let mut pass = Pass::new();
        let of = |name: &str| -> (LockedPlugin, File) {
            let plugin = json!({
                "name": name, "key": {"source": "modrinth", "project": name}, "projectId": name, "releaseId": name,
                "version": "1", "file": {"name": format!("{name}.jar"), "url": "", "hash": "sha256:01"},
                "reason": {"requestedBy": [name]},
            });
            let file = json!({"path": format!("plugins/{name}.jar"), "hash": "sha256:01", "url": "", "plugin": name});
            (serde_json::from_value(plugin).unwrap(), serde_json::from_value(file).unwrap())
        };
        let LockRecord { mut lock, mut files } = (*record(130)).clone();
        (lock.plugins, files.plugins) = ["Shop", "Via"].into_iter().map(of).unzip();
        let record = Arc::new(LockRecord { lock, files });
        pass.plan.target.record = Arc::clone(&record);
        (pass.observed.pod_lock, pass.observed.stable_lock) = (Some(Arc::clone(&record)), Some(record));
        report_plugins(&mut pass, plugins);
        pass
    }

    fn report_plugins(pass: &mut Pass, plugins: &Value) {
        let since = "2026-11-22T12:00:00Z";
        let server = json!({
            "state": "up", "since": since, "answeredAt": since, "minecraft": "1.21.10", "build": 130,
            "plugins": plugins,
        });
        pass.extend_agent_report(&json!({"server": server}));
    }

    fn states(pass: &Pass) -> Vec<(String, PluginStateKind)> {
        pass.status().plugins.into_iter().map(|plugin| (plugin.name, plugin.state)).collect()
    }

    #[test]
    fn plugin_that_did_not_enable_is_named_until_it_does() {
        use PluginStateKind::{Installed, NotEnabled};

        let (on, off) = (json!({"version": null, "enabled": true}), json!({"version": null, "enabled": false}));
        let pass_before = pass(&json!({"Shop": off, "Via": on, "Own": on}));
        let of = |shop, via| vec![("Shop".to_owned(), shop), ("Via".to_owned(), via)];
        let text = "2 of 3 plugins enabled. Not enabled: Shop. See the log of container `papermc`.";
        assert_eq!(message(&pass_before.status(), PLUGINS_ENABLED), Some((NOT_ENABLED, text)));
        assert_eq!(states(&pass_before), of(NotEnabled, Installed));

        let mut pass = pass_before.next();
        report_plugins(&mut pass, &Value::Null);
        assert_eq!(
            message(&pass.status(), PLUGINS_ENABLED),
            Some((NOT_ENABLED, text)),
            "the next start is not read yet"
        );
        assert_eq!(states(&pass), of(NotEnabled, Installed));
        // The server does not list a plugin that it could not load.
        report_plugins(&mut pass, &json!({"Shop": on, "Own": off}));
        let text = "1 of 3 plugins enabled. Not enabled: Own, Via. See the log of container `papermc`.";
        assert_eq!(message(&pass.status(), PLUGINS_ENABLED), Some((NOT_ENABLED, text)));
        assert_eq!(states(&pass), of(Installed, NotEnabled));
        report_plugins(&mut pass, &json!({"Shop": on, "Via": on}));
        assert_eq!(message(&pass.status(), PLUGINS_ENABLED), None);
        assert_eq!(states(&pass), of(Installed, Installed));
        assert_eq!(RunningPlugins::of_pod(&pass.observed).unwrap().count_text(), "2 plugins enabled");
    }
}
