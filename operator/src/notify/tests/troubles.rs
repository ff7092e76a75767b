//! Edge (writes). Tests failed deliveries, and that no output contains the address.

use std::io::Write;

use super::*;

#[tokio::test]
async fn webhook_redirect_is_not_followed() {
    let receiver = Receiver::start([Answer::MovedTo("/elsewhere")]).await;
    let mut process = Process::to(&receiver);
    process.pass(&lobby(), &[team()], &mut [done("one")]);
    assert_eq!(process.trouble().await.fault, DeliveryError::Moved(302));
    assert_eq!(receiver.got(1).await.len(), 1);
}

#[tokio::test]
async fn webhook_to_private_address_needs_allowed_origin() {
    let receiver = Receiver::start([]).await;
    let port = receiver.base.port().unwrap();
    for (address, fault) in [
        (receiver.hook(), DeliveryError::NotHttps),
        (format!("https://127.0.0.1:{port}/x"), DeliveryError::Inside),
        (format!("https://localhost:{port}/x"), DeliveryError::Inside),
        (format!("http://127.0.0.1:{port}@example.org/x"), DeliveryError::NotHttps),
        ("hooks.example.org/x".to_owned(), DeliveryError::NotAnAddress),
    ] {
        let mut process = Process::new(&address, &[]);
        process.pass(&lobby(), &[team()], &mut [done("one")]);
        assert_eq!(process.trouble().await.fault, fault, "{address}");
    }
    // The address got no message until an admin allowed it.
    let mut allowed = Process::to(&receiver);
    allowed.passes_until(&mut [done("two")], all_told).await;
    assert_eq!(receiver.texts(1).await, ["two"]);
}

#[tokio::test]
async fn missing_secret_is_reported_before_first_notification() {
    let receiver = Receiver::start([]).await;
    let process = Process::to(&receiver);
    let mut wrong = [team(), team()];
    (wrong[0].name, wrong[0].written.secret.name) = ("a".to_owned(), "chats".to_owned());
    (wrong[1].name, wrong[1].written.secret.key) = ("b".to_owned(), "adress".to_owned());
    let troubles = process.messenger.look(&lobby(), &wrong, process.office.now).await;
    let words: Vec<String> = troubles.iter().map(|trouble| trouble.fault.in_words(&trouble.channel)).collect();
    assert_eq!(
        words,
        [
            "channel `a` (Slack): there is no Secret `chats`: make it, with the webhook's address at key `address`",
            "channel `b` (Slack): Secret `chat` has no key `adress`: write the webhook's address there",
        ]
    );
    assert_eq!(process.messenger.look(&lobby(), &[team()], process.office.now).await, []);
}

#[tokio::test]
async fn pending_notification_is_sent_once_secret_appears() {
    let receiver = Receiver::start([]).await;
    let mut process = Process::to(&receiver);
    process.office.secrets.lock().unwrap().clear();
    let mut status = vec![done("one")];
    process.pass(&lobby(), &[team()], &mut status);
    assert_eq!(process.trouble().await.fault, DeliveryError::SecretMissing);
    process.set_secret("chat", "address", &receiver.hook());
    let later = process.office.now + LOOK_COUNTS;
    assert_eq!(process.messenger.look(&lobby(), &[team()], later).await, []);
    // The next attempt would be in an hour.
    process.passes_until(&mut status, all_told).await;
    assert_eq!(receiver.texts(1).await, ["one"]);
}

#[tokio::test]
async fn expired_notification_is_given_up_and_recorded() {
    let receiver = Receiver::start([]).await;
    let mut process = Process::to(&receiver);
    let mut status = vec![NotificationState { until: process.office.now, ..done("late") }, done("one")];
    process.passes_until(&mut status, |notices| notices.iter().all(|notice| notice.pending.is_empty())).await;
    assert_eq!((status[0].given_up.as_slice(), &status[1].given_up), (&["team".to_owned()][..], &Vec::new()));
    assert_eq!(receiver.texts(1).await, ["one"]);
    assert_eq!((process.counted("given-up"), process.counted("delivered")), (1, 1));
}

#[tokio::test]
async fn rejected_message_does_not_block_next_one() {
    let receiver = Receiver::start([Answer::Status(400)]).await;
    let mut process = Process::to(&receiver);
    let mut status = vec![done("strange"), done("one")];
    process.passes_until(&mut status, |notices| notices.iter().all(|notice| notice.pending.is_empty())).await;
    assert_eq!(receiver.texts(2).await, ["strange", "one"]);
    assert_eq!(status[0].given_up, ["team"]);
}

#[tokio::test]
async fn corrected_channel_is_retried_at_once() {
    let receiver = Receiver::start([Answer::Status(404)]).await;
    let mut process = Process::to(&receiver);
    let mut status = vec![done("one")];
    process.pass(&lobby(), &[team()], &mut status);
    assert_eq!(process.trouble().await.fault, DeliveryError::Status(404));
    let mut corrected = team();
    corrected.written.secret.key = "new".to_owned();
    process.set_secret("chat", "new", &receiver.hook());
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
    let mut words = Vec::new();
    for address in [
        receiver.hook(),
        closed,
        format!("https://chat.invalid/{TOKEN}"),
        format!("https://a:{TOKEN}@127.0.0.1/{TOKEN}?{TOKEN}"),
        format!("ftp://{TOKEN}"),
        format!("{TOKEN} is no address"),
    ] {
        for answer in [Answer::Status(500), Answer::Status(404), Answer::MovedTo("/geheimnis-4711"), Answer::Silence] {
            let is_first = address == receiver.hook();
            if is_first {
                receiver.now_answers(answer);
            }
            // A callsite that another thread reaches first may be cached as disabled.
            tracing::callsite::rebuild_interest_cache();
            let mut process = Process::new(&address, &[&receiver.base, &origin]);
            process.pass(&lobby(), &[team()], &mut [done("one")]);
            let trouble = process.trouble().await;
            words.push(format!("{} {trouble:?}", trouble.fault.in_words(&trouble.channel)));
            words.push(format!("{:?}", Webhook::parse(&address)));
            if !is_first {
                break;
            }
        }
    }
    assert_eq!(words.len(), 18);
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(logged.contains("could not tell a channel"), "{logged}");
    for text in words.iter().flat_map(|text| text.lines()).chain(logged.lines()) {
        assert!(!text.contains(TOKEN), "{text}");
    }
}

#[test]
fn delivery_error_names_channel_field_and_remedy() {
    let codes = (300..600).flat_map(|code| [DeliveryError::Status(code), DeliveryError::Moved(code)]);
    let others = [
        DeliveryError::SecretMissing,
        DeliveryError::KeyMissing,
        DeliveryError::NotAnAddress,
        DeliveryError::NotHttps,
        DeliveryError::Inside,
        DeliveryError::TimedOut,
        DeliveryError::Unreachable,
    ];
    let of_the_cluster = Channel::of_the_cluster("nightshift-system", written());
    for fault in codes.chain(others) {
        let words = fault.in_words(&team());
        assert!(words.starts_with("channel `team` (Slack): "), "{words}");
        assert!(words.contains("`chat`") && words.contains("`address`"), "{words}");
        let words = fault.in_words(&of_the_cluster);
        assert!(
            words.starts_with("channel `cluster/team` (Slack, for whoever installed the operator to mend): "),
            "{words}"
        );
        assert!(
            words.contains("Secret `chat` in namespace `nightshift-system`") && words.contains("`address`"),
            "{words}"
        );
    }
}
