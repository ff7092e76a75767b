//! Edge (writes). Serves the agent's port: probes for the kubelet and signed requests for the operator.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{any, get};
use serde::de::DeserializeOwned;
use tracing::warn;

use super::state::SidecarState;
use super::volume_report::VolumeReport;
use super::{Chain, announce, clock, loaded_content, online_backup, stage};
use crate::protocol::signature::{Headers, Received, SignatureError, verify};
use crate::protocol::{
    Announce, CancelAnnouncement, FileSet, HotCopy, KeepCopy, PlayerCount, RequestRefusal, Save, Saved,
};
use crate::rcon::{Online, responses};

/// The timeout of `minecraft:list`. It is longer than a tick stall.
const LIST: Duration = Duration::from_secs(20);
/// The longest save that may be requested, in seconds.
const LONGEST_SAVE: u32 = 30 * 60;
/// The longest text for players, in bytes. One RCON command has 1446 bytes.
const LONGEST_TEXT: usize = 1000;
const TOO_LONG: &str = "the text is longer than 1000 bytes";

/// All routes.
pub(super) fn routes(shared: Arc<SidecarState>) -> Router {
    Router::new()
        .route("/started", get(started))
        .route("/ready", get(ready))
        .route("/v1/{*rest}", any(signed))
        .with_state(shared)
}

async fn started(State(shared): State<Arc<SidecarState>>) -> Response {
    if shared.state().witness.is_up() {
        (StatusCode::OK, "the server has answered\n").into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the server has not answered a ping since its start\n").into_response()
    }
}

async fn ready(State(shared): State<Arc<SidecarState>>) -> Response {
    let state = shared.state();
    if state.witness.is_ready(clock::now()) {
        return (StatusCode::OK, "the server answers\n").into_response();
    }
    let why = match (state.witness.is_stopping(), state.witness.is_up()) {
        (true, _) => "the server is stopping\n",
        (false, true) => "the server has not answered a ping for 20 s, or its port is shut\n",
        (false, false) => "the server has not answered a ping since its start\n",
    };
    (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
}

async fn signed(
    State(shared): State<Arc<SidecarState>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if let Err(refusal) = check(&shared, &method, &uri, &headers, &body) {
        return *refusal;
    }
    match (method.as_str(), uri.path()) {
        ("GET", "/v1/report") => report(&shared).await,
        ("POST", "/v1/stage") => with_body(&body, |set: FileSet| {
            stage::begin(&shared, set);
            Ok(StatusCode::ACCEPTED.into_response())
        }),
        ("POST", "/v1/announce") => with_body(&body, |announce: Announce| {
            if announce.text.len().max(announce.short.as_ref().map_or(0, String::len)) > LONGEST_TEXT {
                return Err(TOO_LONG.to_owned());
            }
            Ok(match announce::begin(&shared, announce) {
                Ok(()) => StatusCode::ACCEPTED.into_response(),
                Err(why) => {
                    (StatusCode::CONFLICT, Json(RequestRefusal { not_now: true, ..RequestRefusal::because(why) }))
                        .into_response()
                }
            })
        }),
        ("POST", "/v1/call-off") => match serde_json::from_slice::<CancelAnnouncement>(&body) {
            Ok(call_off) if call_off.text.len() <= LONGEST_TEXT => {
                announce::end(&shared, &call_off).await;
                StatusCode::NO_CONTENT.into_response()
            }
            Ok(_) => refuse(StatusCode::BAD_REQUEST, TOO_LONG),
            Err(error) => refuse(StatusCode::BAD_REQUEST, error.to_string()),
        },
        ("POST", "/v1/save") => match serde_json::from_slice(&body) {
            Ok(Save { timeout_seconds }) => Json(save(&shared, timeout_seconds).await).into_response(),
            Err(error) => refuse(StatusCode::BAD_REQUEST, error.to_string()),
        },
        ("POST", "/v1/backup") => match serde_json::from_slice(&body) {
            Ok(asked) => backup(&shared, asked).await,
            Err(error) => refuse(StatusCode::BAD_REQUEST, error.to_string()),
        },
        ("POST", "/v1/keep") => with_body(&body, |kept: KeepCopy| {
            shared.state().kept = Some(kept);
            Ok(StatusCode::NO_CONTENT.into_response())
        }),
        ("POST", "/v1/players") => players(&shared).await,
        (method, path) => refuse(StatusCode::NOT_FOUND, format!("there is no {method} {path}")),
    }
}

fn check(
    shared: &SidecarState,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<(), Box<Response>> {
    let headers = Headers::collect(|name| headers.get(name)?.to_str().ok());
    let Some(headers) = headers else {
        return Err(Box::new(refuse(StatusCode::UNAUTHORIZED, "a header of the signature is missing")));
    };
    // Includes the query, if a client adds one: unsigned parts must not have an effect.
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let received = Received { method: method.as_str(), path, body, headers: &headers };
    let settings = &shared.settings;
    let verified = verify(&settings.agent_key, &received, &settings.pod_uid, clock::now(), &mut shared.state().guard);
    verified.map_err(|refused| {
        warn!("refused {method} {path}: {refused}");
        let status = match refused {
            SignatureError::Fenced { .. } | SignatureError::Replayed => StatusCode::CONFLICT,
            SignatureError::Malformed(_) => StatusCode::BAD_REQUEST,
            SignatureError::Signature | SignatureError::Skew { .. } | SignatureError::BeforeStart => {
                StatusCode::UNAUTHORIZED
            }
        };
        Box::new((status, Json(refused.told())).into_response())
    })
}

async fn report(shared: &Arc<SidecarState>) -> Response {
    let task = Arc::clone(shared);
    let report = tokio::task::spawn_blocking(move || {
        // Read before the backups are listed. A backup that ends meanwhile is then still reported as running, not as finished and missing.
        let beside = task.beside_copies();
        let found = VolumeReport::read(&task.volume, task.settings.backups.as_deref())?;
        Ok(task.report(clock::now(), found, beside))
    });
    match report.await.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(report) => Json(report).into_response(),
        Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, format!("the volume cannot be read: {error}")),
    }
}

async fn save(shared: &Arc<SidecarState>, timeout_seconds: u32) -> Saved {
    // Before waiting for the console: a backup may hold it until its own flush is done.
    online_backup::worlds_are_saved(shared);
    let act = shared.desk.act();
    let begun = Instant::now();
    let within = Duration::from_secs(timeout_seconds.min(LONGEST_SAVE).into());
    let answer = {
        let mut console = act.console().await;
        // And a backup that has begun meanwhile. From now on no backup gets the console before this save.
        online_backup::worlds_are_saved(shared);
        console.save_flush(within).await
    };
    let (confirmed, problem) = match answer {
        Ok(words) if responses::says_saved(&words) => (true, None),
        Ok(words) => (false, Some(format!("the server answered `{}`", words.trim()))),
        Err(error) => (false, Some(Chain(&error).to_string())),
    };
    let took_ms = begun.elapsed().as_millis().try_into().unwrap_or(u64::MAX);
    if confirmed {
        shared.note_saved();
        loaded_content::look_again(shared).await;
    }
    Saved { confirmed, took_ms, problem }
}

async fn backup(shared: &Arc<SidecarState>, asked: HotCopy) -> Response {
    match online_backup::begin(shared, asked).await {
        Ok(()) => StatusCode::ACCEPTED.into_response(),
        Err(online_backup::OnlineBackupRefused::Malformed(why)) => refuse(StatusCode::BAD_REQUEST, why),
        Err(online_backup::OnlineBackupRefused::NotNow(why)) => refuse(StatusCode::CONFLICT, why),
        Err(online_backup::OnlineBackupRefused::NotNoted(why)) => refuse(StatusCode::INTERNAL_SERVER_ERROR, why),
    }
}

async fn players(shared: &Arc<SidecarState>) -> Response {
    let act = shared.desk.act();
    let answer = act.console().await.list(LIST).await;
    let players = match answer {
        Ok(Online::Known { count, max: _ }) => {
            shared.state().witness.listed(count);
            if count == 0 { PlayerCount::Nobody } else { PlayerCount::Some { count } }
        }
        Ok(Online::Unknown) | Err(_) => match shared.state().witness.players(clock::now()) {
            // The ping alone never proves that a server is empty.
            PlayerCount::Some { count } => PlayerCount::Some { count },
            PlayerCount::Nobody => PlayerCount::Unknown { since: clock::now() },
            unknown @ PlayerCount::Unknown { .. } => unknown,
        },
    };
    Json(players).into_response()
}

fn with_body<T: DeserializeOwned>(body: &[u8], act: impl FnOnce(T) -> Result<Response, String>) -> Response {
    let done = serde_json::from_slice(body).map_err(|error| error.to_string()).and_then(act);
    done.unwrap_or_else(|error| refuse(StatusCode::BAD_REQUEST, error))
}

fn refuse(status: StatusCode, error: impl Into<String>) -> Response {
    (status, Json(RequestRefusal::because(error))).into_response()
}
