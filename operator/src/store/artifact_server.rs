//! Edge (reads). Serves the store to agents over HTTP: `GET /files/{algorithm}/{hex}`.
//!
//! Unsigned and unencrypted: the content is public, and the agent verifies the hash that it requested. It is not a
//! proxy. It serves files in the store and files that a current lock names, and 404 for all others.

use std::sync::Arc;
use std::time::Duration;

use agent_api::RequestRefusal;
use artifacts::Hash;
use artifacts::http_server::Limits;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use tokio_util::io::ReaderStream;

use super::Store;
use crate::error_chain::ErrorChain;

/// Bytes per read from the disk. A Paper JAR has 50 MB, which takes about eight hundred reads.
const CHUNK: usize = 64 << 10;

/// The bounds of the port. Each agent of a fleet downloads one file at a time. A response may begin with a download from the
/// upstream, which has 17 minutes.
pub(crate) const LIMITS: Limits =
    Limits { connections: 512, header_time: Duration::from_secs(10), total_time: Duration::from_mins(40) };

impl Store {
    /// The routes of the store.
    pub(crate) fn serve(self: &Arc<Self>) -> Router {
        Router::new().route("/files/{algorithm}/{hex}", get(file)).with_state(Arc::clone(self))
    }
}

async fn file(State(store): State<Arc<Store>>, Path((algorithm, hex)): Path<(String, String)>) -> Response {
    let Some(hash) = Hash::from_parts(&algorithm, &hex) else {
        return error_response(StatusCode::NOT_FOUND, "this is not a supported hash".to_owned());
    };
    let path = match store.fetch_by_hash(&hash).await {
        Some(Ok(path)) => path,
        Some(Err(error)) => return error_response(StatusCode::BAD_GATEWAY, ErrorChain(&error).to_string()),
        None => return error_response(StatusCode::NOT_FOUND, format!("no current lock names {hash}")),
    };
    let opened = async {
        let file = tokio::fs::File::open(&path).await?;
        let length = file.metadata().await?.len();
        Ok::<_, std::io::Error>((file, length))
    };
    match opened.await {
        Ok((file, length)) => {
            let headers = [
                (CONTENT_TYPE, "application/java-archive".to_owned()),
                (CONTENT_LENGTH, length.to_string()),
                (CACHE_CONTROL, "public, immutable, max-age=31536000".to_owned()),
            ];
            (headers, Body::from_stream(ReaderStream::with_capacity(file, CHUNK))).into_response()
        }
        Err(error) => error_response(StatusCode::INTERNAL_SERVER_ERROR, format!("could not read {hash}: {error}")),
    }
}

fn error_response(status: StatusCode, error: String) -> Response {
    (status, Json(RequestRefusal::new(error))).into_response()
}
