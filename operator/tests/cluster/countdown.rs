//! Edge (writes). The agent is killed in a countdown: players read the rest of it all the same.

use serde_json::json;

use super::manifests::{AFTER, ALWAYS, BEFORE, FAR, LOBBY, TO_AFTER, server, viabackwards};
use super::node::kill_9;
use super::server::Server;
use super::update::updated;
use super::wait::{SOON, until};
use super::witness::Witness;
use super::world::in_a_world;

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_killed_in_a_countdown_says_the_rest_of_it_and_nothing_twice() {
    in_a_world("agent-killed", BEFORE, async |world| {
        let mut slow = server(LOBBY, FAR);
        slow["spec"]["players"] = json!({"notice": "90s", "emptyNotice": "3s"});
        world.apply(&[slow, viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        lobby.seven_join_and_are_counted().await;
        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        let before = lobby.pod().await.unwrap();
        let witness = Witness::of(&lobby).await;
        let times_told = |left: &str| {
            let text = format!("restarts in {left} for an update");
            witness.lines().iter().filter(|line| line.run == 0 && line.text.contains(&text)).count()
        };

        lobby.set_window(ALWAYS).await;
        until("players were told", SOON, async || match times_told("1 minute 30 seconds") {
            0 => Err(witness.console()),
            _ => Ok(()),
        })
        .await;
        kill_9(&before, "/agent");
        updated(world, &lobby).await;

        witness.assert_order(&[
            (0, "restarts in 1 minute 30 seconds"),
            (0, "restarts in 30 seconds"),
            (0, "restarts in 10 seconds"),
            (0, "restarts in 1 second for"),
            (0, "All dimensions are saved"),
            (0, "Stopping server"),
            (1, "Done ("),
        ]);
        for left in ["1 minute 30 seconds", "30 seconds", "10 seconds"] {
            assert_eq!(times_told(left), 1, "in {left}:\n{}", witness.console());
        }
        assert_eq!(world.notes(LOBBY, "PlayersWarned").await.len(), 1, "it is the same announcement");
        let resumed = world.note(LOBBY, "CountdownResumed").await;
        assert!(resumed.ends_with(" are left"), "{resumed}");
        let told = witness.lines().iter().any(|line| line.text.contains("The server is stopping now."));
        assert!(!told, "the countdown has told of this stop:\n{}", witness.console());
        assert_eq!((witness.pods(), witness.runs()), (2, 2), "{}", witness.console());
    })
    .await;
}
