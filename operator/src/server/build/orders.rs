//! Pure. The `ConfigMap` with the order to put worlds and plugins' data back. It is there from the order until the next revision is settled or written.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use scheduler::protocol::RestoreOrder;

use super::super::check::CheckedServer;
use super::child_meta;

/// The key with the order.
pub(crate) const ORDER_KEY: &str = "restore.json";

/// Its name.
pub(crate) fn orders_map_name(server: &str) -> String {
    format!("{server}-orders")
}

/// The order as an object. Not immutable: another revision may fail while it stands.
pub(crate) fn build_orders_map(server: &CheckedServer, order: &RestoreOrder) -> ConfigMap {
    let text = serde_json::to_string_pretty(order).expect("an order has string keys only");
    ConfigMap {
        metadata: child_meta(server, orders_map_name(&server.name)),
        data: Some(BTreeMap::from([(ORDER_KEY.to_owned(), text)])),
        ..ConfigMap::default()
    }
}

/// The order that stands there; None also for one that cannot be read, which is then written anew.
pub(crate) fn order_in(map: &ConfigMap) -> Option<RestoreOrder> {
    serde_json::from_str(map.data.as_ref()?.get(ORDER_KEY)?).ok()
}
