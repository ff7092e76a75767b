//! Edge (writes). Tests the notifier with a receiver in this process, over real sockets.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;

use axum::Router;
use axum::body::Bytes;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use crds::paper_mc_server::NotifyChannel;
use reqwest::Url;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::webhook_url::Webhook;
use super::*;

mod cluster_channel;
mod failures;

/// The secret part of the address, which must never be logged.
const TOKEN: &str = "geheimnis-4711";
/// Longer than any successful step here takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// How the receiver replies once. Without one, it replies 204.
enum Answer {
    Status(u16),
    /// 429 and the seconds of `Retry-After`.
    RateLimited(&'static str),
    RedirectTo(&'static str),
    NoReply,
}

/// A receiver of webhooks.
struct Receiver {
    base: Url,
    received: watch::Receiver<Vec<(String, Value, Instant)>>,
    answers: Arc<Mutex<VecDeque<Answer>>>,
}

impl Receiver {
    async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let answers: Arc<Mutex<VecDeque<Answer>>> = Arc::new(Mutex::new(answers.into_iter().collect()));
        let (sender, received) = watch::channel(Vec::new());
        let script = Arc::clone(&answers);
        let router = Router::new().fallback(move |uri: Uri, body: Bytes| {
            let body = serde_json::from_slice(&body).unwrap();
            sender.send_modify(|received| received.push((uri.path().to_owned(), body, Instant::now())));
            let answer = script.lock().unwrap().pop_front();
            async move { respond(answer).await }
        });
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { base, received, answers }
    }

    fn webhook_url(&self) -> String {
        self.base.join(&format!("api/webhooks/1/{TOKEN}")).unwrap().into()
    }

    /// All messages, once there are at least `count`.
    async fn received(&self, count: usize) -> Vec<(String, Value, Instant)> {
        let mut received = self.received.clone();
        let all = tokio::time::timeout(PATIENCE, received.wait_for(|received| received.len() >= count)).await;
        all.expect("the messages arrive in time").unwrap().clone()
    }

    async fn texts(&self, count: usize) -> Vec<String> {
        self.received(count).await.iter().map(|(_, body, _)| body["text"].as_str().unwrap().to_owned()).collect()
    }

    fn add_answer(&self, answer: Answer) {
        self.answers.lock().unwrap().push_back(answer);
    }
}

async fn respond(answer: Option<Answer>) -> Response {
    match answer {
        None => StatusCode::NO_CONTENT.into_response(),
        Some(Answer::Status(code)) => StatusCode::from_u16(code).unwrap().into_response(),
        Some(Answer::RateLimited(after)) => (StatusCode::TOO_MANY_REQUESTS, [("retry-after", after)]).into_response(),
        Some(Answer::RedirectTo(to)) => (StatusCode::FOUND, [("location", to)]).into_response(),
        Some(Answer::NoReply) => std::future::pending().await,
    }
}

/// A fake cluster for the notifier.
struct Desktop {
    /// By namespace, name and key.
    secrets: Mutex<BTreeMap<[String; 3], String>>,
    secret_reads: AtomicU32,
    is_leader: AtomicBool,
    now: Timestamp,
}

impl Backend for Arc<Desktop> {
    async fn address(&self, channel: &Channel) -> Option<Result<Webhook, DeliveryError>> {
        let Channel { namespace, config: NotifyChannel { secret, .. }, .. } = channel;
        self.secret_reads.fetch_add(1, Ordering::SeqCst);
        let secrets = self.secrets.lock().unwrap();
        let secret_exists = secrets.keys().any(|[space, name, _]| (space.as_str(), name) == (namespace, &secret.name));
        let found = secrets.get(&[namespace.to_owned(), secret.name.clone(), secret.key.clone()]);
        Some(match found {
            Some(text) => Webhook::parse(text),
            None if secret_exists => Err(DeliveryError::KeyMissing),
            None => Err(DeliveryError::SecretMissing),
        })
    }

    async fn is_leader(&self) -> bool {
        self.is_leader.load(Ordering::SeqCst)
    }

    fn now(&self) -> Timestamp {
        self.now
    }
}

/// The notifier of one process.
struct Process {
    notifier: Notifier<Arc<Desktop>>,
    backend: Arc<Desktop>,
    woken: mpsc::UnboundedReceiver<Key>,
    metrics: NotificationMetrics,
}

/// Short pauses, and no second attempt after an error that a user must fix.
const QUICK: DeliveryBackoff = DeliveryBackoff {
    first: Duration::from_millis(5),
    longest: Duration::from_hours(1),
    secret: Duration::from_hours(1),
    longest_retry_after: Duration::from_secs(5),
};

impl Process {
    /// The Secret `chat` contains `address` at key `address`. `allowed` are the origins that an admin configured.
    fn new(address: &str, allowed: &[&Url]) -> Self {
        let secrets = BTreeMap::from([(["games", "chat", "address"].map(str::to_owned), address.to_owned())]);
        Self::with_secrets(secrets, allowed, Vec::new())
    }

    /// The same with these Secrets and cluster channels.
    fn with_secrets(secrets: BTreeMap<[String; 3], String>, allowed: &[&Url], cluster: Vec<Channel>) -> Self {
        let backend = Arc::new(Desktop {
            secrets: Mutex::new(secrets),
            secret_reads: AtomicU32::new(0),
            is_leader: AtomicBool::new(true),
            now: at("2026-11-22T03:00:30Z"),
        });
        let (wake, woken) = mpsc::unbounded_channel();
        let metrics = NotificationMetrics::default();
        let sender =
            HttpSender::with_timeout(allowed.iter().copied().cloned().collect(), Duration::from_millis(500)).unwrap();
        let wake = Box::new(move |key: &Key| drop(wake.send(key.clone())));
        let notifier = Notifier::with_backoff(Arc::clone(&backend), sender, wake, metrics.clone(), cluster, QUICK);
        Self { notifier, backend, woken, metrics }
    }

    fn for_receiver(receiver: &Receiver) -> Self {
        Self::new(&receiver.webhook_url(), &[&receiver.base])
    }

    fn set_secret(&self, name: &str, key: &str, value: &str) {
        self.backend.secrets.lock().unwrap().insert(["games", name, key].map(str::to_owned), value.to_owned());
    }

    /// The steps of a pass: it records the deliveries and offers the pending notifications.
    fn pass(&self, server: &Key, channels: &[Channel], notifications: &mut [NotificationState]) {
        self.notifier.record_deliveries(server, notifications);
        self.notifier.enqueue(server, channels, notifications);
    }

    /// Runs a pass each time the server is woken, until `done` is true.
    async fn passes_until(
        &mut self,
        notifications: &mut [NotificationState],
        done: impl Fn(&[NotificationState]) -> bool,
    ) {
        self.pass(&lobby(), &[team()], notifications);
        while !done(notifications) {
            let woken = tokio::time::timeout(PATIENCE, self.woken.recv()).await;
            assert_eq!(woken.expect("the server is woken in time"), Some(lobby()));
            self.pass(&lobby(), &[team()], notifications);
        }
    }

    /// Waits until a wake reports an error of this channel.
    async fn next_error(&mut self) -> ChannelError {
        loop {
            let woken = tokio::time::timeout(PATIENCE, self.woken.recv()).await;
            assert_eq!(woken.expect("an error is reported in time"), Some(lobby()));
            if let Some(error) = self.notifier.check_channels(&lobby(), &[team()], self.backend.now).await.pop() {
                return error;
            }
        }
    }

    fn delivery_count(&self, outcome: &'static str) -> u64 {
        self.metrics.deliveries.get_or_create(&DeliveryLabels { channel: "Slack", outcome }).get()
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn lobby() -> Key {
    ("games".to_owned(), "lobby".to_owned())
}

fn channel_config() -> NotifyChannel {
    serde_json::from_value(json!({
        "name": "team", "type": "Slack", "secret": {"name": "chat", "key": "address"}, "texts": {"done": "{what}"},
    }))
    .unwrap()
}

fn team() -> Channel {
    Channel::for_server("games", channel_config())
}

/// A notification that is pending for the channel `team`.
fn done(what: &str) -> NotificationState {
    serde_json::from_value(json!({
        "event": "Done", "about": format!("{what}@1"), "at": "2026-11-22T03:00:00Z", "until": "2026-11-23T03:00:00Z",
        "what": what, "pending": ["team"],
    }))
    .unwrap()
}

fn all_delivered(notifications: &[NotificationState]) -> bool {
    notifications.iter().all(|notification| notification.pending.is_empty() && notification.given_up.is_empty())
}

#[tokio::test]
async fn notification_is_recorded_and_survives_operator_restart() {
    let receiver = Receiver::start([]).await;
    let mut first = Process::for_receiver(&receiver);
    let mut status = vec![done("one"), done("two")];
    first.passes_until(&mut status, all_delivered).await;
    assert_eq!(receiver.texts(2).await, ["one", "two"], "deliveries keep their order");
    assert_eq!(receiver.received(2).await[0].0, format!("/api/webhooks/1/{TOKEN}"));

    first.pass(&lobby(), &[team()], &mut status);
    let mut second = Process::for_receiver(&receiver);
    status.push(done("three"));
    second.passes_until(&mut status, all_delivered).await;
    assert_eq!(receiver.texts(3).await, ["one", "two", "three"]);
    assert_eq!((first.delivery_count("delivered"), second.delivery_count("delivered")), (2, 1));
}

#[tokio::test]
async fn unrecorded_delivery_is_not_repeated_by_same_process() {
    let receiver = Receiver::start([]).await;
    let mut process = Process::for_receiver(&receiver);
    process.notifier.enqueue(&lobby(), &[team()], &[done("one")]);
    process.woken.recv().await.unwrap();
    process.notifier.enqueue(&lobby(), &[team()], &[done("one"), done("two")]);
    assert_eq!(receiver.texts(2).await, ["one", "two"]);
}

#[tokio::test]
async fn notification_in_flight_is_not_sent_twice() {
    let receiver = Receiver::start([Answer::RateLimited("0.2")]).await;
    let mut process = Process::for_receiver(&receiver);
    let mut status = vec![done("one")];
    for _ in 0..50 {
        process.pass(&lobby(), &[team()], &mut status);
    }
    receiver.received(1).await;
    for _ in 0..50 {
        process.pass(&lobby(), &[team()], &mut status);
    }
    process.passes_until(&mut status, all_delivered).await;
    assert_eq!(receiver.texts(2).await, ["one", "one"], "a refused attempt and its repetition");
}

#[tokio::test]
async fn delivery_is_retried_and_honours_retry_after() {
    let receiver = Receiver::start([Answer::Status(500), Answer::Status(503), Answer::RateLimited("0.4")]).await;
    let mut process = Process::for_receiver(&receiver);
    let mut status = vec![done("one")];
    process.passes_until(&mut status, all_delivered).await;
    let messages = receiver.received(4).await;
    let pause = messages[3].2.duration_since(messages[2].2);
    assert!(pause >= Duration::from_millis(400), "{pause:?}");
    assert_eq!((messages.len(), process.delivery_count("failed"), process.delivery_count("delivered")), (4, 3, 1));
    assert_eq!(
        process.notifier.check_channels(&lobby(), &[team()], process.backend.now).await,
        [],
        "the channel has no error any more"
    );
}

#[tokio::test]
async fn hanging_receiver_times_out_without_blocking_other_channels() {
    let (hangs, works) = (Receiver::start([Answer::NoReply]).await, Receiver::start([]).await);
    let mut process = Process::new(&hangs.webhook_url(), &[&hangs.base, &works.base]);
    process.set_secret("other", "address", &works.webhook_url());
    let mut other = team();
    (other.name, other.config.secret.name) = ("other".to_owned(), "other".to_owned());
    let mut status = vec![done("one")];
    status[0].pending.push("other".to_owned());
    let channels = [team(), other];
    let begun = Instant::now();
    process.pass(&lobby(), &channels, &mut status);
    hangs.received(1).await;
    works.received(1).await;
    while !all_delivered(&status) {
        tokio::time::timeout(PATIENCE, process.woken.recv()).await.unwrap().unwrap();
        process.pass(&lobby(), &channels, &mut status);
    }
    let received = hangs.received(2).await;
    // Measured from before the message was sent, because the receiver itself may have noticed it late.
    assert!(received[1].2.duration_since(begun) >= Duration::from_millis(500), "the first request times out");
    assert_eq!(works.received(1).await.len(), 1);
}

#[tokio::test]
async fn notifications_are_sent_only_by_leader() {
    let receiver = Receiver::start([]).await;
    let mut process = Process::for_receiver(&receiver);
    process.backend.is_leader.store(false, Ordering::SeqCst);
    let mut status = vec![done("one")];
    process.pass(&lobby(), &[team()], &mut status);
    // The leader delivers it, and this process never does.
    let mut leader = Process::for_receiver(&receiver);
    leader.passes_until(&mut status, all_delivered).await;
    assert_eq!(receiver.texts(1).await, ["one"]);
    process.pass(&lobby(), &[team()], &mut status);
    process.backend.is_leader.store(true, Ordering::SeqCst);
    status.push(done("two"));
    process.passes_until(&mut status, all_delivered).await;
    assert_eq!(receiver.texts(2).await, ["one", "two"]);
}

#[tokio::test]
async fn removed_channel_gets_no_further_notifications() {
    let receiver = Receiver::start([Answer::Status(404)]).await;
    let mut process = Process::for_receiver(&receiver);
    let mut status = vec![done("one")];
    process.pass(&lobby(), &[team()], &mut status);
    process.next_error().await;
    process.notifier.remove_server(&lobby());
    status = vec![done("two")];
    process.passes_until(&mut status, all_delivered).await;
    assert_eq!(receiver.texts(2).await, ["one", "two"]);
}
