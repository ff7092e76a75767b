//! Pure. Defines the metrics.
//!
//! Labels are closed sets and never contain the name of an object.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// The controller, and how its pass ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct PassLabels {
    pub(crate) controller: &'static str,
    pub(crate) outcome: &'static str,
}

/// The step of the rollout, and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct StepLabels {
    pub(crate) step: &'static str,
    pub(crate) outcome: &'static str,
}

/// Why a file could not be fetched.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct FetchLabels {
    pub(crate) category: &'static str,
}

/// Why a server was stopped.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct StopLabels {
    pub(crate) stop: &'static str,
}

/// The kind of a channel, and the outcome of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct DeliveryLabels {
    pub(crate) channel: &'static str,
    pub(crate) outcome: &'static str,
}

/// Metrics of notifications.
#[derive(Clone, Default)]
pub(crate) struct NotificationMetrics {
    /// Deliveries by outcome.
    pub(crate) deliveries: Family<DeliveryLabels, Counter>,
    /// The number of cluster channels that are failing now.
    pub(crate) cluster_failing: Gauge,
}

/// Metrics of update slots, if updates are limited.
#[derive(Debug, Clone, Default)]
pub(crate) struct UpdateSlotMetrics {
    /// The number of servers with an update slot.
    pub(crate) in_use: Gauge,
    /// The number of servers that wait for one.
    pub(crate) waiting: Gauge,
}

/// Durations of solving.
#[derive(Clone)]
pub(crate) struct Solves {
    /// Per decision about the servers that are solved together. Its count is the number of decisions.
    pub(crate) solve_seconds: Histogram,
    /// Per answer for one server, with its explanation.
    pub(crate) explain_seconds: Histogram,
}

/// All metrics of the process.
pub(crate) struct Metrics {
    registry: Arc<Registry>,
    pub(crate) reconcile_total: Family<PassLabels, Counter>,
    pub(crate) reconcile_seconds: Histogram,
    pub(crate) step_total: Family<StepLabels, Counter>,
    pub(crate) solves: Solves,
    pub(crate) catalog_read_at: Gauge,
    pub(crate) api_writes: Counter,
    pub(crate) fetch_failures: Family<FetchLabels, Counter>,
    pub(crate) store_downloads: Counter,
    pub(crate) store_hits: Counter,
    pub(crate) notifications: NotificationMetrics,
    pub(crate) update_slots: UpdateSlotMetrics,
    pub(crate) backup_oldest_at: Gauge,
    pub(crate) servers_not_responding: Gauge,
    pub(crate) update_downtime_seconds: Histogram,
    pub(crate) players_disconnected: Family<StopLabels, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("nightshift");
        // 1 ms to 16 s: a pass consists of a few requests, and one that includes a save takes seconds.
        let seconds = || Histogram::new(exponential_buckets(0.001, 4.0, 8));
        let metrics = Self {
            reconcile_total: Family::default(),
            reconcile_seconds: seconds(),
            step_total: Family::default(),
            solves: Solves { solve_seconds: seconds(), explain_seconds: seconds() },
            catalog_read_at: Gauge::default(),
            api_writes: Counter::default(),
            fetch_failures: Family::default(),
            store_downloads: Counter::default(),
            store_hits: Counter::default(),
            notifications: NotificationMetrics::default(),
            update_slots: UpdateSlotMetrics::default(),
            backup_oldest_at: Gauge::default(),
            servers_not_responding: Gauge::default(),
            // 1 s to half an hour: a start takes seconds, and a backup of a large world before it takes minutes.
            update_downtime_seconds: Histogram::new(exponential_buckets(1.0, 2.0, 12)),
            players_disconnected: Family::default(),
            registry: Arc::default(),
        };
        registry.register("reconcile", "Reconciles by controller and outcome", metrics.reconcile_total.clone());
        registry.register("reconcile_seconds", "Duration of a reconcile", metrics.reconcile_seconds.clone());
        registry.register("step", "Steps of the rollout by outcome", metrics.step_total.clone());
        registry.register(
            "solve_seconds",
            "Duration of a solve of servers that are solved together",
            metrics.solves.solve_seconds.clone(),
        );
        registry.register(
            "explain_seconds",
            "Duration of the answer for one server, with its explanation",
            metrics.solves.explain_seconds.clone(),
        );
        registry.register(
            "catalog_read_at_seconds",
            "When the catalog was read, unix time",
            metrics.catalog_read_at.clone(),
        );
        registry.register("api_writes", "Writes sent to the API server by the controllers", metrics.api_writes.clone());
        registry.register("fetch_failures", "Files that could not be fetched", metrics.fetch_failures.clone());
        registry.register("store_downloads", "Files downloaded since the start", metrics.store_downloads.clone());
        registry.register("store_hits", "Files that were in the store already", metrics.store_hits.clone());
        let NotificationMetrics { deliveries, cluster_failing } = metrics.notifications.clone();
        registry.register("notifications", "Notifications by outcome", deliveries);
        registry.register("cluster_channels_failing", "Channels of the cluster that do not work now", cluster_failing);
        let UpdateSlotMetrics { in_use, waiting } = metrics.update_slots.clone();
        registry.register("update_slots_in_use", "Servers whose update has an update slot now", in_use);
        registry.register("updates_queued", "Servers that could be updated now and wait for an update slot", waiting);
        registry.register(
            "backup_oldest_at_seconds",
            "The oldest of the newest good backups of running servers with a backup schedule, unix time",
            metrics.backup_oldest_at.clone(),
        );
        registry.register(
            "servers_not_responding",
            "Running servers that do not answer now",
            metrics.servers_not_responding.clone(),
        );
        registry.register(
            "update_downtime_seconds",
            "Downtime of servers for updates that were kept",
            metrics.update_downtime_seconds.clone(),
        );
        registry.register(
            "players_disconnected",
            "Players who were online when Nightshift stopped their server, by reason",
            metrics.players_disconnected.clone(),
        );
        Self { registry: Arc::new(registry), ..metrics }
    }
}

impl Metrics {
    /// Renders the metrics for Prometheus at each call.
    pub(crate) fn renderer(&self) -> impl Fn() -> String + Clone + Send + Sync + 'static {
        let registry = self.registry.clone();
        move || {
            let mut text = String::new();
            encode(&mut text, &registry).expect("writing into a String cannot fail");
            text
        }
    }
}

/// The route of the metrics. They contain no secrets and no names of objects.
pub(crate) fn router(metrics: impl Fn() -> String + Clone + Send + Sync + 'static) -> Router {
    Router::new().route("/metrics", get(move || async move { metrics() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_output_names_counters() {
        let metrics = Metrics::default();
        metrics.reconcile_total.get_or_create(&PassLabels { controller: "server", outcome: "settled" }).inc();
        let text = metrics.renderer()();
        assert!(text.contains(r#"nightshift_reconcile_total{controller="server",outcome="settled"} 1"#), "{text}");
    }

    #[test]
    fn metrics_output_separates_used_and_queued_update_slots() {
        let metrics = Metrics::default();
        metrics.update_slots.in_use.set(2);
        metrics.update_slots.waiting.set(7);
        metrics.servers_not_responding.set(3);
        let text = metrics.renderer()();
        let lines =
            ["nightshift_update_slots_in_use 2", "nightshift_updates_queued 7", "nightshift_servers_not_responding 3"];
        for line in lines {
            assert!(text.lines().any(|text_line| text_line == line), "{line}: {text}");
        }
    }
}
