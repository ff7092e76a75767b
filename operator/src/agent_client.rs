//! Edge (writes). Sends the operator's signed requests to the agent in a server's pod.

use std::time::Duration;

use agent_api::signature::{Key, Parts, SKEW_SECONDS, sign};
use agent_api::{
    AgentReport, Announce, CancelAnnouncement, FileSet, OnlineBackupRequest, PORT, PlayerCount, ProtectBackup,
    RequestRefusal, Save, Saved, in_the_chat,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Timeout of a report or a small request. The agent replies at once, so an agent that takes longer counts as
/// unreachable.
pub(crate) const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// Added to the server's own save timeout. It covers the wait for a command that is already running, the opening of the
/// console and the reply. If the operator gave up first, a refused save would look like an unreachable agent, and the
/// operator would request the save again at once.
const SAVE_TIMEOUT_MARGIN: Duration = Duration::from_secs(30);

/// Error of a request to an agent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentError {
    #[error("the agent of pod `{pod}` does not answer")]
    Unreachable {
        pod: String,
        #[source]
        source: reqwest::Error,
    },
    #[error("the agent of pod `{pod}` refused {operation}: {reason}")]
    Refused { pod: String, operation: &'static str, reason: String },
    #[error("the agent of pod `{pod}` cannot do {operation} yet: {reason}")]
    NotReady { pod: String, operation: &'static str, reason: String },
    #[error("the clock of the node of pod `{pod}` is {}", clock_difference(*ahead))]
    ClocksDiffer { pod: String, ahead: i64 },
    #[error("the agent of pod `{pod}` obeys a newer leader of the operator (fence {fence})")]
    Deposed { pod: String, fence: u64 },
    #[error(
        "the agent of pod `{pod}` refuses the fence {fence} of this leader: the leaders before it explain at most {limit}"
    )]
    FenceTooHigh { pod: String, fence: u64, limit: u64 },
    #[error(
        "the agent of pod `{pod}` does not support {operation}: the next restart of the server starts a newer agent"
    )]
    TooOld { pod: String, operation: &'static str },
}

impl AgentError {
    /// The reason and message of a refusal by an agent that is reachable. The text stays the same while the cause does.
    pub(crate) fn refusal(&self) -> Option<(&'static str, String)> {
        match self {
            Self::ClocksDiffer { .. } => Some((
                "ClocksDiffer",
                format!("{self}. At most {SKEW_SECONDS} s are accepted: synchronise both clocks by NTP"),
            )),
            Self::Refused { .. } => Some(("Refused", self.to_string())),
            // The fence of the current leader can be too low: its Lease was recreated and counts from zero.
            Self::Deposed { .. } => Some((
                "FencesDiffer",
                format!(
                    "{self}. If there is none, the Lease of the operator was recreated: delete the pod when no \
                    players are online"
                ),
            )),
            // Somebody wrote the Lease, or the agent was unreachable while the Lease changed its holder very often.
            Self::FenceTooHigh { limit, .. } => Some((
                "FencesDiffer",
                format!(
                    "{self}. If somebody has changed the Lease of the operator, set its `leaseTransitions` to {limit} and \
                    restart the operator. Otherwise delete the pod when no players are online"
                ),
            )),
            Self::Unreachable { .. } | Self::NotReady { .. } | Self::TooOld { .. } => None,
        }
    }
}

/// Clock difference, rounded up to minutes. The exact number of seconds changes with every request.
fn clock_difference(ahead: i64) -> String {
    let direction = if ahead < 0 { "behind" } else { "ahead of" };
    let amount = match ahead.unsigned_abs().div_ceil(60) {
        0 | 1 => "less than a minute".to_owned(),
        minutes => format!("about {minutes} minutes"),
    };
    format!("{amount} {direction} the operator's")
}

/// The agent of one pod, with the key that it shares with the operator.
pub(crate) struct Agent<'a> {
    pub(crate) http: &'a reqwest::Client,
    pub(crate) pod: &'a str,
    pub(crate) address: &'a str,
    pub(crate) pod_uid: &'a str,
    pub(crate) key: &'a Key,
    /// The leader's number, which grows with each leader. An agent refuses requests with a lower fence than it has
    /// seen.
    pub(crate) fence: u64,
}

impl Agent<'_> {
    /// Reads the agent's report.
    pub(crate) async fn report(&self) -> Result<AgentReport, AgentError> {
        self.request_json("a report", reqwest::Method::GET, "/v1/report", &(), REPLY_TIMEOUT).await
    }

    /// Has the agent download the files of this lock to the volume, in the background.
    pub(crate) async fn stage(&self, files: &FileSet) -> Result<(), AgentError> {
        self.post("staging", "/v1/stage", files).await
    }

    /// Announces a restart to the players. An older agent refuses a language or a choice of places that it does not
    /// know. The operator then sends the announcement again in English, and then in the chat only, so that the update
    /// still happens.
    pub(crate) async fn announce(&self, announce: &Announce) -> Result<(), AgentError> {
        let english = scheduler::announcement::into_english(announce.clone());
        let in_the_chat = Announce { short: None, show: in_the_chat(), ..english.clone() };
        let mut sent = announce;
        let mut result = self.post("the announcement", "/v1/announce", sent).await;
        for simpler in [&english, &in_the_chat] {
            if matches!(result, Err(AgentError::Refused { .. })) && simpler != sent {
                result = self.post("the announcement", "/v1/announce", simpler).await;
                sent = simpler;
            }
        }
        result
    }

    /// Ends a countdown whose disruption does not happen.
    pub(crate) async fn cancel_announcement(&self, cancel: &CancelAnnouncement) -> Result<(), AgentError> {
        self.post("the cancelled announcement", "/v1/cancel-announcement", cancel).await
    }

    /// Saves the worlds to disk.
    pub(crate) async fn save(&self, save: &Save) -> Result<Saved, AgentError> {
        let within = Duration::from_secs(u64::from(save.timeout_seconds)) + SAVE_TIMEOUT_MARGIN;
        self.request_json("the save", reqwest::Method::POST, "/v1/save", save, within).await
    }

    /// Counts the players, by the server's own list.
    pub(crate) async fn count_players(&self) -> Result<PlayerCount, AgentError> {
        self.request_json("the player count", reqwest::Method::POST, "/v1/players", &(), REPLY_TIMEOUT).await
    }

    /// Starts an online backup in the background.
    pub(crate) async fn back_up(&self, backup: &OnlineBackupRequest) -> Result<(), AgentError> {
        self.post("an online backup", "/v1/backup", backup).await
    }

    /// Excludes this backup from the pruning that a running backup does. An older agent does not know of the request
    /// and prunes as before.
    pub(crate) async fn exclude_from_pruning(&self, backup: &ProtectBackup) -> Result<(), AgentError> {
        match self.post("the protected backup", "/v1/protect-backup", backup).await {
            Err(AgentError::TooOld { .. }) => Ok(()),
            result => result,
        }
    }

    async fn request_json<B: Serialize, A: DeserializeOwned>(
        &self,
        operation: &'static str,
        method: reqwest::Method,
        path: &str,
        body: &B,
        within: Duration,
    ) -> Result<A, AgentError> {
        let answer = self.send(operation, method, path, body, within).await?;
        answer.json().await.map_err(|source| AgentError::Unreachable { pod: self.pod.to_owned(), source })
    }

    async fn post<B: Serialize>(&self, operation: &'static str, path: &str, body: &B) -> Result<(), AgentError> {
        self.send(operation, reqwest::Method::POST, path, body, REPLY_TIMEOUT).await.map(drop)
    }

    async fn send<B: Serialize>(
        &self,
        operation: &'static str,
        method: reqwest::Method,
        path: &str,
        body: &B,
        within: Duration,
    ) -> Result<reqwest::Response, AgentError> {
        let body = if method == reqwest::Method::GET {
            Vec::new()
        } else {
            serde_json::to_vec(body).expect("protocol types serialise")
        };
        let nonce = nonce();
        let headers = sign(
            self.key,
            &Parts {
                method: method.as_str(),
                path,
                body: &body,
                pod_uid: self.pod_uid,
                at: crate::clock::now(),
                nonce: &nonce,
                fence: self.fence,
            },
        );
        let mut request = self
            .http
            .request(method, format!("http://{}:{PORT}{path}", self.address))
            .header("content-type", "application/json")
            .timeout(within)
            .body(body);
        for (name, value) in headers.pairs() {
            request = request.header(name, value);
        }
        let unreachable = |source| AgentError::Unreachable { pod: self.pod.to_owned(), source };
        let answer = request.send().await.map_err(unreachable)?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status();
        if status == reqwest::StatusCode::NOT_FOUND {
            return Err(AgentError::TooOld { pod: self.pod.to_owned(), operation });
        }
        let refusal = answer.json().await.unwrap_or_else(|_| RequestRefusal::new(format!("HTTP {status}")));
        Err(error_from_refusal(self.pod.to_owned(), self.fence, operation, refusal))
    }
}

/// Maps a reply that is not 2xx to an error of the leader with the fence `own`.
fn error_from_refusal(pod: String, own: u64, operation: &'static str, refusal: RequestRefusal) -> AgentError {
    match refusal {
        RequestRefusal { fence: Some(limit), .. } if limit < own => AgentError::FenceTooHigh { pod, fence: own, limit },
        RequestRefusal { fence: Some(fence), .. } => AgentError::Deposed { pod, fence },
        RequestRefusal { clock_ahead: Some(ahead), .. } => AgentError::ClocksDiffer { pod, ahead },
        RequestRefusal { error: reason, not_now: true, .. } => AgentError::NotReady { pod, operation, reason },
        RequestRefusal { error: reason, clock_ahead: None, fence: None, not_now: false } => {
            AgentError::Refused { pod, operation, reason }
        }
    }
}

/// Returns a new nonce. An agent accepts each nonce once.
fn nonce() -> String {
    crate::random_secret::random_hex::<16>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_refusal_not_now_is_retryable() {
        let error_for = |json: &str| {
            error_from_refusal("lobby-0".to_owned(), 7, "the announcement", serde_json::from_str(json).unwrap())
        };
        assert!(matches!(error_for(r#"{"error": "a flush", "not_now": true}"#), AgentError::NotReady { .. }));
        assert!(
            matches!(error_for(r#"{"error": "no such place"}"#), AgentError::Refused { .. }),
            "older agents send no `not_now`"
        );
        assert!(matches!(error_for(r#"{"error": "another", "fence": 8}"#), AgentError::Deposed { fence: 8, .. }));
    }

    #[test]
    fn fence_refusal_names_way_out_for_both_directions() {
        let refusal_of_fence = |own, fence| {
            let refusal = RequestRefusal { fence: Some(fence), ..RequestRefusal::new("fence") };
            error_from_refusal("lobby-0".to_owned(), own, "a report", refusal).refusal().unwrap()
        };
        let (reason, message) = refusal_of_fence(3, 8);
        assert_eq!(reason, "FencesDiffer");
        assert!(message.contains("newer leader") && message.contains("delete the pod when no"), "{message}");
        let (reason, message) = refusal_of_fence(2_000_000, 1_012);
        assert_eq!(reason, "FencesDiffer");
        assert!(message.contains("set its `leaseTransitions` to 1012 and restart the operator"), "{message}");
    }
}
