//! Edge (writes). Runs one pass over one Plugin: it reports the releases of its source and the servers that it matches.
//!
//! It decides nothing, because the passes over the servers solve.

use std::collections::BTreeMap;
use std::sync::Arc;

use crds::plugin::{AvailableVersion, MatchedInstance, PluginChannel, RepositoryStatus, SourceKind};
use crds::{Plugin, PluginStatus};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt;
use kube::api::Api;
use kube::runtime::controller::Action;
use resolver::model::catalog::{Catalog, Channel, FALLBACK_VERSION, Project, ProjectKey, Source};
use resolver::render::phrases::list;
use serde_json::json;
use tracing::warn;

use crate::catalog::{CatalogSourceError, Snapshot};
use crate::clock::now;
use crate::context::Context;
use crate::error_chain::{ErrorChain, cut};
use crate::k8s::server_side_apply::FieldManager;
use crate::requeue::{Outcome, RetryBlame, requeue_action};
use crate::telemetry::metrics::PassLabels;
use crate::template_revision::digest;
use validate::windows::check_plugin_windows;

pub(crate) mod matched_servers;

/// Number of releases in a status. The whole list (886 for `ViaVersion`) would not fit into etcd beside a few others.
const MAX_RELEASES: usize = 10;
/// Number of Minecraft versions of each release in a status.
const MAX_MINECRAFT_VERSIONS: usize = 20;
/// Number of servers that a status names.
const MAX_SERVERS: usize = 50;
/// Number of servers that a message names.
const MAX_NAMED: usize = 5;

/// The reason when the spec names no project at all.
const INVALID: &str = "Invalid";

/// The condition that tells whether the source of a Plugin can be used.
const READY: &str = "Ready";
/// The condition of each Plugin that shares its project with another one on a server.
const OUTRANKED: &str = "Outranked";

/// Runs one pass.
pub(crate) async fn reconcile(plugin: Arc<Plugin>, ctx: Arc<Context>) -> Result<Action, std::convert::Infallible> {
    let at = now();
    let outcome = match report(&plugin, &ctx, at).await {
        Ok(()) => Outcome::UpToDate,
        Err(error) => {
            warn!(plugin = plugin.name_any(), error = %ErrorChain(&error), "could not write the status of a Plugin");
            Outcome::Failed { blame: RetryBlame::Cluster, attempt: 3 }
        }
    };
    ctx.metrics.reconcile_total.get_or_create(&PassLabels { controller: "plugin", outcome: outcome.name() }).inc();
    Ok(requeue_action(outcome, at))
}

async fn report(plugin: &Plugin, ctx: &Context, at: Timestamp) -> Result<(), kube::Error> {
    let matched = ctx.matched_servers.of(plugin, &ctx.servers);
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
    let not_enabled = not_enabled_message(&matched);
    let outranked = outranked_condition(plugin, &matched, now, before);
    matched.truncate(MAX_SERVERS);
    let key = from_api::project_key(&plugin.spec.source);
    let found = snapshot.zip(key.as_ref()).and_then(|(snapshot, key)| find_project(&snapshot.catalog, key));
    let error = source_error(plugin, key.as_ref(), snapshot);
    let was_read = before.repository_status.is_some() && before.observed_generation == plugin.metadata.generation;
    if found.is_none() && error.is_none() && !matched.is_empty() && was_read {
        // This process has not read the source yet. What the one before has read stays until then.
        let others = before.conditions.iter().filter(|condition| condition.type_ != OUTRANKED);
        let conditions = others.cloned().chain(outranked).collect();
        return PluginStatus { matched_instances: matched, matched_count: Some(count), conditions, ..before.clone() };
    }
    let channel = least_stable_channel(plugin.spec.channel);
    let usable =
        found.map(|project| project.releases.iter().filter(|release| release.channel >= channel).collect::<Vec<_>>());
    let window_error_text = window_errors(plugin);
    let (ready, reason, message) = match (&found, &error, matched.is_empty()) {
        (None, Some(CatalogSourceError { category, message }), _) => {
            (false, condition_reason(category), cut(message, 1_024))
        }
        _ if window_error_text.is_some() => (false, INVALID, cut(&window_error_text.unwrap_or_default(), 1_024)),
        (None, None, true) => (
            false,
            "NoServersMatched",
            "No server of this namespace has the labels of `spec.instanceSelector`.".to_owned(),
        ),
        (None, None, false) => (false, "NotRead", "The source has not been read yet.".to_owned()),
        _ if not_enabled.is_some() => (false, "NotEnabled", cut(&not_enabled.unwrap_or_default(), 1_024)),
        (Some(_), Some(error), _) => (true, "Orphaned", cut(&error.message, 1_024)),
        (Some(project), None, true) => (
            true,
            "NoServersMatched",
            format!("{}: no server has the labels of `spec.instanceSelector`.", project.name),
        ),
        (Some(project), None, false) if project.key.source == Source::Url => file_condition(project),
        (Some(project), None, false) => {
            (true, "Available", format!("{} releases of {}.", project.releases.len(), project.name))
        }
    };
    let catalog_digest = found.map(releases_digest);
    let unchanged = catalog_digest == before.catalog_digest;
    PluginStatus {
        last_changed: if unchanged { before.last_changed } else { Some(now) },
        catalog_digest,
        observed_generation: plugin.metadata.generation,
        project: Some(cut(&display_name(plugin, found), 64)).filter(|project| !project.is_empty()),
        newest: usable.as_ref().and_then(|usable| usable.first()).map(|release| cut(&release.version, 64)),
        available_versions: usable
            .iter()
            .flatten()
            .take(MAX_RELEASES)
            .map(|release| AvailableVersion {
                version: cut(&release.version, 64),
                released_at: release.published,
                channel: Some(channel_to_api(release.channel)),
                minecraft_versions: release
                    .minecraft
                    .iter()
                    .rev()
                    .take(MAX_MINECRAFT_VERSIONS)
                    .map(ToString::to_string)
                    .collect(),
            })
            .collect(),
        releases: found.map(|project| u32::try_from(project.releases.len()).unwrap_or(u32::MAX)),
        repository_status: match (&found, &error) {
            (Some(_), None) => Some(RepositoryStatus::Available),
            (Some(_), Some(_)) => Some(RepositoryStatus::Orphaned),
            (None, Some(_)) => Some(RepositoryStatus::Unavailable),
            (None, None) => None,
        },
        matched_instances: matched,
        matched_count: Some(count),
        conditions: std::iter::once(condition(plugin, (READY, ready), reason, &message, now, before))
            .chain(outranked)
            .collect(),
    }
}

/// The message about the servers that run the plugin's JAR and did not enable it. `None` if there is no such server.
fn not_enabled_message(matched: &[MatchedInstance]) -> Option<String> {
    let servers: Vec<&str> =
        matched.iter().filter(|server| server.not_enabled).map(|server| server.name.as_str()).collect();
    let named = servers.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
    match servers.len() {
        0 => None,
        1 => Some(format!("Not enabled on {named}. See the log of the server.")),
        2..=MAX_NAMED => Some(format!("Not enabled on {named}. See the logs of the servers.")),
        all => Some(format!("Not enabled on {named} and {} more. See the logs of the servers.", all - MAX_NAMED)),
    }
}

/// The condition of a file that was read.
fn file_condition(project: &Project) -> (bool, &'static str, String) {
    let name = &project.name;
    match project.releases.first().map(|release| release.version.as_str()) {
        Some(FALLBACK_VERSION) | None => (
            true,
            "FallbackVersion",
            format!(
                "{name} is shown as {FALLBACK_VERSION}, because its JAR states no \
            version."
            ),
        ),
        Some(version) => (true, "Available", format!("{name} {version}, according to its JAR.")),
    }
}

/// The name for users: the project in the spec. For a file, the name in its JAR or the last part of its URL.
fn display_name(plugin: &Plugin, found: Option<&Project>) -> String {
    let source = &plugin.spec.source;
    match (source.kind, found) {
        (SourceKind::Url, Some(project)) => project.name.clone(),
        (SourceKind::Url, None) => {
            let path = source.url.as_deref().and_then(|url| url.split(['?', '#']).next());
            path.and_then(|path| path.rsplit('/').next()).unwrap_or_default().to_owned()
        }
        (SourceKind::Hangar | SourceKind::Modrinth, _) => source.project.clone().unwrap_or_default(),
    }
}

/// The condition's reason for an error category, which is the word in metrics.
fn condition_reason(category: &str) -> &'static str {
    match category {
        "wrong-hash" => "ChecksumMismatch",
        "not-a-plugin" => "NotAPlugin",
        "private-address" | "not-https" | "redirects" | "too-large" => "UrlRefused",
        INVALID => INVALID,
        _ => "RepositoryUnavailable",
    }
}

fn channel_to_api(channel: Channel) -> PluginChannel {
    match channel {
        Channel::Release => PluginChannel::Release,
        Channel::Beta => PluginChannel::Beta,
        Channel::Alpha => PluginChannel::Alpha,
    }
}

/// 16 hex digits that change when a release is added, removed or edited.
fn releases_digest(project: &Project) -> String {
    let releases = serde_json::to_value(&project.releases).expect("releases have string keys only");
    hex::encode(&digest(&releases)[..8])
}

fn find_project<'a>(catalog: &'a Catalog, key: &ProjectKey) -> Option<&'a Project> {
    catalog.projects.iter().find(|project| {
        project.key.source == key.source
            && (project.key.project.eq_ignore_ascii_case(&key.project) || project.id.eq_ignore_ascii_case(&key.project))
    })
}

/// The catalog's error for this project's source, or the violations of a spec that names no project.
fn source_error(plugin: &Plugin, key: Option<&ProjectKey>, snapshot: Option<&Snapshot>) -> Option<CatalogSourceError> {
    let Some(key) = key else {
        // The API server refuses these specs, but an object may be older than its schema.
        let violations = from_api::check_plugin(plugin).into_iter();
        let messages: Vec<String> = violations
            .map(|violation| format!("`{}` {}; {}", violation.path, violation.problem, violation.fix))
            .collect();
        return Some(CatalogSourceError { category: INVALID, message: messages.join(". ") });
    };
    let subject = key.to_string();
    snapshot?
        .source_errors
        .iter()
        .find(|(other, _)| other.eq_ignore_ascii_case(&subject))
        .map(|(_, error)| error.clone())
}

/// The errors of the Plugin's own windows that the schema accepts, such as 30 February. Checked in UTC: each server
/// reports errors in its own time zone itself.
fn window_errors(plugin: &Plugin) -> Option<String> {
    let (_, violations) = check_plugin_windows(plugin, "UTC");
    let messages: Vec<String> = violations.iter().map(ToString::to_string).collect();
    (!messages.is_empty()).then(|| {
        format!("{}. Until this is fixed, it uses its other windows and those of its servers", messages.join("; "))
    })
}

fn least_stable_channel(channel: PluginChannel) -> Channel {
    match channel {
        PluginChannel::Release => Channel::Release,
        PluginChannel::Beta => Channel::Beta,
        PluginChannel::Alpha => Channel::Alpha,
    }
}

/// Whether another Plugin for the same project applies on a server. `None` if no server has several.
fn outranked_condition(
    plugin: &Plugin,
    matched: &[MatchedInstance],
    now: Timestamp,
    before: &PluginStatus,
) -> Option<Condition> {
    let name = plugin.name_any();
    let mut servers_of: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for instance in matched {
        if let Some(object) = &instance.decided_by {
            servers_of.entry(object).or_default().push(&instance.name);
        }
    }
    let own = servers_of.remove(name.as_str());
    let is_outranked = !servers_of.is_empty();
    let own = own.map(|servers| {
        let servers = list(&servers, MAX_NAMED);
        format!("On {servers}, this Plugin applies instead of others for the same project.")
    });
    let others = servers_of.into_iter().map(|(object, servers)| {
        let servers = list(&servers, MAX_NAMED);
        format!("On {servers}, Plugin {object} applies instead of this one, for the same project.")
    });
    let sentences: Vec<String> = others.chain(own).collect();
    let reason = if is_outranked { "OtherPluginApplies" } else { "AppliesInsteadOfOthers" };
    let message = (!sentences.is_empty()).then(|| sentences.join(" "))?;
    Some(condition(plugin, (OUTRANKED, is_outranked), reason, &message, now, before))
}

/// A condition of this type, and whether it is true.
fn condition(
    plugin: &Plugin,
    (type_, is_true): (&str, bool),
    reason: &str,
    message: &str,
    now: Timestamp,
    before: &PluginStatus,
) -> Condition {
    let status = if is_true { "True" } else { "False" };
    let since = before.conditions.iter().find(|old| old.type_ == type_ && old.status == status);
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        observed_generation: plugin.metadata.generation,
        last_transition_time: Time(since.map_or(now, |old| old.last_transition_time.0)),
        reason: reason.to_owned(),
        message: cut(message, 1_024),
    }
}

#[cfg(test)]
mod tests;
