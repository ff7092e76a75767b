//! Edge (writes). Tests failed deliveries, and that no output contains the address.

use std::io::Write;

use super::*;

#[tokio::test]
async fn webhook_redirect_is_not_followed() {
    let receiver = Receiver::start([Answer::RedirectTo("/elsewhere")]).await;
    let mut process = Process::for_receiver(&receiver);
    process.pass(&lobby(), &[team()], &mut [done("one")]);
    assert_eq!(process.next_error().await.error, DeliveryError::Redirected(302));
    assert_eq!(receiver.received(1).await.len(), 1);
}

#[tokio::test]
async fn webhook_to_private_address_needs_allowed_origin() {
    let receiver = Receiver::start([]).await;
    let port = receiver.base.port().unwrap();
    for (address, error) in [
        (receiver.webhook_url(), DeliveryError::NotHttps),
        (format!("https://127.0.0.1:{port}/x"), DeliveryError::PrivateAddress),
        (format!("https://localhost:{port}/x"), DeliveryError::PrivateAddress),
        (format!("http://127.0.0.1:{port}@example.org/x"), DeliveryError::NotHttps),
        ("hooks.example.org/x".to_owned(), DeliveryError::NotAnAddress),
    ] {
        let mut process = Process::new(&address, &[]);
        process.pass(&lobby(), &[team()], &mut [done("one")]);
        assert_eq!(process.next_error().await.error, error, "{address}");
    }
    // The address got no message until an admin allowed it.
    let mut allowed = Process::for_receiver(&receiver);
    allowed.passes_until(&mut [done("two")], all_delivered).await;
    assert_eq!(receiver.texts(1).await, ["two"]);
}

#[tokio::test]
async fn missing_secret_is_reported_before_first_notification() {
    let receiver = Receiver::start([]).await;
    let process = Process::for_receiver(&receiver);
    let mut wrong = [team(), team()];
    (wrong[0].name, wrong[0].config.secret.name) = ("a".to_owned(), "chats".to_owned());
    (wrong[1].name, wrong[1].config.secret.key) = ("b".to_owned(), "adress".to_owned());
    let errors = process.notifier.check_channels(&lobby(), &wrong, process.backend.now).await;
    let messages: Vec<String> = errors.iter().map(|error| error.error.message(&error.channel)).collect();
    assert_eq!(
        messages,
        [
            "channel `a` (Slack): there is no Secret `chats`: create it, with the webhook's address at key `address`",
            "channel `b` (Slack): Secret `chat` has no key `adress`: write the webhook's address there",
        ]
    );
    assert_eq!(process.notifier.check_channels(&lobby(), &[team()], process.backend.now).await, []);
}

#[tokio::test]
async fn pending_notification_is_sent_once_secret_appears() {
    let receiver = Receiver::start([]).await;
    let mut process = Process::for_receiver(&receiver);
    process.backend.secrets.lock().unwrap().clear();
    let mut status = vec![done("one")];
    process.pass(&lobby(), &[team()], &mut status);
    assert_eq!(process.next_error().await.error, DeliveryError::SecretMissing);
    process.set_secret("chat", "address", &receiver.webhook_url());
    let later = process.backend.now + SECRET_FRESH_FOR;
    assert_eq!(process.notifier.check_channels(&lobby(), &[team()], later).await, []);
    // The next attempt would be in an hour.
    process.passes_until(&mut status, all_delivered).await;
    assert_eq!(receiver.texts(1).await, ["one"]);
}

#[tokio::test]
async fn expired_notification_is_given_up_and_recorded() {
    let receiver = Receiver::start([]).await;
    let mut process = Process::for_receiver(&receiver);
    let mut status = vec![NotificationState { until: process.backend.now, ..done("late") }, done("one")];
    process
        .passes_until(&mut status, |notifications| {
            notifications.iter().all(|notification| notification.pending.is_empty())
        })
        .await;
    assert_eq!((status[0].given_up.as_slice(), &status[1].given_up), (&["team".to_owned()][..], &Vec::new()));
    assert_eq!(receiver.texts(1).await, ["one"]);
    assert_eq!((process.delivery_count("given-up"), process.delivery_count("delivered")), (1, 1));
}

#[tokio::test]
async fn rejected_message_does_not_block_next_one() {
    let receiver = Receiver::start([Answer::Status(400)]).await;
    let mut process = Process::for_receiver(&receiver);
    let mut status = vec![done("strange"), done("one")];
    process
        .passes_until(&mut status, |notifications| {
            notifications.iter().all(|notification| notification.pending.is_empty())
        })
        .await;
    assert_eq!(receiver.texts(2).await, ["strange", "one"]);
    assert_eq!(status[0].given_up, ["team"]);
}

#[tokio::test]
async fn corrected_channel_is_retried_at_once() {
    let receiver = Receiver::start([Answer::Status(404)]).await;
    let mut process = Process::for_receiver(&receiver);
    let mut status = vec![done("one")];
    process.pass(&lobby(), &[team()], &mut status);
    assert_eq!(process.next_error().await.error, DeliveryError::Status(404));
    let mut corrected = team();
    corrected.config.secret.key = "new".to_owned();
    process.set_secret("chat", "new", &receiver.webhook_url());
    process.pass(&lobby(), &[corrected], &mut status);
    assert_eq!(receiver.texts(2).await, ["one", "one"]);
}

/// Collects the log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn webhook_address_stays_out_of_logs_conditions_and_events() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || writer.clone()).finish();
    // The runtime of this test has one thread, so the guard covers all of its tasks.
    let _guard = tracing::subscriber::set_default(subscriber);
    let receiver = Receiver::start([]).await;
    let closed = format!("http://127.0.0.1:1/{TOKEN}");
    let origin: Url = closed.parse().unwrap();
    let mut messages = Vec::new();
    for address in [
        receiver.webhook_url(),
        closed,
        format!("https://chat.invalid/{TOKEN}"),
        format!("https://a:{TOKEN}@127.0.0.1/{TOKEN}?{TOKEN}"),
        format!("ftp://{TOKEN}"),
        format!("{TOKEN} is no address"),
    ] {
        for answer in [Answer::Status(500), Answer::Status(404), Answer::RedirectTo("/geheimnis-4711"), Answer::NoReply]
        {
            let is_first = address == receiver.webhook_url();
            if is_first {
                receiver.add_answer(answer);
            }
            // A callsite that another thread reaches first may be cached as disabled.
            tracing::callsite::rebuild_interest_cache();
            let mut process = Process::new(&address, &[&receiver.base, &origin]);
            process.pass(&lobby(), &[team()], &mut [done("one")]);
            let error = process.next_error().await;
            messages.push(format!("{} {error:?}", error.error.message(&error.channel)));
            messages.push(format!("{:?}", Webhook::parse(&address)));
            if !is_first {
                break;
            }
        }
    }
    assert_eq!(messages.len(), 18);
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(logged.contains("could not deliver to a channel"), "{logged}");
    for text in messages.iter().flat_map(|text| text.lines()).chain(logged.lines()) {
        assert!(!text.contains(TOKEN), "{text}");
    }
}

#[test]
fn delivery_error_names_channel_field_and_remedy() {
    let codes = (300..600).flat_map(|code| [DeliveryError::Status(code), DeliveryError::Redirected(code)]);
    let others = [
        DeliveryError::SecretMissing,
        DeliveryError::KeyMissing,
        DeliveryError::NotAnAddress,
        DeliveryError::NotHttps,
        DeliveryError::PrivateAddress,
        DeliveryError::TimedOut,
        DeliveryError::Unreachable,
    ];
    let of_the_cluster = Channel::for_cluster("nightshift-system", channel_config());
    for error in codes.chain(others) {
        let messages = error.message(&team());
        assert!(messages.starts_with("channel `team` (Slack): "), "{messages}");
        assert!(messages.contains("`chat`") && messages.contains("`address`"), "{messages}");
        let messages = error.message(&of_the_cluster);
        assert!(
            messages.starts_with("channel `cluster/team` (Slack, to be fixed by the admin of the operator): "),
            "{messages}"
        );
        assert!(
            messages.contains("Secret `chat` in namespace `nightshift-system`") && messages.contains("`address`"),
            "{messages}"
        );
    }
}
