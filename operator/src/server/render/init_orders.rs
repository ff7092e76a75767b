//! Pure. The `ConfigMap` with orders for the init container. That of a roll-back, to put worlds or plugins' data back, is there until the next
//! revision is settled or written; that of a person until something has come of it; that for a new volume as long as the spec has it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use scheduler::protocol::RestoreOrder;
use scheduler::protocol::restore::{ASKED_ORDER, AskedRestore, NEW_VOLUME_ORDER};
use serde::Serialize;

use super::super::check::CheckedServer;
use super::child_meta;

/// The key with the order.
pub(crate) const ORDER_KEY: &str = "restore.json";

/// Its name.
pub(crate) fn orders_map_name(server: &str) -> String {
    format!("{server}-init-requests")
}

/// What stands there for the init container of the set that settled.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct InitOrders {
    /// To put back what a failed set has changed.
    pub(crate) back: Option<RestoreOrder>,
    /// To put a copy in place, for a person.
    pub(crate) asked: Option<AskedRestore>,
}

/// These as an object, and no other beside them. Not immutable: another revision may fail while they stand.
pub(crate) fn build_orders_map(server: &CheckedServer, orders: &InitOrders) -> ConfigMap {
    let InitOrders { back, asked } = orders;
    let back = back.iter().map(|order| (ORDER_KEY.to_owned(), in_json(order)));
    let asked = asked.iter().map(|order| (ASKED_ORDER.to_owned(), in_json(order)));
    ConfigMap {
        metadata: child_meta(server, orders_map_name(&server.name)),
        data: Some(back.chain(asked).collect()),
        ..ConfigMap::default()
    }
}

/// An order as it stands under its key.
pub(crate) fn in_json(order: &impl Serialize) -> String {
    serde_json::to_string_pretty(order).expect("an order has string keys only")
}

/// What a new volume gets, under its key; without data if it gets nothing. It has a writer of its own, so that it stands beside another order.
pub(crate) fn build_new_volume_map(server: &CheckedServer) -> ConfigMap {
    let order = server.restore_from.as_ref().map(|wish| (NEW_VOLUME_ORDER.to_owned(), in_json(&wish.order)));
    ConfigMap {
        metadata: child_meta(server, orders_map_name(&server.name)),
        data: order.map(|order| BTreeMap::from([order])),
        ..ConfigMap::default()
    }
}

/// The orders that stand there. One that cannot be read is none, and is then written anew.
pub(crate) fn orders_in(map: &ConfigMap) -> InitOrders {
    let text = |key: &str| map.data.as_ref().and_then(|data| data.get(key));
    InitOrders {
        back: text(ORDER_KEY).and_then(|text| serde_json::from_str(text).ok()),
        asked: text(ASKED_ORDER).and_then(|text| serde_json::from_str(text).ok()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::check::check;
    use super::super::super::check::tests::server;
    use super::*;

    #[test]
    fn one_order_does_not_take_the_place_of_the_other_and_what_cannot_be_read_is_none() {
        let back = RestoreOrder { to: "a".repeat(64), failed: "b".repeat(64), unless_played: true, worlds: false };
        let asked = AskedRestore {
            request: "asked-1".to_owned(),
            to: "a".repeat(64),
            copy: "20261122T030000Z-aaaaaaaa".to_owned(),
            overwrite: true,
            everything: false,
            not_after: jiff::Timestamp::UNIX_EPOCH,
        };
        let orders = InitOrders { back: Some(back), asked: Some(asked) };
        let mut map = build_orders_map(&check(&server(json!({}))).unwrap(), &orders);
        assert_eq!(orders_in(&map), orders);
        map.data.as_mut().unwrap().insert(ASKED_ORDER.to_owned(), "{".to_owned());
        assert_eq!(orders_in(&map), InitOrders { asked: None, ..orders });
    }
}
