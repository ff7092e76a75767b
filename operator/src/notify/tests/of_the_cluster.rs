//! Edge (writes). Tests a cluster channel: it reads its own Secret, and all servers share its route.

use std::collections::BTreeSet;

use super::*;

/// The operator's namespace.
const HOME: &str = "nightshift-system";

fn staff() -> Channel {
    Channel::of_the_cluster(HOME, written())
}

fn at_home(address: &str) -> BTreeMap<[String; 3], String> {
    BTreeMap::from([([HOME, "chat", "address"].map(str::to_owned), address.to_owned())])
}

fn server(number: usize) -> Key {
    ("games".to_owned(), format!("lobby{number}"))
}

/// A notification that is pending for the cluster channel.
fn news(what: &str) -> NotificationState {
    NotificationState { pending: vec!["cluster/team".to_owned()], ..done(what) }
}

impl Process {
    fn with_staff(receiver: &Receiver) -> Self {
        Self::with(at_home(&receiver.hook()), &[&receiver.base], vec![staff()])
    }

    /// The servers woken until now.
    fn woken_now(&mut self) -> Vec<Key> {
        std::iter::from_fn(|| self.woken.try_recv().ok()).collect()
    }
}

#[tokio::test]
async fn channels_of_same_name_are_delivered_separately() {
    let (home, games) = (Receiver::start([]).await, Receiver::start([]).await);
    let mut secrets = at_home(&home.hook());
    secrets.insert(["games", "chat", "address"].map(str::to_owned), games.hook());
    let mut process = Process::with(secrets, &[&home.base, &games.base], vec![staff()]);
    let mut status = vec![done("one")];
    status[0].pending.push("cluster/team".to_owned());
    let channels = [team(), staff()];
    process.pass(&lobby(), &channels, &mut status);
    while !all_told(&status) {
        tokio::time::timeout(PATIENCE, process.woken.recv()).await.unwrap().unwrap();
        process.pass(&lobby(), &channels, &mut status);
    }
    assert_eq!((home.texts(1).await, games.texts(1).await), (vec!["one".to_owned()], vec!["one".to_owned()]));
    // The next process has no pending notification.
    let next = Process::with_staff(&home);
    next.pass(&lobby(), &channels, &mut status);
    assert_eq!((home.texts(1).await.len(), games.texts(1).await.len()), (1, 1));
}

#[tokio::test]
async fn cluster_channel_shares_backoff_across_servers() {
    let receiver = Receiver::start([Answer::Slower("0.4")]).await;
    let mut process = Process::with_staff(&receiver);
    let mut all: Vec<(Key, Vec<NotificationState>)> =
        (0..20).map(|number| (server(number), vec![news(&format!("of {number}"))])).collect();
    for (server, status) in &mut all {
        process.pass(server, &[staff()], status);
    }
    while !all.iter().all(|(_, status)| all_told(status)) {
        let woken = tokio::time::timeout(PATIENCE, process.woken.recv()).await.unwrap().unwrap();
        let (server, status) = all.iter_mut().find(|(server, _)| *server == woken).unwrap();
        process.pass(server, &[staff()], status);
    }
    let got = receiver.got(21).await;
    let apart = got[1].2.duration_since(got[0].2);
    assert!(apart >= Duration::from_millis(400), "nobody else tries meanwhile: {apart:?}");
    // Compared as a set: a busy machine replies late, and a message with a late reply is sent again.
    let texts = receiver.texts(21).await;
    let told: BTreeSet<&String> = texts[1..].iter().collect();
    assert_eq!(told.len(), 20);
}

#[tokio::test]
async fn cluster_channel_failure_and_recovery_reach_all_servers() {
    let receiver = Receiver::start([Answer::Status(404)]).await;
    let mut process = Process::with_staff(&receiver);
    let now = process.office.now;
    assert_eq!(process.messenger.look(&server(2), &[staff()], now).await, []);
    let mut status = vec![news("one")];
    process.pass(&server(1), &[staff()], &mut status);
    let mut woken = Vec::new();
    while woken.len() < 2 {
        woken.push(tokio::time::timeout(PATIENCE, process.woken.recv()).await.unwrap().unwrap());
    }
    assert_eq!(woken, [server(1), server(2)]);
    let trouble = process.messenger.look(&server(2), &[staff()], now).await.pop().unwrap();
    assert_eq!(trouble.fault, DeliveryError::Status(404));
    // The Secret is fixed: the waiting worker starts at once, not in a quarter of an hour.
    process.office.secrets.lock().unwrap().clear();
    process.messenger.look(&server(1), &[staff()], now + LOOK_COUNTS).await;
    *process.office.secrets.lock().unwrap() = at_home(&receiver.hook());
    process.messenger.look(&server(1), &[staff()], now + LOOK_COUNTS + LOOK_COUNTS).await;
    assert_eq!(receiver.texts(2).await, ["one", "one"]);
    assert_eq!(process.messenger.look(&server(2), &[staff()], now + LOOK_COUNTS + LOOK_COUNTS).await, []);
}

#[tokio::test]
async fn missing_cluster_secret_is_read_once_for_all_servers() {
    let receiver = Receiver::start([]).await;
    let mut process = Process::with_staff(&receiver);
    process.office.secrets.lock().unwrap().clear();
    process.messenger.0.look_at_cluster().await;
    assert_eq!(process.metrics.cluster_failing.get(), 1);
    let now = process.office.now;
    for number in 0..10 {
        let trouble = process.messenger.look(&server(number), &[staff()], now).await.pop().unwrap();
        assert_eq!(trouble.fault, DeliveryError::SecretMissing);
    }
    assert_eq!(process.office.looks.load(Ordering::SeqCst), 1);
    assert_eq!(process.woken_now(), []);
    *process.office.secrets.lock().unwrap() = at_home(&receiver.hook());
    assert_eq!(process.messenger.look(&server(3), &[staff()], now + LOOK_COUNTS).await, []);
    assert_eq!(process.woken_now().len(), 10, "each says that it is well again");
    process.messenger.0.look_at_cluster().await;
    assert_eq!(process.metrics.cluster_failing.get(), 0);
}
