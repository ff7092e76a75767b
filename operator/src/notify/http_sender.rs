//! Edge (writes). One message to one webhook.

use std::error::Error;
use std::iter;
use std::time::Duration;

use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, Url, redirect};
use resolver::download::{NotPublic, PublicOnly};
use resolver::upstream::{StartError, client};
use serde_json::Value;

use super::delivery_error::DeliveryError;
use super::webhook_url::{ClientKind, Webhook};

/// From the first byte to the answer. Shorter than what is left of the Lease when it was just seen to be ours.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// A try that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpFailure {
    pub(crate) fault: DeliveryError,
    /// `Retry-After`.
    pub(crate) asked: Option<Duration>,
}

impl From<DeliveryError> for HttpFailure {
    fn from(fault: DeliveryError) -> Self {
        Self { fault, asked: None }
    }
}

/// Posts to webhooks, by the rules of downloads: https and public addresses, or what an admin wrote.
pub(crate) struct HttpSender {
    public: Client,
    trusted: Client,
    /// What an admin allows besides; the path does not matter.
    origins: Vec<Url>,
    within: Duration,
}

impl HttpSender {
    pub(crate) fn new(origins: Vec<Url>) -> Result<Self, StartError> {
        Self::with_deadline(origins, ANSWER_WITHIN)
    }

    /// With another deadline than the usual one.
    pub(crate) fn with_deadline(origins: Vec<Url>, within: Duration) -> Result<Self, StartError> {
        let client = |public: bool| {
            client(None, |builder| {
                // Nobody has checked where a redirect leads, and a message that went elsewhere was not told.
                let builder = builder.redirect(redirect::Policy::none());
                // A proxy would look names up by itself, and nobody would check what comes of it.
                if public { builder.dns_resolver(PublicOnly).https_only(true).no_proxy() } else { builder }
            })
        };
        Ok(Self { public: client(true)?, trusted: client(false)?, origins, within })
    }

    /// Whether the address may be asked at all.
    pub(crate) fn check(&self, webhook: &Webhook) -> Result<ClientKind, DeliveryError> {
        webhook.reach(&self.origins)
    }

    /// Sends one message. The answer's body is not read: nobody needs it, and it may be anything.
    pub(crate) async fn send(&self, webhook: &Webhook, body: &Value) -> Result<(), HttpFailure> {
        let client = match self.check(webhook)? {
            ClientKind::Public => &self.public,
            ClientKind::Trusted => &self.trusted,
        };
        let request = client.post(webhook.url().clone()).timeout(self.within).json(body);
        let response = request.send().await.map_err(|error| fault_of(&error))?;
        let status = response.status();
        if status.is_success() {
            Ok(())
        } else if status.is_redirection() {
            Err(DeliveryError::Moved(status.as_u16()).into())
        } else {
            Err(HttpFailure { fault: DeliveryError::Status(status.as_u16()), asked: retry_after(response.headers()) })
        }
    }
}

/// What went wrong with a connection, without its words: they hold the address.
fn fault_of(error: &reqwest::Error) -> DeliveryError {
    let mut causes = iter::successors(Some(error as &(dyn Error + 'static)), |&error| error.source());
    if causes.any(|cause| cause.downcast_ref::<NotPublic>().is_some()) {
        DeliveryError::Inside
    } else if error.is_timeout() {
        DeliveryError::TimedOut
    } else {
        DeliveryError::Unreachable
    }
}

/// Seconds, with a fraction perhaps, as Discord and Slack write them. A date is not understood, and the usual pause serves.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: f64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}
