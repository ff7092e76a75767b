//! Pure. Defines the scenarios that are explored.

use crate::state::{Asking, Scenario, SetBehaviour};

pub(crate) fn scenarios() -> Vec<Scenario> {
    use SetBehaviour::{Bad, Flaky, Good, NeverReady, Unreadable};
    let plain = Scenario {
        name: "plain: B good",
        behaviour: [Good; 4],
        format: [1; 4],
        policy: Asking::Announce,
        saves: true,
        backups: true,
        first_start: false,
        restarts: false,
        one_night: false,
        opportunistic: false,
        drains: false,
        pulls: false,
        requests_restore: false,
        loops: false,
        waits: false,
        faults: 0,
        changes: 0,
        agent_costs: false,
        without: None,
    };
    let irreversible = Scenario { format: [1, 2, 1, 1], ..plain };
    let opportunistic = Scenario { opportunistic: true, ..plain };
    let b = |name, behaviour, like: Scenario| Scenario { name, behaviour: [Good, behaviour, Good, Good], ..like };
    vec![
        plain,
        b("plain: B never ready", NeverReady, plain),
        b("plain: B ready but bad", Bad, plain),
        b("plain: B flaky", Flaky, plain),
        b("plain: B unreadable", Unreadable, plain),
        b("one-way: B good", Good, irreversible),
        b("one-way: B never ready", NeverReady, irreversible),
        b("one-way: B ready but bad", Bad, irreversible),
        b("one-way: B flaky", Flaky, irreversible),
        Scenario { backups: false, ..b("one-way without a copy: B flaky", Flaky, irreversible) },
        Scenario {
            backups: false,
            format: [1, 2, 2, 1],
            ..b("one-way without a copy, and another goal would mend it: B flaky", Flaky, irreversible)
        },
        Scenario { requests_restore: true, ..b("one-way, and a person asks for a copy: B flaky", Flaky, irreversible) },
        Scenario { policy: Asking::EmptyFirst, ..b("empty first: B flaky", Flaky, plain) },
        Scenario { policy: Asking::Ignore, ..b("ignore: B flaky", Flaky, plain) },
        Scenario { saves: false, ..b("saves are refused: B bad", Bad, plain) },
        Scenario { name: "first start: A flaky", first_start: true, behaviour: [Flaky, Good, Good, Good], ..plain },
        Scenario { restarts: true, ..b("restart by the clock: B flaky", Flaky, plain) },
        Scenario {
            restarts: true,
            one_night: true,
            ..b("restart by the clock in the night of the window: B flaky", Flaky, plain)
        },
        b("opportunistic: B flaky", Flaky, opportunistic),
        b("opportunistic, one-way: B good", Good, Scenario { opportunistic: true, ..irreversible }),
        Scenario { restarts: true, ..b("opportunistic, with a restart by the clock: B bad", Bad, opportunistic) },
        Scenario { drains: true, ..b("the node is emptied: B flaky", Flaky, plain) },
        Scenario {
            drains: true,
            policy: Asking::EmptyFirst,
            ..b("the node is emptied, empty first: B good", Good, plain)
        },
        Scenario { pulls: true, ..b("an image has to be pulled: B flaky", Flaky, plain) },
        Scenario { loops: true, ..b("crashes again and again: B flaky", Flaky, plain) },
        Scenario { waits: true, ..b("the cluster has no room: B flaky", Flaky, plain) },
        Scenario { waits: true, ..b("the cluster has no room, one-way: B good", Good, irreversible) },
        Scenario {
            requests_restore: true,
            loops: true,
            ..b("crashes again and again, and a person asks for a copy: B good", Good, plain)
        },
        Scenario { loops: true, ..b("opportunistic, and crashes again and again: B good", Good, opportunistic) },
        Scenario { name: "hand edit is bad: M never ready", behaviour: [Good, Good, Good, NeverReady], ..plain },
    ]
}

pub(crate) fn named(name: &str) -> Scenario {
    scenarios().into_iter().find(|s| s.name == name).expect("a scenario has this name")
}
