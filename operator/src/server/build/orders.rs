//! Pure. The `ConfigMap` with an order to put worlds or plugins' data back. That of a roll-back is there until the next revision is settled or
//! written, that of a person until something has come of it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use scheduler::protocol::RestoreOrder;
use serde::Serialize;

use super::super::check::CheckedServer;
use super::child_meta;

/// The key with the order.
pub(crate) const ORDER_KEY: &str = "restore.json";

/// Its name.
pub(crate) fn orders_map_name(server: &str) -> String {
    format!("{server}-orders")
}

/// The order under its key as an object: no other stands beside it. Not immutable: another revision may fail while it stands.
pub(crate) fn build_orders_map(server: &CheckedServer, key: &str, order: &impl Serialize) -> ConfigMap {
    let text = serde_json::to_string_pretty(order).expect("an order has string keys only");
    ConfigMap {
        metadata: child_meta(server, orders_map_name(&server.name)),
        data: Some(BTreeMap::from([(key.to_owned(), text)])),
        ..ConfigMap::default()
    }
}

/// The order that stands there; None also for one that cannot be read, which is then written anew.
pub(crate) fn order_in(map: &ConfigMap) -> Option<RestoreOrder> {
    serde_json::from_str(map.data.as_ref()?.get(ORDER_KEY)?).ok()
}
