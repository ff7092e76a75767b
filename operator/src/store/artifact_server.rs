//! Edge (reads). The store over HTTP: `GET /files/{algorithm}/{hex}`, for agents.
//!
//! Unsigned and unencrypted: the content is public, and the agent checks the hash that it asked for. It is no proxy: it
//! serves what it holds and what a current lock names, and 404 for the rest.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use resolver::jar::Hash;
use scheduler::protocol::RequestRefusal;
use tokio_util::io::ReaderStream;

use super::Store;
use crate::error_chain::ErrorChain;

/// Bytes read from the disk at once: a Paper JAR is 50 MB, and eight hundred small reads are enough.
const CHUNK: usize = 64 << 10;

impl Store {
    /// The routes of the store.
    pub(crate) fn serve(self: &Arc<Self>) -> Router {
        Router::new().route("/files/{algorithm}/{hex}", get(file)).with_state(Arc::clone(self))
    }
}

async fn file(State(store): State<Arc<Store>>, Path((algorithm, hex)): Path<(String, String)>) -> Response {
    let Some(hash) = Hash::of_parts(&algorithm, &hex) else {
        return refuse(StatusCode::NOT_FOUND, "this is no hash that files are known by".to_owned());
    };
    let path = match store.known(&hash).await {
        Some(Ok(path)) => path,
        Some(Err(error)) => return refuse(StatusCode::BAD_GATEWAY, ErrorChain(&error).to_string()),
        None => return refuse(StatusCode::NOT_FOUND, format!("no current lock names {hash}")),
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
        Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, format!("{hash} cannot be read: {error}")),
    }
}

fn refuse(status: StatusCode, error: String) -> Response {
    (status, Json(RequestRefusal::because(error))).into_response()
}
