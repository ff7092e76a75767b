//! Edge (writes). Sends the operator's signed requests to the agent in a server's pod.

use std::time::Duration;

use scheduler::protocol::signature::{Key, Parts, SKEW_SECONDS, sign};
use scheduler::protocol::{
    AgentReport, Announce, CancelAnnouncement, FileSet, HotCopy, KeepCopy, PORT, PlayerCount, RequestRefusal, Save,
    Saved, in_the_chat,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Timeout of a report or a small request. The agent replies at once, so an agent that takes longer counts as
/// unreachable.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Added to the server's own save timeout. It covers the wait for a command that is already running, the opening of the
/// console and the reply. If the operator gave up first, a refused save would look like an unreachable agent, and the
/// operator would request the save again at once.
const AROUND_A_SAVE: Duration = Duration::from_secs(30);

/// Error of a request to an agent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentError {
    #[error("the agent of pod `{pod}` does not answer")]
    Silent {
        pod: String,
        #[source]
        source: reqwest::Error,
    },
    #[error("the agent of pod `{pod}` refused {what}: {why}")]
    Refused { pod: String, what: &'static str, why: String },
    #[error("the agent of pod `{pod}` cannot do {what} yet: {why}")]
    NotNow { pod: String, what: &'static str, why: String },
    #[error("the clock of the node of pod `{pod}` is {}", in_words(*ahead))]
    ClocksDiffer { pod: String, ahead: i64 },
    #[error("the agent of pod `{pod}` obeys an operator that led after this one (fence {by})")]
    Deposed { pod: String, by: u64 },
    #[error("the agent of pod `{pod}` does not know of {what}: a newer one comes with the next restart of the server")]
    TooOld { pod: String, what: &'static str },
}

impl AgentError {
    /// The reason and message of a refusal by an agent that is reachable. The text stays the same while the cause does.
    pub(crate) fn refusal(&self) -> Option<(&'static str, String)> {
        match self {
            Self::ClocksDiffer { .. } => Some((
                "ClocksDiffer",
                format!("{self}, at most {SKEW_SECONDS} s are accepted: have both keep time by NTP"),
            )),
            Self::Refused { .. } => Some(("Refused", self.to_string())),
            // The fence of the current leader can be too low: its Lease was recreated and counts from zero.
            Self::Deposed { .. } => Some((
                "Refused",
                format!(
                    "{self}; if there is none, the Lease of the operator was made anew: delete the pod when nobody is on"
                ),
            )),
            Self::Silent { .. } | Self::NotNow { .. } | Self::TooOld { .. } => None,
        }
    }
}

/// Clock difference, rounded up to minutes. The exact number of seconds changes with every request.
fn in_words(ahead: i64) -> String {
    let way = if ahead < 0 { "behind" } else { "ahead of" };
    let by = match ahead.unsigned_abs().div_ceil(60) {
        0 | 1 => "less than a minute".to_owned(),
        minutes => format!("about {minutes} minutes"),
    };
    format!("{by} {way} the operator's")
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
        self.ask("a report", reqwest::Method::GET, "/v1/report", &(), ANSWER_WITHIN).await
    }

    /// Has the agent download the files of this lock to the volume, in the background.
    pub(crate) async fn stage(&self, files: &FileSet) -> Result<(), AgentError> {
        self.tell("staging", "/v1/stage", files).await
    }

    /// Announces a restart to the players. An older agent refuses a language or a choice of places that it does not
    /// know. The operator then sends the announcement again in English, and then in the chat only, so that the update
    /// still happens.
    pub(crate) async fn announce(&self, announce: &Announce) -> Result<(), AgentError> {
        let english = announce.clone().in_english();
        let in_the_chat = Announce { short: None, show: in_the_chat(), ..english.clone() };
        let mut last = announce;
        let mut told = self.tell("the announcement", "/v1/announce", last).await;
        for simpler in [&english, &in_the_chat] {
            if matches!(told, Err(AgentError::Refused { .. })) && simpler != last {
                told = self.tell("the announcement", "/v1/announce", simpler).await;
                last = simpler;
            }
        }
        told
    }

    /// Ends a countdown whose disruption does not happen.
    pub(crate) async fn call_off(&self, call_off: &CancelAnnouncement) -> Result<(), AgentError> {
        self.tell("the end of a countdown", "/v1/call-off", call_off).await
    }

    /// Saves the worlds to disk.
    pub(crate) async fn save(&self, save: &Save) -> Result<Saved, AgentError> {
        let within = Duration::from_secs(u64::from(save.timeout_seconds)) + AROUND_A_SAVE;
        self.ask("the save", reqwest::Method::POST, "/v1/save", save, within).await
    }

    /// Counts the players, by the server's own list.
    pub(crate) async fn players(&self) -> Result<PlayerCount, AgentError> {
        self.ask("the players", reqwest::Method::POST, "/v1/players", &(), ANSWER_WITHIN).await
    }

    /// Starts an online backup in the background.
    pub(crate) async fn back_up(&self, copy: &HotCopy) -> Result<(), AgentError> {
        self.tell("a copy of the running server", "/v1/backup", copy).await
    }

    /// Excludes this backup from the pruning that a running backup does. An older agent does not know of the request
    /// and prunes as before.
    pub(crate) async fn keep(&self, kept: &KeepCopy) -> Result<(), AgentError> {
        match self.tell("a copy that stays", "/v1/keep", kept).await {
            Err(AgentError::TooOld { .. }) => Ok(()),
            told => told,
        }
    }

    async fn ask<B: Serialize, A: DeserializeOwned>(
        &self,
        what: &'static str,
        method: reqwest::Method,
        path: &str,
        body: &B,
        within: Duration,
    ) -> Result<A, AgentError> {
        let answer = self.send(what, method, path, body, within).await?;
        answer.json().await.map_err(|source| AgentError::Silent { pod: self.pod.to_owned(), source })
    }

    async fn tell<B: Serialize>(&self, what: &'static str, path: &str, body: &B) -> Result<(), AgentError> {
        self.send(what, reqwest::Method::POST, path, body, ANSWER_WITHIN).await.map(drop)
    }

    async fn send<B: Serialize>(
        &self,
        what: &'static str,
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
        let silent = |source| AgentError::Silent { pod: self.pod.to_owned(), source };
        let answer = request.send().await.map_err(silent)?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status();
        if status == reqwest::StatusCode::NOT_FOUND {
            return Err(AgentError::TooOld { pod: self.pod.to_owned(), what });
        }
        let refusal = answer.json().await.unwrap_or_else(|_| RequestRefusal::because(format!("HTTP {status}")));
        Err(refused(self.pod.to_owned(), what, refusal))
    }
}

/// Maps a reply that is not 2xx to an error.
fn refused(pod: String, what: &'static str, refusal: RequestRefusal) -> AgentError {
    match refusal {
        RequestRefusal { fence: Some(by), .. } => AgentError::Deposed { pod, by },
        RequestRefusal { clock_ahead: Some(ahead), .. } => AgentError::ClocksDiffer { pod, ahead },
        RequestRefusal { error: why, not_now: true, .. } => AgentError::NotNow { pod, what, why },
        RequestRefusal { error: why, clock_ahead: None, fence: None, not_now: false } => {
            AgentError::Refused { pod, what, why }
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
        let told = |json: &str| refused("lobby-0".to_owned(), "the announcement", serde_json::from_str(json).unwrap());
        assert!(matches!(told(r#"{"error": "a flush", "not_now": true}"#), AgentError::NotNow { .. }));
        assert!(
            matches!(told(r#"{"error": "no such place"}"#), AgentError::Refused { .. }),
            "as agents from before say it"
        );
        assert!(matches!(told(r#"{"error": "another", "fence": 8}"#), AgentError::Deposed { by: 8, .. }));
    }
}
