//! Edge (writes). Serves the agent's port: probes for the kubelet and signed requests for the operator.

use std::sync::Arc;
use std::time::{Duration, Instant};

use artifacts::http_server::{Connection, Limits};
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{any, get};
use serde::de::DeserializeOwned;
use tracing::{debug, warn};

use super::state::SidecarState;
use super::volume_report::VolumeReport;
use super::{ErrorChain, announce, backup_size, clock, loaded_content, online_backup, stage};
use crate::rcon::{Online, responses};
use agent_api::signature::{Headers, Received, SignatureError, verify};
use agent_api::{
    Announce, BackupsReport, CancelAnnouncement, FileSet, OnlineBackupRequest, PlayerCount, ProtectBackup,
    RequestRefusal, Save, Saved,
};

/// The timeout of `minecraft:list`. It is longer than a tick stall.
const LIST_TIMEOUT: Duration = Duration::from_secs(20);
/// The longest save that may be requested, in seconds.
const MAX_SAVE_SECONDS: u32 = 30 * 60;
/// The longest text for players, in bytes. One RCON command has 1446 bytes.
const MAX_TEXT_BYTES: usize = 1000;
const TEXT_TOO_LONG: &str = "the text is longer than 1000 bytes";

/// The bounds of the port. A request without a valid signature is answered as soon as its headers are complete. A signed one may save for half an
/// hour ([`MAX_SAVE_SECONDS`]) after it has waited for the console.
pub(super) const LIMITS: Limits =
    Limits { connections: 128, header_time: Duration::from_secs(10), total_time: Duration::from_hours(1) };
/// How long the body of a signed request may take.
const BODY_TIME: Duration = Duration::from_secs(10);

/// The maximum size of the body of a signed request, in bytes.
fn max_body(path: &str) -> usize {
    // The files of a lock are in a ConfigMap too, which has 1 MiB at most.
    if path == "/v1/stage" { 1 << 20 } else { 16 << 10 }
}

/// All routes.
pub(super) fn routes(shared: Arc<SidecarState>) -> Router {
    Router::new()
        .route("/started", get(started))
        .route("/ready", get(ready))
        .route("/v1/{*rest}", any(handle_signed))
        .with_state(shared)
}

async fn started(State(shared): State<Arc<SidecarState>>) -> Response {
    if shared.state().monitor.is_up() {
        (StatusCode::OK, "the server has answered\n").into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the server has not answered a ping since its start\n").into_response()
    }
}

async fn ready(State(shared): State<Arc<SidecarState>>) -> Response {
    let state = shared.state();
    if state.monitor.is_ready(clock::now()) {
        return (StatusCode::OK, "the server answers\n").into_response();
    }
    let why = match (state.monitor.is_stopping(), state.monitor.is_up()) {
        (true, _) => "the server is stopping\n",
        (false, true) => "the server has not answered a ping for 20 s, or its port is closed\n",
        (false, false) => "the server has not answered a ping since its start\n",
    };
    (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
}

/// Answers a request of the operator. Without a valid signature the body is not read.
async fn handle_signed(State(shared): State<Arc<SidecarState>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let signed = match verify_headers(&shared, &parts) {
        Ok(headers) => read_body(&parts, &headers, body).await,
        Err(refusal) => Err(refusal),
    };
    match signed {
        Ok(body) => answer(&shared, parts.method.as_str(), parts.uri.path(), &body).await,
        Err(refusal) => *refusal,
    }
}

async fn answer(shared: &Arc<SidecarState>, method: &str, path: &str, body: &[u8]) -> Response {
    match (method, path) {
        ("GET", "/v1/report") => report(shared).await,
        ("POST", "/v1/stage") => with_body(body, |set: FileSet| {
            stage::begin(shared, set);
            Ok(StatusCode::ACCEPTED.into_response())
        }),
        ("POST", "/v1/announce") => with_body(body, |announce: Announce| {
            if announce.text.len().max(announce.short.as_ref().map_or(0, String::len)) > MAX_TEXT_BYTES {
                return Err(TEXT_TOO_LONG.to_owned());
            }
            Ok(match announce::begin(shared, announce) {
                Ok(()) => StatusCode::ACCEPTED.into_response(),
                Err(why) => (StatusCode::CONFLICT, Json(RequestRefusal { not_now: true, ..RequestRefusal::new(why) }))
                    .into_response(),
            })
        }),
        ("POST", "/v1/cancel-announcement") => match serde_json::from_slice::<CancelAnnouncement>(body) {
            Ok(cancellation) if cancellation.text.len() <= MAX_TEXT_BYTES => {
                announce::end(shared, &cancellation).await;
                StatusCode::NO_CONTENT.into_response()
            }
            Ok(_) => refuse(StatusCode::BAD_REQUEST, TEXT_TOO_LONG),
            Err(error) => refuse(StatusCode::BAD_REQUEST, error.to_string()),
        },
        ("POST", "/v1/save") => match serde_json::from_slice(body) {
            Ok(Save { timeout_seconds }) => Json(save(shared, timeout_seconds).await).into_response(),
            Err(error) => refuse(StatusCode::BAD_REQUEST, error.to_string()),
        },
        ("POST", "/v1/backup") => match serde_json::from_slice(body) {
            Ok(request) => backup(shared, request).await,
            Err(error) => refuse(StatusCode::BAD_REQUEST, error.to_string()),
        },
        ("POST", "/v1/protect-backup") => with_body(body, |retained_backup: ProtectBackup| {
            shared.state().retained_backup = Some(retained_backup);
            Ok(StatusCode::NO_CONTENT.into_response())
        }),
        ("POST", "/v1/players") => players(shared).await,
        (method, path) => refuse(StatusCode::NOT_FOUND, format!("there is no {method} {path}")),
    }
}

/// Verifies the signature, which covers the headers and the digest of the body.
fn verify_headers(shared: &SidecarState, parts: &Parts) -> Result<Headers, Box<Response>> {
    let headers = Headers::collect(|name| parts.headers.get(name)?.to_str().ok());
    let Some(headers) = headers else {
        return Err(Box::new(refuse(StatusCode::UNAUTHORIZED, "a header of the signature is missing")));
    };
    // Includes the query, if a client adds one: unsigned parts must not have an effect.
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let received = Received { method: parts.method.as_str(), path, headers: &headers };
    let settings = &shared.settings;
    let verified = verify(&settings.agent_key, &received, &settings.pod_uid, clock::now(), &mut shared.state().guard);
    verified.map_err(|refused| Box::new(refuse_signature(parts, &refused)))?;
    if let Some(connection) = parts.extensions.get::<Connection>() {
        connection.trust();
    }
    Ok(headers)
}

/// Reads the body of a request whose headers are signed.
async fn read_body(parts: &Parts, headers: &Headers, body: Body) -> Result<Bytes, Box<Response>> {
    let limit = max_body(parts.uri.path());
    let body = match tokio::time::timeout(BODY_TIME, to_bytes(body, limit)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => {
            let why = format!("the body is larger than {limit} bytes, or the connection broke");
            return Err(Box::new(refuse(StatusCode::PAYLOAD_TOO_LARGE, why)));
        }
        Err(_) => {
            let why = format!("the body did not arrive within {} s", BODY_TIME.as_secs());
            return Err(Box::new(refuse(StatusCode::REQUEST_TIMEOUT, why)));
        }
    };
    headers.check_body(&body).map_err(|refused| Box::new(refuse_signature(parts, &refused)))?;
    Ok(body)
}

fn refuse_signature(parts: &Parts, refused: &SignatureError) -> Response {
    // A sender without the key must not fill the log.
    if matches!(refused, SignatureError::Signature | SignatureError::Malformed(_)) {
        debug!("refused {} {}: {refused}", parts.method, parts.uri.path());
    } else {
        warn!("refused {} {}: {refused}", parts.method, parts.uri.path());
    }
    let status = match refused {
        SignatureError::Fenced { .. } | SignatureError::FenceTooHigh { .. } | SignatureError::Replayed => {
            StatusCode::CONFLICT
        }
        SignatureError::Malformed(_) => StatusCode::BAD_REQUEST,
        SignatureError::Body
        | SignatureError::Signature
        | SignatureError::Skew { .. }
        | SignatureError::BeforeStart => StatusCode::UNAUTHORIZED,
    };
    (status, Json(refused.to_refusal())).into_response()
}

async fn report(shared: &Arc<SidecarState>) -> Response {
    let task = Arc::clone(shared);
    let report = tokio::task::spawn_blocking(move || {
        // Read before the backups are listed. A backup that ends meanwhile is then still reported as running, not as finished and missing.
        let agent_part = task.online_backup_and_sizes();
        let found = VolumeReport::read(&task.volume, task.settings.backups.as_deref())?;
        let room = backup_size::room(&task);
        let backups = found.backups.map(|backups| BackupsReport { room, ..backups });
        Ok(task.report(clock::now(), VolumeReport { backups, ..found }, agent_part))
    });
    match report.await.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(report) => Json(report).into_response(),
        Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, format!("the volume cannot be read: {error}")),
    }
}

async fn save(shared: &Arc<SidecarState>, timeout_seconds: u32) -> Saved {
    // Before waiting for the console: a backup may hold it until its own flush is done.
    online_backup::on_world_save(shared);
    let lease = shared.console.lease();
    let begun = Instant::now();
    let within = Duration::from_secs(timeout_seconds.min(MAX_SAVE_SECONDS).into());
    let answer = {
        let mut console = lease.console().await;
        // And a backup that has begun meanwhile. From now on no backup gets the console before this save.
        online_backup::on_world_save(shared);
        console.save_flush(within).await
    };
    let (confirmed, problem) = match answer {
        Ok(response) if responses::confirms_save(&response) => (true, None),
        Ok(response) => (false, Some(format!("the server answered `{}`", response.trim()))),
        Err(error) => (false, Some(ErrorChain(&error).to_string())),
    };
    let took_ms = begun.elapsed().as_millis().try_into().unwrap_or(u64::MAX);
    if confirmed {
        shared.record_saved();
        loaded_content::recheck(shared).await;
    }
    Saved { confirmed, took_ms, problem }
}

async fn backup(shared: &Arc<SidecarState>, request: OnlineBackupRequest) -> Response {
    match online_backup::begin(shared, request).await {
        Ok(()) => StatusCode::ACCEPTED.into_response(),
        Err(online_backup::OnlineBackupRejection::Malformed(why)) => refuse(StatusCode::BAD_REQUEST, why),
        Err(online_backup::OnlineBackupRejection::NotNow(why)) => refuse(StatusCode::CONFLICT, why),
        Err(online_backup::OnlineBackupRejection::NotRecorded(why)) => refuse(StatusCode::INTERNAL_SERVER_ERROR, why),
    }
}

async fn players(shared: &Arc<SidecarState>) -> Response {
    let lease = shared.console.lease();
    let answer = lease.console().await.list(LIST_TIMEOUT).await;
    let players = match answer {
        Ok(Online::Known { count, max: _ }) => {
            shared.state().monitor.observe_console_count(count);
            if count == 0 { PlayerCount::Nobody } else { PlayerCount::Some { count } }
        }
        Ok(Online::Unknown) | Err(_) => match shared.state().monitor.players(clock::now()) {
            // The ping alone never proves that a server is empty.
            PlayerCount::Some { count } => PlayerCount::Some { count },
            PlayerCount::Nobody => PlayerCount::Unknown { since: clock::now() },
            unknown @ PlayerCount::Unknown { .. } => unknown,
        },
    };
    Json(players).into_response()
}

fn with_body<T: DeserializeOwned>(body: &[u8], handler: impl FnOnce(T) -> Result<Response, String>) -> Response {
    let done = serde_json::from_slice(body).map_err(|error| error.to_string()).and_then(handler);
    done.unwrap_or_else(|error| refuse(StatusCode::BAD_REQUEST, error))
}

fn refuse(status: StatusCode, error: impl Into<String>) -> Response {
    (status, Json(RequestRefusal::new(error))).into_response()
}
