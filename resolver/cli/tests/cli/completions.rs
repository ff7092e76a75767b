//! Edge (reads). Tests shell integration: completions, the manual, kubectl's plugin name, and the published schemas.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Workspace, assert_snapshot, output_text};

#[test]
fn published_schemas_match_types() {
    let workspace = Workspace::new(&[]);
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/schemas");
    for of in ["lock", "explanation", "difference", "plan", "outdated", "ready", "verify"] {
        let output = workspace.command(&["schema", of]).output().unwrap();
        let path = published.join(format!("{of}.schema.json"));
        let published_schema = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        // Not compared by `assert_eq`, which would print both.
        assert!(
            output.stdout == published_schema.as_bytes(),
            "{} does not match the types: run `make generate`",
            path.display()
        );
    }
    assert_snapshot("schema-unknown", &workspace.run(&["schema", "locks"]));
}

#[test]
fn bash_completes_commands_and_options() {
    let workspace = Workspace::new(&[]);
    let output = workspace.command(&["completions", "bash"]).output().unwrap();
    fs::write(workspace.path().join("completions.bash"), output.stdout).unwrap();
    let complete = |words: &str, word: usize| {
        let script = format!(
            "source completions.bash; COMP_WORDS=({words}); COMP_CWORD={word}; \
             _resolver resolver \"${{COMP_WORDS[{word}]}}\" \"${{COMP_WORDS[{word}-1]}}\"; echo \"${{COMPREPLY[*]}}\""
        );
        let output = Command::new("bash").args(["-c", &script]).current_dir(workspace.path()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(complete("resolver out", 1), "outdated\n");
    assert_eq!(complete("resolver explain --save", 2), "--save-problem\n");
    assert_eq!(complete("resolver explain --format ''", 3), "human json svg\n");
}

#[test]
fn completions_exist_for_each_shell_and_unknown_is_refused() {
    let workspace = Workspace::new(&[]);
    for shell in ["bash", "zsh", "fish"] {
        let output = workspace.command(&["completions", shell]).output().unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(script.contains("save-problem") && output.status.success(), "{shell}");
    }
    assert_snapshot("completions-unknown", &workspace.run(&["completions", "tcsh"]));
}

#[test]
fn manual_has_page_for_each_command() {
    let workspace = Workspace::new(&[]);
    assert_snapshot("man", &workspace.run(&["man"]));
    assert_snapshot("man-directory", &workspace.run(&["man", "-o", "pages"]));
    let page = fs::read_to_string(workspace.path().join("pages/resolver-catalog-fetch.1")).unwrap();
    assert!(page.contains(".TH resolver-catalog-fetch 1"), "{page}");
}

#[cfg(unix)]
#[test]
fn kubectl_plugin_gives_same_answers_with_own_usage() {
    let workspace = Workspace::new(&[("lobby.yaml", &super::lobby())]);
    let plugin = workspace.path().join("kubectl-nightshift");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_resolver"), &plugin).unwrap();
    let run = |arguments: &[&str]| {
        let reference_command = workspace.command(arguments);
        let mut command = Command::new(&plugin);
        command.env_clear().current_dir(workspace.path()).args(arguments);
        command.envs(reference_command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        output_text(&command.output().unwrap())
    };
    assert_snapshot("kubectl-help", &run(&["--help"]));
    assert_snapshot("kubectl-usage", &run(&["explain", "--problem", "p.json", "-n", "games"]));
    assert_snapshot("kubectl-version", &run(&["--version"]));
    let outdated = ["outdated", "-f", "lobby.yaml"];
    assert_eq!(run(&outdated), workspace.run(&outdated));
    let script = run(&["completions", "bash"]);
    assert!(script.contains("complete -F _kubectl__nightshift"), "{script}");
}

#[cfg(unix)]
#[test]
fn kubectl_completes_plugin_commands_options_and_values() {
    let workspace = Workspace::new(&[]);
    let program = workspace.path().join("kubectl_complete-nightshift");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_resolver"), &program).unwrap();
    let complete = |words: &[&str]| {
        let output = Command::new(&program).env_clear().args(words).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty());
        String::from_utf8(output.stdout).unwrap()
    };
    assert_snapshot("kubectl-complete", &complete(&[""]));
    let names = |words: &[&str]| -> Vec<String> {
        complete(words).lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&["out"]), ["outdated", ":4"]);
    assert_eq!(names(&["explain", "--save"]), ["--save-problem", ":4"]);
    assert_eq!(names(&["explain", "--format", ""]), ["human", "json", "svg", ":4"]);
    assert_eq!(names(&["explain", "--color=never", "--format=h"]), ["human", ":4"]);
    assert_eq!(names(&["schema", "l"]), ["lock", ":4"]);
    assert_eq!(names(&["catalog", ""]), ["fetch", ":4"]);
    // The shell completes paths. Values that cannot be completed are not treated as paths.
    for path in [&["explain", "-f", ""][..], &["explain", "-f", "a.yaml", ""], &["lock", "-o", ""], &["diff", "a", ""]]
    {
        assert_eq!(names(path), [":0"], "{path:?}");
    }
    assert_eq!(names(&["ready", ""]), [":4"]);
    assert_eq!(names(&["explain", "--why-not", ""]), [":4"]);
    assert_eq!(names(&["explain", "--now"]), [":4"], "hidden options are not completed");
    assert_eq!(names(&["no-such", "--color", "n"]), ["never", ":4"]);
    assert_eq!(names(&[]).last().unwrap(), ":4");
}
