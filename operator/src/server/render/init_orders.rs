//! Pure. Renders the `ConfigMap` with the restore requests for the init container. The request of a roll-back (worlds or plugin data)
//! exists until the next revision is stable or written. A user's request exists until it has a result. The request for a new volume exists
//! as long as the spec has it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use scheduler::protocol::RestoreOrder;
use scheduler::protocol::restore::{ASKED_ORDER, AskedRestore, NEW_VOLUME_ORDER};
use serde::Serialize;

use super::super::check::CheckedServer;
use super::child_meta;

/// The key of the roll-back's request.
pub(crate) const ORDER_KEY: &str = "restore.json";

/// The name of the `ConfigMap`.
pub(crate) fn orders_map_name(server: &str) -> String {
    format!("{server}-init-requests")
}

/// The requests for the init container of the stable set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct InitOrders {
    /// Restores the data that a failed set has changed.
    pub(crate) back: Option<RestoreOrder>,
    /// Restores a backup at a user's request.
    pub(crate) asked: Option<AskedRestore>,
}

/// An object with exactly these requests. It is not immutable, because another revision may fail while they exist.
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

/// A request as it is stored under its key.
pub(crate) fn in_json(order: &impl Serialize) -> String {
    serde_json::to_string_pretty(order).expect("an order has string keys only")
}

/// The request for a new volume under its key, or no data if there is none. It has a field manager of its own, so that it can exist beside
/// other requests.
pub(crate) fn build_new_volume_map(server: &CheckedServer) -> ConfigMap {
    let order = server.restore_from.as_ref().map(|wish| (NEW_VOLUME_ORDER.to_owned(), in_json(&wish.order)));
    ConfigMap {
        metadata: child_meta(server, orders_map_name(&server.name)),
        data: order.map(|order| BTreeMap::from([order])),
        ..ConfigMap::default()
    }
}

/// The requests in the object. An invalid one counts as missing, and is then written again.
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
    fn restore_requests_coexist_and_unreadable_ones_are_ignored() {
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
