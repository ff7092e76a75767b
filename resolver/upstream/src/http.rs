//! Edge (reads). Sends one request to an upstream, with rate limit, size limit, timeout and retries.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use artifacts::http_client::{ClientError, client};
use jiff::{SignedDuration, Timestamp};
use reqwest::header::{ACCEPT, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode, Url};
use serde::de::DeserializeOwned;

use super::disk_cache::StoredPage;
use super::page_cache::Fetched;
use super::rate_limit::RateLimiter;
use super::{FetchError, Upstream};

/// The largest body that is read: forty times the largest known list (`ViaVersion`'s with change logs, 1.5 MB).
const MAX_BODY_SIZE: u64 = 64 << 20;

/// From the first byte sent to the last byte read, for each try.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of redirects. The APIs use none, but a mirror may.
const MAX_REDIRECTS: usize = 5;

/// Bytes of an unexpected body that go into an error.
const EXCERPT_LENGTH: usize = 160;

/// How often and after which pauses a failed request is retried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Requests in all for one page, at least 1.
    pub tries: u32,
    /// The pause before the second try. It doubles with each further try, and up to half of it is added at random.
    pub first_pause: Duration,
    /// The longest pause in one pass. An upstream that demands a longer one gets no request until it is over.
    pub longest_pause: Duration,
    /// Seed of the random part. Replicas with different seeds do not retry in step.
    pub seed: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            tries: 3,
            first_pause: Duration::from_millis(500),
            // A longer pause delays every server. The cached page is good enough until the next pass.
            longest_pause: Duration::from_secs(5),
            seed: 0,
        }
    }
}

impl RetryPolicy {
    /// The pause before try number `next` (2, 3, …). `draw` varies the pause between requests with the same number.
    fn pause(&self, next: u32, draw: u64) -> Duration {
        let doubled = self.first_pause.saturating_mul(1 << next.saturating_sub(2).min(16)).min(self.longest_pause);
        // SplitMix64's mixer: any two draws differ in about half of the bits.
        let mut mixed = self.seed.wrapping_add(draw.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let part = u32::try_from((mixed ^ (mixed >> 31)) >> 40).expect("24 bits fit into a u32");
        doubled + doubled / 2 * part / (1 << 24)
    }
}

/// Response of an upstream.
pub(super) enum HttpResponse {
    /// 304: the cached page is unchanged.
    NotModified,
    /// A body.
    New {
        /// Its bytes.
        body: Vec<u8>,
        /// Its `ETag`, for the next request.
        etag: Option<String>,
    },
}

/// What a 404 means for a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Existence {
    /// The page exists, as another page or an earlier response says. A 404 is a fault of the upstream, and retried.
    Known,
    /// A 404 is an answer.
    Unknown,
}

/// A request.
enum HttpRequest<'a> {
    /// A page, with the `ETag` of the cached page, if there is one.
    Page { etag: Option<&'a str>, existence: Existence },
    /// A JSON body.
    Post { body: Vec<u8> },
}

/// The HTTP client with the state of each upstream.
pub(super) struct Http {
    /// `None` means offline: no request is ever sent.
    client: Option<HttpClient>,
    retry_policy: RetryPolicy,
    hosts: BTreeMap<Upstream, HostState>,
}

/// Creates the HTTP client for the first request, because reading the CA certificates takes longer than an answer from
/// the cache.
struct HttpClient {
    contact: Option<String>,
    client: OnceLock<Client>,
}

impl HttpClient {
    fn client(&self) -> Result<&Client, ClientError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let made = client(self.contact.as_deref(), |builder| {
            builder
                .default_headers(HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]))
                .timeout(TIMEOUT)
                .redirect(Policy::custom(|attempt| {
                    let downgraded = attempt.url().scheme() == "http"
                        && attempt.previous().iter().any(|previous| previous.scheme() == "https");
                    if attempt.previous().len() > MAX_REDIRECTS || downgraded {
                        attempt.stop()
                    } else {
                        attempt.follow()
                    }
                }))
        })?;
        Ok(self.client.get_or_init(|| made))
    }
}

/// State of one upstream.
struct HostState {
    rate_limiter: RateLimiter,
    requests: AtomicU64,
    paused_until: Mutex<Option<Timestamp>>,
}

impl Http {
    pub(super) fn new(contact: Option<&str>, retry_policy: RetryPolicy) -> Self {
        let http_client = HttpClient { contact: contact.map(str::to_owned), client: OnceLock::new() };
        Self { client: Some(http_client), retry_policy, hosts: host_states() }
    }

    /// A client that sends no requests.
    pub(super) fn offline() -> Self {
        Self { client: None, retry_policy: RetryPolicy::default(), hosts: host_states() }
    }

    pub(super) fn is_offline(&self) -> bool {
        self.client.is_none()
    }

    /// Requests sent so far, retries included.
    pub(super) fn requests(&self) -> BTreeMap<Upstream, u64> {
        self.hosts.iter().map(|(upstream, host)| (*upstream, host.requests.load(Ordering::Relaxed))).collect()
    }

    /// Reads one page. `etag` is that of the cached page, if there is one.
    pub(super) async fn get(
        &self,
        upstream: Upstream,
        url: &Url,
        existence: Existence,
        etag: Option<&str>,
        now: Timestamp,
    ) -> Result<HttpResponse, FetchError> {
        self.send(upstream, url, HttpRequest::Page { etag, existence }, now).await
    }

    /// Reads one page again, unless it is unchanged. A page that is stored exists.
    pub(super) async fn refresh<T>(
        &self,
        upstream: Upstream,
        url: &Url,
        existence: Existence,
        stored: Option<StoredPage<T>>,
        now: Timestamp,
        read: impl FnOnce(&[u8]) -> Result<T, FetchError>,
    ) -> Result<Fetched<T>, FetchError> {
        let etag = stored.as_ref().and_then(|stored| stored.stamp.etag.as_deref());
        let existence = if stored.is_some() { Existence::Known } else { existence };
        match self.get(upstream, url, existence, etag, now).await? {
            HttpResponse::NotModified => Ok(Fetched::NotModified),
            HttpResponse::New { body, etag } => Ok(Fetched::New { body: read(&body)?, etag }),
        }
    }

    /// Sends a query that is too long for a URL. It changes no data at the upstream, so it is retried like a page.
    pub(super) async fn post(
        &self,
        upstream: Upstream,
        url: &Url,
        body: Vec<u8>,
        now: Timestamp,
    ) -> Result<Vec<u8>, FetchError> {
        match self.send(upstream, url, HttpRequest::Post { body }, now).await? {
            HttpResponse::New { body, etag: _ } => Ok(body),
            HttpResponse::NotModified => unreachable!("the request was not conditional"),
        }
    }

    async fn send(
        &self,
        upstream: Upstream,
        url: &Url,
        query: HttpRequest<'_>,
        now: Timestamp,
    ) -> Result<HttpResponse, FetchError> {
        let Some(http_client) = &self.client else {
            return Err(FetchError::Offline { upstream, url: url.to_string() });
        };
        let client = http_client.client().map_err(|error| FetchError::Unreachable {
            upstream,
            url: url.to_string(),
            source: error.into_source(),
        })?;
        let host = self.hosts.get(&upstream).expect("`hosts` contains every upstream");
        let mut tried = 0;
        loop {
            if let Some(until) = host.active_pause(now) {
                return Err(FetchError::Paused { upstream, until });
            }
            host.rate_limiter.wait().await;
            let draw = host.requests.fetch_add(1, Ordering::Relaxed);
            tried += 1;
            let failed = match send_once(client, upstream, url, &query).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            let requested_pause = failed.wait.map(|wait| wait.from(now)).filter(|wait| !wait.is_zero());
            if let Some(wait) = requested_pause
                && wait > self.retry_policy.longest_pause
            {
                let until =
                    now.saturating_add(SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX)).unwrap_or(now);
                tracing::info!(%upstream, %until, "the upstream asked for a pause");
                host.pause_until(until);
                return Err(FetchError::Paused { upstream, until });
            }
            if !failed.retryable || tried >= self.retry_policy.tries {
                return Err(failed.error);
            }
            let pause = self.retry_policy.pause(tried + 1, draw).max(requested_pause.unwrap_or_default());
            tracing::debug!(%upstream, %url, ?pause, error = %super::format_chain(&failed.error), "trying again");
            tokio::time::sleep(pause).await;
        }
    }
}

impl HostState {
    fn active_pause(&self, now: Timestamp) -> Option<Timestamp> {
        self.paused_until.lock().unwrap_or_else(PoisonError::into_inner).filter(|until| now < *until)
    }

    fn pause_until(&self, until: Timestamp) {
        *self.paused_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
    }
}

fn host_states() -> BTreeMap<Upstream, HostState> {
    let host = |upstream| HostState {
        rate_limiter: RateLimiter::new(upstream),
        requests: AtomicU64::new(0),
        paused_until: Mutex::new(None),
    };
    Upstream::ALL.into_iter().map(|upstream| (upstream, host(upstream))).collect()
}

/// A failed try.
struct FailedRequest {
    error: FetchError,
    /// Whether the same request may succeed a moment later.
    retryable: bool,
    /// The pause that the upstream demands.
    wait: Option<RetryWait>,
}

/// A pause in the format of the upstreams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RetryWait {
    /// `Retry-After: 120`
    For(Duration),
    /// `Retry-After: <date>`, and Docker Hub's `X-Retry-After: <unix seconds>`.
    Until(Timestamp),
}

impl RetryWait {
    fn from(self, now: Timestamp) -> Duration {
        match self {
            Self::For(duration) => duration,
            Self::Until(instant) => instant.duration_since(now).try_into().unwrap_or_default(),
        }
    }

    fn read(headers: &HeaderMap) -> Option<Self> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
        if let Some(after) = text(RETRY_AFTER.as_str()) {
            return match after.parse() {
                Ok(seconds) => Some(Self::For(Duration::from_secs(seconds))),
                Err(_) => jiff::fmt::rfc2822::parse(after).ok().map(|date| Self::Until(date.timestamp())),
            };
        }
        text("x-retry-after")?.parse().ok().and_then(|seconds| Timestamp::from_second(seconds).ok()).map(Self::Until)
    }
}

async fn send_once(
    client: &Client,
    upstream: Upstream,
    url: &Url,
    query: &HttpRequest<'_>,
) -> Result<HttpResponse, FailedRequest> {
    let broken = |source: reqwest::Error| FailedRequest {
        // The error contains the URL already.
        error: FetchError::Unreachable { upstream, url: url.to_string(), source: source.without_url() },
        retryable: true,
        wait: None,
    };
    let (request, conditional) = match query {
        HttpRequest::Page { etag: None, existence: _ } => (client.get(url.clone()), false),
        HttpRequest::Page { etag: Some(etag), existence: _ } => {
            (client.get(url.clone()).header(IF_NONE_MATCH, *etag), true)
        }
        HttpRequest::Post { body } => {
            (client.post(url.clone()).header(CONTENT_TYPE, "application/json").body(body.clone()), false)
        }
    };
    let mut response = request.send().await.map_err(broken)?;
    let status = response.status();
    if status == StatusCode::NOT_MODIFIED && conditional {
        return Ok(HttpResponse::NotModified);
    }
    let wait = RetryWait::read(response.headers());
    let etag = response.headers().get(ETAG).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let too_large = || FailedRequest {
        error: FetchError::TooLarge { upstream, url: url.to_string(), limit: MAX_BODY_SIZE },
        retryable: false,
        wait: None,
    };
    if response.content_length().is_some_and(|length| length > MAX_BODY_SIZE) {
        return Err(too_large());
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        if (body.len() + chunk.len()) as u64 > MAX_BODY_SIZE {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
        if !status.is_success() && body.len() > EXCERPT_LENGTH {
            break;
        }
    }
    if status.is_success() {
        return Ok(HttpResponse::New { body, etag });
    }
    let exists = matches!(query, HttpRequest::Page { existence: Existence::Known, .. });
    let again = status.is_server_error()
        || status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::REQUEST_TIMEOUT
        || (status == StatusCode::NOT_FOUND && exists);
    let excerpt = excerpt(&body);
    Err(FailedRequest {
        error: FetchError::Status { upstream, url: url.to_string(), status: status.as_u16(), excerpt },
        retryable: again,
        wait,
    })
}

/// The beginning of a body, on one line. An HTML page, for example of a proxy, is replaced by a description.
fn excerpt(body: &[u8]) -> String {
    if body.trim_ascii_start().starts_with(b"<") {
        return "an HTML page, as from a proxy in front of it".to_owned();
    }
    let start = String::from_utf8_lossy(&body[..body.len().min(EXCERPT_LENGTH)]);
    let text = start.split_whitespace().collect::<Vec<_>>().join(" ");
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    if text.is_empty() { "an empty body".to_owned() } else { text }
}

/// Parses a body as a response of the API.
pub(super) fn parse<T: DeserializeOwned>(upstream: Upstream, url: &Url, body: &[u8]) -> Result<T, FetchError> {
    serde_json::from_slice(body).map_err(|source| FetchError::Unreadable {
        upstream,
        url: url.to_string(),
        excerpt: excerpt(body),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(name: &'static str, value: &str) -> Option<RetryWait> {
        let name = reqwest::header::HeaderName::from_static(name);
        RetryWait::read(&HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())]))
    }

    #[test]
    fn retry_after_is_read_in_three_formats() {
        let until = |text: &str| Some(RetryWait::Until(text.parse().unwrap()));
        assert_eq!(wait("retry-after", "121"), Some(RetryWait::For(Duration::from_secs(121))));
        assert_eq!(wait("retry-after", "Wed, 21 Jan 2026 12:00:00 GMT"), until("2026-01-21T12:00:00Z"));
        assert_eq!(wait("x-retry-after", "1768996800"), until("2026-01-21T12:00:00Z"));
        assert_eq!(wait("retry-after", "soon"), None);
    }

    #[test]
    fn retry_after_in_past_is_no_pause() {
        let past = RetryWait::Until("2026-01-21T12:00:00Z".parse().unwrap());
        assert_eq!(past.from("2026-01-21T12:00:01Z".parse().unwrap()), Duration::ZERO);
    }

    #[test]
    fn retry_pauses_double_within_bounds_and_vary_by_seed() {
        let patience = RetryPolicy {
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(3),
            tries: 9,
            seed: 7,
        };
        let other = RetryPolicy { seed: 8, ..patience.clone() };
        for (next, low) in [(2, 1), (3, 2), (4, 3), (40, 3)] {
            let (low, high) = (Duration::from_secs(low), Duration::from_millis(low * 1500));
            for draw in 0..100 {
                let pause = patience.pause(next, draw);
                assert!(pause >= low && pause <= high, "{next} {draw} {pause:?}");
                assert_eq!(pause, patience.pause(next, draw));
            }
            assert_ne!(patience.pause(next, 1), other.pause(next, 1));
        }
    }

    #[test]
    fn http_client_is_created_on_first_request() {
        let http = Http::new(None, RetryPolicy::default());
        let http_client = http.client.as_ref().unwrap();
        assert!(http_client.client.get().is_none());
        let made: *const Client = http_client.client().unwrap();
        assert!(std::ptr::eq(made, http_client.client().unwrap()), "the client is created once");
    }

    #[test]
    fn error_excerpt_is_one_short_line() {
        assert_eq!(excerpt(b"rate limit\n  of \x07blocked"), "rate limit of blocked");
        let page = "an HTML page, as from a proxy in front of it";
        assert_eq!(
            excerpt(b"\n <!DOCTYPE html><h1>Checking your browser</h1>"),
            page,
            "a description replaces an HTML page"
        );
        assert_eq!(excerpt(b""), "an empty body");
        assert!(excerpt(&[b'x'; 5000]).len() <= EXCERPT_LENGTH);
    }
}
