//! Edge (writes). Tests a cluster channel: it reads its own Secret, and all servers share its route.

use std::collections::BTreeSet;

use super::*;

/// The operator's namespace.
const OPERATOR_NAMESPACE: &str = "nightshift-system";

fn staff() -> Channel {
    Channel::for_cluster(OPERATOR_NAMESPACE, channel_config())
}

fn cluster_secret(address: &str) -> BTreeMap<[String; 3], String> {
    BTreeMap::from([([OPERATOR_NAMESPACE, "chat", "address"].map(str::to_owned), address.to_owned())])
}

fn server(number: usize) -> Key {
    ("games".to_owned(), format!("lobby{number}"))
}

/// A notification that is pending for the cluster channel.
fn pending_for_cluster(what: &str) -> NotificationState {
    NotificationState { pending: vec!["cluster/team".to_owned()], ..done(what) }
}

impl Process {
    fn with_cluster_channel(receiver: &Receiver) -> Self {
        Self::with_secrets(cluster_secret(&receiver.webhook_url()), &[&receiver.base], vec![staff()])
    }

    /// The servers woken until now.
    fn woken_now(&mut self) -> Vec<Key> {
        std::iter::from_fn(|| self.woken.try_recv().ok()).collect()
    }
}

#[tokio::test]
async fn channels_of_same_name_are_delivered_separately() {
    let (cluster, games) = (Receiver::start([]).await, Receiver::start([]).await);
    let mut secrets = cluster_secret(&cluster.webhook_url());
    secrets.insert(["games", "chat", "address"].map(str::to_owned), games.webhook_url());
    let mut process = Process::with_secrets(secrets, &[&cluster.base, &games.base], vec![staff()]);
    let mut status = vec![done("one")];
    status[0].pending.push("cluster/team".to_owned());
    let channels = [team(), staff()];
    process.pass(&lobby(), &channels, &mut status);
    while !all_delivered(&status) {
        tokio::time::timeout(PATIENCE, process.woken.recv()).await.unwrap().unwrap();
        process.pass(&lobby(), &channels, &mut status);
    }
    assert_eq!((cluster.texts(1).await, games.texts(1).await), (vec!["one".to_owned()], vec!["one".to_owned()]));
    // The next process has no pending notification.
    let next = Process::with_cluster_channel(&cluster);
    next.pass(&lobby(), &channels, &mut status);
    assert_eq!((cluster.texts(1).await.len(), games.texts(1).await.len()), (1, 1));
}

#[tokio::test]
async fn cluster_channel_shares_backoff_across_servers() {
    let receiver = Receiver::start([Answer::RateLimited("0.4")]).await;
    let mut process = Process::with_cluster_channel(&receiver);
    let mut all: Vec<(Key, Vec<NotificationState>)> =
        (0..20).map(|number| (server(number), vec![pending_for_cluster(&format!("of {number}"))])).collect();
    for (server, status) in &mut all {
        process.pass(server, &[staff()], status);
    }
    while !all.iter().all(|(_, status)| all_delivered(status)) {
        let woken = tokio::time::timeout(PATIENCE, process.woken.recv()).await.unwrap().unwrap();
        let (server, status) = all.iter_mut().find(|(server, _)| *server == woken).unwrap();
        process.pass(server, &[staff()], status);
    }
    let messages = receiver.received(21).await;
    let pause = messages[1].2.duration_since(messages[0].2);
    assert!(pause >= Duration::from_millis(400), "no other server tries during the pause: {pause:?}");
    // Compared as a set: a busy machine replies late, and a message with a late reply is sent again.
    let texts = receiver.texts(21).await;
    let delivered: BTreeSet<&String> = texts[1..].iter().collect();
    assert_eq!(delivered.len(), 20);
}

#[tokio::test]
async fn cluster_channel_failure_and_recovery_reach_all_servers() {
    let receiver = Receiver::start([Answer::Status(404)]).await;
    let mut process = Process::with_cluster_channel(&receiver);
    let now = process.backend.now;
    assert_eq!(process.notifier.check_channels(&server(2), &[staff()], now).await, []);
    let mut status = vec![pending_for_cluster("one")];
    process.pass(&server(1), &[staff()], &mut status);
    let mut woken = Vec::new();
    while woken.len() < 2 {
        woken.push(tokio::time::timeout(PATIENCE, process.woken.recv()).await.unwrap().unwrap());
    }
    assert_eq!(woken, [server(1), server(2)]);
    let error = process.notifier.check_channels(&server(2), &[staff()], now).await.pop().unwrap();
    assert_eq!(error.error, DeliveryError::Status(404));
    // The Secret is fixed: the waiting worker starts at once, not in a quarter of an hour.
    process.backend.secrets.lock().unwrap().clear();
    process.notifier.check_channels(&server(1), &[staff()], now + SECRET_FRESH_FOR).await;
    *process.backend.secrets.lock().unwrap() = cluster_secret(&receiver.webhook_url());
    process.notifier.check_channels(&server(1), &[staff()], now + SECRET_FRESH_FOR + SECRET_FRESH_FOR).await;
    assert_eq!(receiver.texts(2).await, ["one", "one"]);
    assert_eq!(
        process.notifier.check_channels(&server(2), &[staff()], now + SECRET_FRESH_FOR + SECRET_FRESH_FOR).await,
        []
    );
}

#[tokio::test]
async fn missing_cluster_secret_is_read_once_for_all_servers() {
    let receiver = Receiver::start([]).await;
    let mut process = Process::with_cluster_channel(&receiver);
    process.backend.secrets.lock().unwrap().clear();
    process.notifier.0.check_cluster_channels().await;
    assert_eq!(process.metrics.cluster_failing.get(), 1);
    let now = process.backend.now;
    for number in 0..10 {
        let error = process.notifier.check_channels(&server(number), &[staff()], now).await.pop().unwrap();
        assert_eq!(error.error, DeliveryError::SecretMissing);
    }
    assert_eq!(process.backend.secret_reads.load(Ordering::SeqCst), 1);
    assert_eq!(process.woken_now(), []);
    *process.backend.secrets.lock().unwrap() = cluster_secret(&receiver.webhook_url());
    assert_eq!(process.notifier.check_channels(&server(3), &[staff()], now + SECRET_FRESH_FOR).await, []);
    assert_eq!(process.woken_now().len(), 10, "the recovery wakes every server");
    process.notifier.0.check_cluster_channels().await;
    assert_eq!(process.metrics.cluster_failing.get(), 0);
}
