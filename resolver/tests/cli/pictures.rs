//! Edge (reads). Tests `explain --format svg`: one diagram of all servers, and the one in the documentation.

use std::fs;
use std::path::Path;

use super::{Desk, assert_shown, lobby, plugin, server};

fn drawn(desk: &Desk, arguments: &[&str]) -> String {
    let output = desk.command(&[arguments, &["--format", "svg"]].concat()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn documented_diagram_matches_command_output() {
    let desk = Desk::new(&[("lobby.yaml", &lobby())]);
    let svg = drawn(&desk, &["explain", "-f", "lobby.yaml"]);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/concepts/held-back.svg");
    if std::env::var_os("NIGHTSHIFT_GENERATE").is_some() {
        fs::write(&path, &svg).unwrap();
    }
    // Not compared by `assert_eq`, which would print both.
    assert!(fs::read_to_string(&path).unwrap() == svg, "{} is not what is drawn: run `make generate`", path.display());
}

#[test]
fn diagram_exists_for_every_kind_of_answer() {
    let impossible = server("  updateStrategy: pin\n  version: 1.21.11\n") + &plugin("griefprevention", "");
    let latest =
        server("  updateStrategy: latest\n").replace("name: lobby", "name: hub") + &plugin("griefprevention", "");
    let desk = Desk::new(&[("lobby.yaml", &lobby()), ("no.yaml", &impossible), ("hub.yaml", &latest)]);
    assert_shown("picture-why-not", &drawn(&desk, &["explain", "-f", "lobby.yaml", "--why-not", "1.21.11"]));
    let missed = ["explain", "-f", "lobby.yaml", "--why-not", "griefprevention=16.18.4"];
    assert_shown("picture-why-not-release", &drawn(&desk, &missed));
    assert_shown("picture-impossible", &drawn(&desk, &["explain", "-f", "no.yaml"]));
    assert_shown("picture-latest", &drawn(&desk, &["explain", "-f", "hub.yaml"]));
    assert_shown("picture-what-if", &drawn(&desk, &["explain", "-f", "lobby.yaml", "--without", "griefprevention"]));
}

#[test]
fn diagram_covers_several_servers_and_requires_answer() {
    let other = lobby().replace("name: lobby", "name: arena").replace("namespace: games", "namespace: arenas");
    let desk = Desk::new(&[("all.yaml", &(lobby() + "---\n" + &other)), ("lobby.yaml", &lobby())]);
    let svg = drawn(&desk, &["explain", "-f", "all.yaml"]);
    assert_eq!((svg.matches("<svg ").count(), svg.matches("class=\"title\"").count()), (1, 2), "{svg}");
    let nothing = desk.run(&["explain", "-f", "lobby.yaml", "--catalog", "empty", "--format", "svg"]);
    assert!(nothing.starts_with("exit 2\n") && !nothing.contains("<svg"), "{nothing}");
}
