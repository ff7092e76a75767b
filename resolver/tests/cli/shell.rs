//! Edge (reads). Tests shell integration: completions, the manual, kubectl's plugin name, and the published schemas.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Desk, assert_shown, shown};

#[test]
fn published_schemas_match_types() {
    let desk = Desk::new(&[]);
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/schemas");
    for of in ["lock", "explanation", "difference", "plan", "outdated", "ready", "verify"] {
        let output = desk.command(&["schema", of]).output().unwrap();
        let path = published.join(format!("{of}.schema.json"));
        let kept = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        // Not compared by `assert_eq`, which would print both.
        assert!(output.stdout == kept.as_bytes(), "{} is not what the types say: run `make generate`", path.display());
    }
    assert_shown("schema-unknown", &desk.run(&["schema", "locks"]));
}

#[test]
fn bash_completes_commands_and_options() {
    let desk = Desk::new(&[]);
    let output = desk.command(&["completions", "bash"]).output().unwrap();
    fs::write(desk.path().join("completions.bash"), output.stdout).unwrap();
    let complete = |words: &str, word: usize| {
        let script = format!(
            "source completions.bash; COMP_WORDS=({words}); COMP_CWORD={word}; \
             _resolver resolver \"${{COMP_WORDS[{word}]}}\" \"${{COMP_WORDS[{word}-1]}}\"; echo \"${{COMPREPLY[*]}}\""
        );
        let output = Command::new("bash").args(["-c", &script]).current_dir(desk.path()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(complete("resolver out", 1), "outdated\n");
    assert_eq!(complete("resolver explain --save", 2), "--save-problem\n");
    assert_eq!(complete("resolver explain --format ''", 3), "human json svg\n");
}

#[test]
fn completions_exist_for_each_shell_and_unknown_is_refused() {
    let desk = Desk::new(&[]);
    for shell in ["bash", "zsh", "fish"] {
        let output = desk.command(&["completions", shell]).output().unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(script.contains("save-problem") && output.status.success(), "{shell}");
    }
    assert_shown("completions-unknown", &desk.run(&["completions", "tcsh"]));
}

#[test]
fn manual_has_page_for_each_command() {
    let desk = Desk::new(&[]);
    assert_shown("man", &desk.run(&["man"]));
    assert_shown("man-directory", &desk.run(&["man", "-o", "pages"]));
    let page = fs::read_to_string(desk.path().join("pages/resolver-catalog-fetch.1")).unwrap();
    assert!(page.contains(".TH resolver-catalog-fetch 1"), "{page}");
}

#[cfg(unix)]
#[test]
fn kubectl_plugin_gives_same_answers_with_own_usage() {
    let desk = Desk::new(&[("lobby.yaml", &super::lobby())]);
    let plugin = desk.path().join("kubectl-nightshift");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_resolver"), &plugin).unwrap();
    let run = |arguments: &[&str]| {
        let ours = desk.command(arguments);
        let mut command = Command::new(&plugin);
        command.env_clear().current_dir(desk.path()).args(arguments);
        command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shown(&command.output().unwrap())
    };
    assert_shown("kubectl-help", &run(&["--help"]));
    assert_shown("kubectl-usage", &run(&["explain", "--problem", "p.json", "-n", "games"]));
    assert_shown("kubectl-version", &run(&["--version"]));
    let outdated = ["outdated", "-f", "lobby.yaml"];
    assert_eq!(run(&outdated), desk.run(&outdated));
    let script = run(&["completions", "bash"]);
    assert!(script.contains("complete -F _kubectl__nightshift"), "{script}");
}

#[cfg(unix)]
#[test]
fn kubectl_completes_plugin_commands_options_and_values() {
    let desk = Desk::new(&[]);
    let program = desk.path().join("kubectl_complete-nightshift");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_resolver"), &program).unwrap();
    let complete = |words: &[&str]| {
        let output = Command::new(&program).env_clear().args(words).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty());
        String::from_utf8(output.stdout).unwrap()
    };
    assert_shown("kubectl-complete", &complete(&[""]));
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
    assert_eq!(names(&["explain", "--now"]), [":4"], "what is hidden stays so");
    assert_eq!(names(&["no-such", "--color", "n"]), ["never", ":4"]);
    assert_eq!(names(&[]).last().unwrap(), ":4");
}
