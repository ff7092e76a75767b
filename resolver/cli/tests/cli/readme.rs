//! Edge (reads). Tests that the output in README.md is the output of the command.

use std::fs;
use std::path::Path;

use fixtures::document::console_blocks;

use super::{Workspace, lobby};

#[test]
fn readme_answers_match_this_build() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = fs::read_to_string(path).unwrap();
    let workspace = Workspace::new(&[("lobby.yaml", &lobby())]);
    let mut block_count = 0;
    for block in console_blocks(&readme) {
        let Some((command, expected)) = block.strip_prefix("$ resolver ").and_then(|rest| rest.split_once('\n')) else {
            continue;
        };
        let arguments: Vec<&str> = command.split(' ').collect();
        let output = workspace.command(&arguments).output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let stdout = stdout.trim_end();
        assert!(expected == stdout, "`resolver {command}`\n-- README.md shows\n{expected}\n-- it prints\n{stdout}");
        block_count += 1;
    }
    assert_eq!(block_count, 2, "README.md shows a positive and a negative answer");
}
