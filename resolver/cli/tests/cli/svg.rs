//! Edge (reads). Tests `explain --format svg`: one diagram of all servers, and the one in the documentation.

use std::fs;
use std::path::Path;

use super::{Workspace, assert_snapshot, lobby, plugin, server};

fn render_svg(workspace: &Workspace, arguments: &[&str]) -> String {
    let output = workspace.command(&[arguments, &["--format", "svg"]].concat()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn documented_diagram_matches_command_output() {
    let workspace = Workspace::new(&[("lobby.yaml", &lobby())]);
    let svg = render_svg(&workspace, &["explain", "-f", "lobby.yaml"]);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/concepts/held-back.svg");
    if std::env::var_os("NIGHTSHIFT_GENERATE").is_some() {
        fs::write(&path, &svg).unwrap();
    }
    // Not compared by `assert_eq`, which would print both.
    assert!(fs::read_to_string(&path).unwrap() == svg, "{} is outdated: run `make generate`", path.display());
}

#[test]
fn diagram_exists_for_every_kind_of_answer() {
    let impossible = server("  updateStrategy: pin\n  version: 1.21.11\n") + &plugin("griefprevention", "");
    let latest =
        server("  updateStrategy: latest\n").replace("name: lobby", "name: hub") + &plugin("griefprevention", "");
    let workspace = Workspace::new(&[("lobby.yaml", &lobby()), ("no.yaml", &impossible), ("hub.yaml", &latest)]);
    assert_snapshot(
        "picture-why-not",
        &render_svg(&workspace, &["explain", "-f", "lobby.yaml", "--why-not", "1.21.11"]),
    );
    let missed = ["explain", "-f", "lobby.yaml", "--why-not", "griefprevention=16.18.4"];
    assert_snapshot("picture-why-not-release", &render_svg(&workspace, &missed));
    assert_snapshot("picture-impossible", &render_svg(&workspace, &["explain", "-f", "no.yaml"]));
    assert_snapshot("picture-latest", &render_svg(&workspace, &["explain", "-f", "hub.yaml"]));
    assert_snapshot(
        "picture-what-if",
        &render_svg(&workspace, &["explain", "-f", "lobby.yaml", "--without", "griefprevention"]),
    );
}

#[test]
fn diagram_covers_several_servers_and_requires_answer() {
    let other = lobby().replace("name: lobby", "name: arena").replace("namespace: games", "namespace: arenas");
    let workspace = Workspace::new(&[("all.yaml", &(lobby() + "---\n" + &other)), ("lobby.yaml", &lobby())]);
    let svg = render_svg(&workspace, &["explain", "-f", "all.yaml"]);
    assert_eq!((svg.matches("<svg ").count(), svg.matches("class=\"title\"").count()), (1, 2), "{svg}");
    let nothing = workspace.run(&["explain", "-f", "lobby.yaml", "--catalog", "empty", "--format", "svg"]);
    assert!(nothing.starts_with("exit 2\n") && !nothing.contains("<svg"), "{nothing}");
}
