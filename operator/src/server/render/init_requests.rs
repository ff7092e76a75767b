//! Pure. Renders the `ConfigMap` with the restore requests for the init container. The request of a roll-back (worlds or plugin data)
//! exists until the next revision is stable or written. A user's request exists until it has a result. The request for a new volume exists
//! as long as the spec has it.

use std::collections::BTreeMap;

use agent_api::RestoreRequest;
use agent_api::restore::{NEW_VOLUME_KEY, RequestedRestore, USER_RESTORE_KEY};
use k8s_openapi::api::core::v1::ConfigMap;
use serde::Serialize;

use super::child_meta;
use validate::CheckedServer;

/// The key of the roll-back's request.
pub(crate) const ROLLBACK_REQUEST_KEY: &str = "restore.json";

/// The name of the `ConfigMap`.
pub(crate) fn init_requests_map_name(server: &str) -> String {
    format!("{server}-init-requests")
}

/// The requests for the init container of the stable set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct InitRequests {
    /// Restores the data that a failed set has changed.
    pub(crate) rollback: Option<RestoreRequest>,
    /// Restores a backup at a user's request.
    pub(crate) on_request: Option<RequestedRestore>,
}

/// An object with exactly these requests. It is not immutable, because another revision may fail while they exist.
pub(crate) fn build_init_requests_map(server: &CheckedServer, requests: &InitRequests) -> ConfigMap {
    let InitRequests { rollback, on_request } = requests;
    let rollback = rollback.iter().map(|request| (ROLLBACK_REQUEST_KEY.to_owned(), to_json(request)));
    let on_request = on_request.iter().map(|request| (USER_RESTORE_KEY.to_owned(), to_json(request)));
    ConfigMap {
        metadata: child_meta(server, init_requests_map_name(&server.name)),
        data: Some(rollback.chain(on_request).collect()),
        ..ConfigMap::default()
    }
}

/// A request as it is stored under its key.
pub(crate) fn to_json(request: &impl Serialize) -> String {
    serde_json::to_string_pretty(request).expect("a request has string keys only")
}

/// The request for a new volume under its key, or no data if there is none. It has a field manager of its own, so that it can exist beside
/// other requests.
pub(crate) fn build_new_volume_map(server: &CheckedServer) -> ConfigMap {
    let request = server
        .data
        .restore_from
        .as_ref()
        .map(|restore_from| (NEW_VOLUME_KEY.to_owned(), to_json(&restore_from.request)));
    ConfigMap {
        metadata: child_meta(server, init_requests_map_name(&server.name)),
        data: request.map(|request| BTreeMap::from([request])),
        ..ConfigMap::default()
    }
}

/// The requests in the object. An invalid one counts as missing, and is then written again.
pub(crate) fn parse_init_requests(map: &ConfigMap) -> InitRequests {
    let text = |key: &str| map.data.as_ref().and_then(|data| data.get(key));
    InitRequests {
        rollback: text(ROLLBACK_REQUEST_KEY).and_then(|text| serde_json::from_str(text).ok()),
        on_request: text(USER_RESTORE_KEY).and_then(|text| serde_json::from_str(text).ok()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::test_server::server;
    use validate::check;

    #[test]
    fn restore_requests_coexist_and_unreadable_ones_are_ignored() {
        let rollback =
            RestoreRequest { to: "a".repeat(64), failed: "b".repeat(64), unless_played: true, worlds: false };
        let on_request = RequestedRestore {
            request: "asked-1".to_owned(),
            to: "a".repeat(64),
            backup: "20261122T030000Z-aaaaaaaa".to_owned(),
            overwrite: true,
            everything: false,
            not_after: jiff::Timestamp::UNIX_EPOCH,
        };
        let requests = InitRequests { rollback: Some(rollback), on_request: Some(on_request) };
        let mut map = build_init_requests_map(&check(&server(json!({}))).unwrap(), &requests);
        assert_eq!(parse_init_requests(&map), requests);
        map.data.as_mut().unwrap().insert(USER_RESTORE_KEY.to_owned(), "{".to_owned());
        assert_eq!(parse_init_requests(&map), InitRequests { on_request: None, ..requests });
    }
}
