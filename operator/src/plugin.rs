//! Edge (writes). Runs one pass over one Plugin: it reports the releases of its source and the servers that it matches.
//!
//! It decides nothing, because the passes over the servers solve.

use std::sync::Arc;

use crds::plugin::{AvailableVersion, MatchedInstance, PluginChannel, RepositoryStatus, SourceKind};
use crds::{PaperMCServer, Plugin, PluginStatus};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt;
use kube::api::Api;
use kube::runtime::controller::Action;
use resolver::catalog::{Catalog, Channel, FALLBACK_VERSION, Project, ProjectKey, Source};
use serde_json::json;
use tracing::warn;

use crate::catalog::{CatalogSourceError, Snapshot};
use crate::clock::now;
use crate::context::Context;
use crate::error_chain::{ErrorChain, cut};
use crate::k8s::server_side_apply::FieldManager;
use crate::requeue::{Outcome, RetryBlame, again};
use crate::server::check::windows::check_plugin_windows;
use crate::telemetry::metrics::PassLabels;
use crate::template_revision::digest;

/// Number of releases in a status. The whole list (886 for `ViaVersion`) would not fit into etcd beside a few others.
const SHOWN: usize = 10;
/// Number of Minecraft versions of each release in a status.
const MINECRAFT_SHOWN: usize = 20;
/// Number of servers that a status names.
const SERVERS_SHOWN: usize = 50;

/// The reason when the spec names no project at all.
const INVALID: &str = "Invalid";

/// Runs one pass.
pub(crate) async fn reconcile(plugin: Arc<Plugin>, ctx: Arc<Context>) -> Result<Action, std::convert::Infallible> {
    let at = now();
    let outcome = match report(&plugin, &ctx, at).await {
        Ok(()) => Outcome::Settled,
        Err(error) => {
            warn!(plugin = plugin.name_any(), error = %ErrorChain(&error), "could not write the status of a Plugin");
            Outcome::Failed { blame: RetryBlame::Cluster, attempt: 3 }
        }
    };
    ctx.metrics.reconcile_total.get_or_create(&PassLabels { controller: "plugin", outcome: outcome.name() }).inc();
    Ok(again(outcome, at))
}

async fn report(plugin: &Plugin, ctx: &Context, at: Timestamp) -> Result<(), kube::Error> {
    let servers = ctx.servers.state();
    let matched = servers
        .iter()
        .filter(|server| server.namespace() == plugin.namespace() && matches(plugin, server))
        .map(|server| instance(plugin, server))
        .collect();
    let before = plugin.status.clone().unwrap_or_default();
    let status = build_status(plugin, ctx.catalog.newest().as_deref(), matched, at, &before);
    if status == before {
        return Ok(());
    }
    let namespace = plugin.namespace().unwrap_or_default();
    let api: Api<Plugin> = Api::namespaced(ctx.client.clone(), &namespace);
    let object = json!({
        "apiVersion": "nightshift.dev/v1alpha1", "kind": "Plugin",
        "metadata": {"name": plugin.name_any(), "namespace": namespace}, "status": status,
    });
    ctx.metrics.api_writes.inc();
    match FieldManager::STATUS.apply_status(&api, &plugin.name_any(), &object).await {
        Ok(_) => Ok(()),
        // The Plugin was deleted during the pass, so it has no status any more.
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(source) => Err(source),
    }
}

fn matches(plugin: &Plugin, server: &PaperMCServer) -> bool {
    resolver::from_api::matches(&plugin.spec.instance_selector, server.labels())
}

/// The status of a Plugin. Pure.
fn build_status(
    plugin: &Plugin,
    snapshot: Option<&Snapshot>,
    mut matched: Vec<MatchedInstance>,
    now: Timestamp,
    before: &PluginStatus,
) -> PluginStatus {
    matched.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    let count = u32::try_from(matched.len()).unwrap_or(u32::MAX);
    matched.truncate(SERVERS_SHOWN);
    let key = resolver::from_api::project_key(&plugin.spec.source);
    let found = snapshot.zip(key.as_ref()).and_then(|(snapshot, key)| find(&snapshot.catalog, key));
    let problem = problem_of(plugin, key.as_ref(), snapshot);
    let channel = least_stable(plugin.spec.channel);
    let usable =
        found.map(|project| project.releases.iter().filter(|release| release.channel >= channel).collect::<Vec<_>>());
    let wrong_windows = windows_problem(plugin);
    let (ready, reason, message) = match (&found, &problem, matched.is_empty()) {
        (None, Some(CatalogSourceError { category, words }), _) => (false, reason_of(category), cut(words, 1_024)),
        _ if wrong_windows.is_some() => (false, INVALID, cut(&wrong_windows.unwrap_or_default(), 1_024)),
        (None, None, true) => (
            false,
            "NoServersMatched",
            "no server of this namespace has the labels of `spec.instanceSelector`".to_owned(),
        ),
        (None, None, false) => (false, "NotRead", "the source has not been read yet".to_owned()),
        (Some(_), Some(problem), _) => (true, "Orphaned", cut(&problem.words, 1_024)),
        (Some(project), None, true) => {
            (true, "NoServersMatched", format!("{}: no server has the labels of `spec.instanceSelector`", project.name))
        }
        (Some(project), None, false) if project.key.source == Source::Url => about_file(project),
        (Some(project), None, false) => {
            (true, "Available", format!("{} releases of {}", project.releases.len(), project.name))
        }
    };
    let catalog_digest = found.map(content_of);
    let unchanged = catalog_digest == before.catalog_digest;
    PluginStatus {
        last_changed: if unchanged { before.last_changed } else { Some(now) },
        catalog_digest,
        observed_generation: plugin.metadata.generation,
        project: Some(cut(&called(plugin, found), 64)).filter(|project| !project.is_empty()),
        newest: usable.as_ref().and_then(|usable| usable.first()).map(|release| cut(&release.version, 64)),
        available_versions: usable
            .iter()
            .flatten()
            .take(SHOWN)
            .map(|release| AvailableVersion {
                version: cut(&release.version, 64),
                released_at: release.published,
                channel: Some(channel_of(release.channel)),
                minecraft_versions: release
                    .minecraft
                    .iter()
                    .rev()
                    .take(MINECRAFT_SHOWN)
                    .map(ToString::to_string)
                    .collect(),
            })
            .collect(),
        releases: found.map(|project| u32::try_from(project.releases.len()).unwrap_or(u32::MAX)),
        repository_status: match (&found, &problem) {
            (Some(_), None) => Some(RepositoryStatus::Available),
            (Some(_), Some(_)) => Some(RepositoryStatus::Orphaned),
            (None, Some(_)) => Some(RepositoryStatus::Unavailable),
            (None, None) => None,
        },
        matched_instances: matched,
        matched_count: Some(count),
        conditions: vec![condition(plugin, ready, reason, &message, now, before)],
    }
}

/// One server that gets this plugin, with the release that the server's own status plans for it.
fn instance(plugin: &Plugin, server: &PaperMCServer) -> MatchedInstance {
    let name = plugin.name_any();
    let planned =
        server.status.iter().flat_map(|status| &status.plugins).find(|state| {
            state.plugin.as_deref().is_some_and(|objects| objects.split(", ").any(|object| object == name))
        });
    let version = planned.and_then(|state| state.desired_version.clone());
    MatchedInstance { name: server.name_any(), compatible: planned.map(|_| version.is_some()), version }
}

/// The condition of a file that was read.
fn about_file(project: &Project) -> (bool, &'static str, String) {
    let name = &project.name;
    match project.releases.first().map(|release| release.version.as_str()) {
        Some(FALLBACK_VERSION) | None => {
            (true, "FallbackVersion", format!("{name} is shown as {FALLBACK_VERSION}: its JAR states no version"))
        }
        Some(version) => (true, "Available", format!("{name} {version}, as its JAR says")),
    }
}

/// The name for users: the project in the spec. For a file, the name in its JAR or the last part of its URL.
fn called(plugin: &Plugin, found: Option<&Project>) -> String {
    let source = &plugin.spec.source;
    match (source.kind, found) {
        (SourceKind::Url, Some(project)) => project.name.clone(),
        (SourceKind::Url, None) => {
            source.url.as_deref().and_then(|url| url.rsplit('/').next()).unwrap_or_default().to_owned()
        }
        (SourceKind::Hangar | SourceKind::Modrinth, _) => source.project.clone().unwrap_or_default(),
    }
}

/// The condition's reason for an error category, which is the word in metrics.
fn reason_of(category: &str) -> &'static str {
    match category {
        "wrong-hash" => "ChecksumMismatch",
        "not-a-plugin" => "NotAPlugin",
        "private-address" | "not-https" | "redirects" | "too-large" => "UrlRefused",
        INVALID => INVALID,
        _ => "RepositoryUnavailable",
    }
}

fn channel_of(channel: Channel) -> PluginChannel {
    match channel {
        Channel::Release => PluginChannel::Release,
        Channel::Beta => PluginChannel::Beta,
        Channel::Alpha => PluginChannel::Alpha,
    }
}

/// 16 hex digits that change when a release is added, removed or edited.
fn content_of(project: &Project) -> String {
    let releases = serde_json::to_value(&project.releases).expect("releases have string keys only");
    hex::encode(&digest(&releases)[..8])
}

fn find<'a>(catalog: &'a Catalog, key: &ProjectKey) -> Option<&'a Project> {
    catalog.projects.iter().find(|project| {
        project.key.source == key.source
            && (project.key.project.eq_ignore_ascii_case(&key.project) || project.id.eq_ignore_ascii_case(&key.project))
    })
}

/// The catalog's error for this project's source, or the violations of a spec that names no project.
fn problem_of(plugin: &Plugin, key: Option<&ProjectKey>, snapshot: Option<&Snapshot>) -> Option<CatalogSourceError> {
    let Some(key) = key else {
        // The API server refuses these specs, but an object may be older than its schema.
        let complaints = resolver::from_api::check_plugin(plugin).into_iter();
        let words: Vec<String> = complaints.map(|it| format!("`{}` {}; {}", it.path, it.problem, it.fix)).collect();
        return Some(CatalogSourceError { category: INVALID, words: words.join(". ") });
    };
    let subject = key.to_string();
    snapshot?.problems.iter().find(|(of, _)| of.eq_ignore_ascii_case(&subject)).map(|(_, problem)| problem.clone())
}

/// The errors of the Plugin's own windows that the schema accepts, such as 30 February. Checked in UTC: each server
/// reports errors in its own time zone itself.
fn windows_problem(plugin: &Plugin) -> Option<String> {
    let (_, complaints) = check_plugin_windows(plugin, "UTC");
    let words: Vec<String> = complaints.iter().map(ToString::to_string).collect();
    (!words.is_empty())
        .then(|| format!("{}. Until then it waits for its other windows and those of its servers", words.join("; ")))
}

fn least_stable(channel: PluginChannel) -> Channel {
    match channel {
        PluginChannel::Release => Channel::Release,
        PluginChannel::Beta => Channel::Beta,
        PluginChannel::Alpha => Channel::Alpha,
    }
}

fn condition(
    plugin: &Plugin,
    ready: bool,
    reason: &str,
    message: &str,
    now: Timestamp,
    before: &PluginStatus,
) -> Condition {
    let status = if ready { "True" } else { "False" };
    let since = before.conditions.iter().find(|old| old.type_ == "Ready" && old.status == status);
    Condition {
        type_: "Ready".to_owned(),
        status: status.to_owned(),
        observed_generation: plugin.metadata.generation,
        last_transition_time: Time(since.map_or(now, |old| old.last_transition_time.0)),
        reason: reason.to_owned(),
        message: cut(message, 1_024),
    }
}

#[cfg(test)]
mod tests;
