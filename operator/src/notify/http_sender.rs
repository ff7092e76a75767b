//! Edge (writes). Posts one message to one webhook.

use std::error::Error;
use std::iter;
use std::time::Duration;

use artifacts::download::{NotPublic, PublicOnly};
use artifacts::http_client::{ClientError, client};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, Url, redirect};
use serde_json::Value;

use super::delivery_error::DeliveryError;
use super::webhook_url::{ClientKind, Webhook};

/// Timeout of a whole request. It is shorter than the rest of a Lease that was just confirmed.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// A request that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpFailure {
    pub(crate) error: DeliveryError,
    /// `Retry-After`.
    pub(crate) retry_after: Option<Duration>,
}

impl From<DeliveryError> for HttpFailure {
    fn from(error: DeliveryError) -> Self {
        Self { error, retry_after: None }
    }
}

/// Posts to webhooks by the rules of downloads: https to public addresses, or the origins that an admin configured.
pub(crate) struct HttpSender {
    public: Client,
    trusted: Client,
    /// The origins that an admin allows in addition. The path does not matter.
    origins: Vec<Url>,
    timeout: Duration,
}

impl HttpSender {
    pub(crate) fn new(origins: Vec<Url>) -> Result<Self, ClientError> {
        Self::with_timeout(origins, REQUEST_TIMEOUT)
    }

    /// With another timeout than the default.
    pub(crate) fn with_timeout(origins: Vec<Url>, timeout: Duration) -> Result<Self, ClientError> {
        let client = |public: bool| {
            client(None, |builder| {
                // A redirect's target is not checked, and a message to another address is not delivered.
                let builder = builder.redirect(redirect::Policy::none());
                // A proxy would resolve names itself, and the result would not be checked.
                if public { builder.dns_resolver(PublicOnly).https_only(true).no_proxy() } else { builder }
            })
        };
        Ok(Self { public: client(true)?, trusted: client(false)?, origins, timeout })
    }

    /// Whether a message may be sent to the address at all.
    pub(crate) fn check(&self, webhook: &Webhook) -> Result<ClientKind, DeliveryError> {
        webhook.client_kind(&self.origins)
    }

    /// Sends one message. It ignores the body of the reply, which can be anything.
    pub(crate) async fn send(&self, webhook: &Webhook, body: &Value) -> Result<(), HttpFailure> {
        let client = match self.check(webhook)? {
            ClientKind::Public => &self.public,
            ClientKind::Trusted => &self.trusted,
        };
        let request = client.post(webhook.url().clone()).timeout(self.timeout).json(body);
        let response = request.send().await.map_err(|error| connection_error(&error))?;
        let status = response.status();
        if status.is_success() {
            Ok(())
        } else if status.is_redirection() {
            Err(DeliveryError::Redirected(status.as_u16()).into())
        } else {
            Err(HttpFailure {
                error: DeliveryError::Status(status.as_u16()),
                retry_after: retry_after(response.headers()),
            })
        }
    }
}

/// The kind of a connection error, without its text, which contains the address.
fn connection_error(error: &reqwest::Error) -> DeliveryError {
    let mut causes = iter::successors(Some(error as &(dyn Error + 'static)), |&error| error.source());
    if causes.any(|cause| cause.downcast_ref::<NotPublic>().is_some()) {
        DeliveryError::PrivateAddress
    } else if error.is_timeout() {
        DeliveryError::TimedOut
    } else {
        DeliveryError::Unreachable
    }
}

/// Seconds, possibly with a fraction, as Discord and Slack write them. A date gives `None`, and the usual pause
/// applies.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: f64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}
