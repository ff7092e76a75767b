//! Pure. Renders the `ConfigMap` with the restore requests for the init container. The request of a roll-back (worlds or plugin data)
//! exists until the next revision is stable or written. A user's request exists until it has a result. The request for a new volume exists
//! as long as the spec has it.

use std::collections::BTreeMap;

use agent_api::RestoreRequest;
use agent_api::restore::{NEW_VOLUME_KEY, RequestedRestore, USER_RESTORE_KEY};
use agent_api::signed::{Document, Signer, Verifier, signature_key};
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
pub(crate) fn build_init_requests_map(server: &CheckedServer, requests: &InitRequests, signer: &Signer) -> ConfigMap {
    let InitRequests { rollback, on_request } = requests;
    let rollback = rollback.iter().flat_map(|request| signed_entries(Document::Rollback, request, signer));
    let on_request = on_request.iter().flat_map(|request| signed_entries(Document::UserRestore, request, signer));
    ConfigMap {
        metadata: child_meta(server, init_requests_map_name(&server.name)),
        data: Some(rollback.chain(on_request).collect()),
        ..ConfigMap::default()
    }
}

/// The keys of a request and of its signature.
pub(crate) fn keys_of(kind: Document) -> [String; 2] {
    let key = match kind {
        Document::UserRestore => USER_RESTORE_KEY,
        Document::NewVolume => NEW_VOLUME_KEY,
        Document::Rollback | Document::Lock | Document::StableRevision => ROLLBACK_REQUEST_KEY,
    };
    [key.to_owned(), signature_key(key)]
}

/// A request and its signature, as they are stored under their keys.
pub(crate) fn signed_entries(kind: Document, request: &impl Serialize, signer: &Signer) -> [(String, String); 2] {
    let text = serde_json::to_string_pretty(request).expect("a request has string keys only");
    let (signature, [key, signature_key]) = (signer.sign(kind, text.as_bytes()), keys_of(kind));
    [(key, text), (signature_key, signature)]
}

/// The request for a new volume under its key, or no data if there is none. It has a field manager of its own, so that it can exist beside
/// other requests.
pub(crate) fn build_new_volume_map(server: &CheckedServer, signer: &Signer) -> ConfigMap {
    let request = server
        .data
        .restore_from
        .as_ref()
        .map(|restore_from| signed_entries(Document::NewVolume, &restore_from.request, signer));
    ConfigMap {
        metadata: child_meta(server, init_requests_map_name(&server.name)),
        data: request.map(BTreeMap::from),
        ..ConfigMap::default()
    }
}

/// The requests in the object. An invalid or unsigned one counts as missing, as for the init container, and is then written again.
pub(crate) fn parse_init_requests(map: &ConfigMap, verifier: Option<&Verifier>) -> InitRequests {
    let text = |kind| {
        let [text, signature] = keys_of(kind).map(|key| map.data.as_ref().and_then(|data| data.get(&key)));
        let is_signed = verifier?.verify(kind, text?.as_bytes(), signature.map(String::as_str)).is_ok();
        text.filter(|_| is_signed)
    };
    InitRequests {
        rollback: text(Document::Rollback).and_then(|text| serde_json::from_str(text).ok()),
        on_request: text(Document::UserRestore).and_then(|text| serde_json::from_str(text).ok()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::test_server::{server, signer};
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
        let signer = signer();
        let mut map = build_init_requests_map(&check(&server(json!({}))).unwrap(), &requests, &signer);
        let parse = |map: &ConfigMap| parse_init_requests(map, Some(&signer.verifier()));
        assert_eq!(parse(&map), requests);
        assert_eq!(parse_init_requests(&map, None), InitRequests::default(), "the Secret is missing");
        let [text, signature] =
            map.data.clone().map(|data| keys_of(Document::UserRestore).map(|key| data[&key].clone())).unwrap();
        for (changed, signature) in [("{", signature.as_str()), (text.as_str(), ""), (text.as_str(), "00")] {
            let [key, signature_key] = keys_of(Document::UserRestore);
            let entries = [(key, changed.to_owned()), (signature_key, signature.to_owned())];
            map.data.as_mut().unwrap().extend(entries);
            assert_eq!(parse(&map), InitRequests { on_request: None, ..requests.clone() }, "{changed} {signature}");
        }
    }
}
