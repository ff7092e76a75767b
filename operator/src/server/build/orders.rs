//! Pure. The `ConfigMap` with orders for the init container. That of a roll-back, to put worlds or plugins' data back, is there until the next
//! revision is settled or written; that of a person until something has come of it; that for a new volume as long as the spec has it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use scheduler::protocol::RestoreOrder;
use scheduler::protocol::restore::NEW_VOLUME_ORDER;
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

/// What a new volume gets, under its key; without data if it gets nothing. It has a writer of its own, so that it stands beside another order.
pub(crate) fn build_new_volume_map(server: &CheckedServer) -> ConfigMap {
    let text = |order| serde_json::to_string_pretty(order).expect("an order has string keys only");
    let order = server.restore_from.as_ref().map(|wish| (NEW_VOLUME_ORDER.to_owned(), text(&wish.order)));
    ConfigMap {
        metadata: child_meta(server, orders_map_name(&server.name)),
        data: order.map(|order| BTreeMap::from([order])),
        ..ConfigMap::default()
    }
}

/// The order that stands there; None also for one that cannot be read, which is then written anew.
pub(crate) fn order_in(map: &ConfigMap) -> Option<RestoreOrder> {
    serde_json::from_str(map.data.as_ref()?.get(ORDER_KEY)?).ok()
}
