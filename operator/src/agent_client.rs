//! Edge (writes). What the operator asks of the agent in a server's pod; every request is signed.

use std::time::Duration;

use scheduler::protocol::signature::{Key, Parts, SKEW_SECONDS, sign};
use scheduler::protocol::{
    AgentReport, Announce, CancelAnnouncement, FileSet, HotCopy, KeepCopy, PORT, PlayerCount, RequestRefusal, Save,
    Saved, in_the_chat,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A report or a small request is answered at once; a longer silence is "does not answer".
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// What a save takes besides the server's own time: a command that is under way is waited for, the console is opened, the answer comes back. Given
/// up sooner than the agent does, a save that was refused would be a silence, and asked for again at once.
const AROUND_A_SAVE: Duration = Duration::from_secs(30);

/// Why an agent could not be asked.
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
    /// Why an agent that is there does nothing that it is asked, in words that stay the same while the reason does.
    pub(crate) fn refusal(&self) -> Option<(&'static str, String)> {
        match self {
            Self::ClocksDiffer { .. } => Some((
                "ClocksDiffer",
                format!("{self}, at most {SKEW_SECONDS} s are accepted: have both keep time by NTP"),
            )),
            Self::Refused { .. } => Some(("Refused", self.to_string())),
            // Of one that leads: its Lease was made anew, and counts from the beginning.
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

/// To the minute: a clock is never off by the same second twice.
fn in_words(ahead: i64) -> String {
    let way = if ahead < 0 { "behind" } else { "ahead of" };
    let by = match ahead.unsigned_abs().div_ceil(60) {
        0 | 1 => "less than a minute".to_owned(),
        minutes => format!("about {minutes} minutes"),
    };
    format!("{by} {way} the operator's")
}

/// One agent: the pod it lives in, and the key it shares with us.
pub(crate) struct Agent<'a> {
    pub(crate) http: &'a reqwest::Client,
    pub(crate) pod: &'a str,
    pub(crate) address: &'a str,
    pub(crate) pod_uid: &'a str,
    pub(crate) key: &'a Key,
    /// Grows with each leader: an agent refuses one lower than it has seen.
    pub(crate) fence: u64,
}

impl Agent<'_> {
    /// What it sees.
    pub(crate) async fn report(&self) -> Result<AgentReport, AgentError> {
        self.ask("a report", reqwest::Method::GET, "/v1/report", &(), ANSWER_WITHIN).await
    }

    /// Bring the files of this lock to the volume, in the background.
    pub(crate) async fn stage(&self, files: &FileSet) -> Result<(), AgentError> {
        self.tell("staging", "/v1/stage", files).await
    }

    /// Tell the players. An agent from before there were languages, or a choice of places, refuses what it does not know: then it is
    /// English, or the chat, rather than no update.
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

    /// End a countdown whose act does not come.
    pub(crate) async fn call_off(&self, call_off: &CancelAnnouncement) -> Result<(), AgentError> {
        self.tell("the end of a countdown", "/v1/call-off", call_off).await
    }

    /// Bring the world to the disk.
    pub(crate) async fn save(&self, save: &Save) -> Result<Saved, AgentError> {
        let within = Duration::from_secs(u64::from(save.timeout_seconds)) + AROUND_A_SAVE;
        self.ask("the save", reqwest::Method::POST, "/v1/save", save, within).await
    }

    /// Who is on, by the server's own list.
    pub(crate) async fn players(&self) -> Result<PlayerCount, AgentError> {
        self.ask("the players", reqwest::Method::POST, "/v1/players", &(), ANSWER_WITHIN).await
    }

    /// Take a copy of the running server, in the background.
    pub(crate) async fn back_up(&self, copy: &HotCopy) -> Result<(), AgentError> {
        self.tell("a copy of the running server", "/v1/backup", copy).await
    }

    /// Let the copy under way push this one out for none. An agent that does not know of that took its copies as ever.
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

/// What an answer that is not 2xx means.
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

/// Never the same twice: an agent accepts each once.
fn nonce() -> String {
    crate::random_secret::random_hex::<16>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_to_ask_again_in_a_moment_is_not_told_that_it_was_refused() {
        let told = |json: &str| refused("lobby-0".to_owned(), "the announcement", serde_json::from_str(json).unwrap());
        assert!(matches!(told(r#"{"error": "a flush", "not_now": true}"#), AgentError::NotNow { .. }));
        assert!(
            matches!(told(r#"{"error": "no such place"}"#), AgentError::Refused { .. }),
            "as agents from before say it"
        );
        assert!(matches!(told(r#"{"error": "another", "fence": 8}"#), AgentError::Deposed { by: 8, .. }));
    }
}
