//! Edge (reads). Tests that the output in README.md is the output of the command.

use std::fs;
use std::path::Path;

use super::{Desk, lobby};

#[test]
fn readme_answers_match_this_build() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let readme = fs::read_to_string(path).unwrap();
    let desk = Desk::new(&[("lobby.yaml", &lobby())]);
    let mut asked = 0;
    for block in readme.split("```console\n").skip(1) {
        let (block, _) = block.split_once("\n```").expect("a block ends");
        let Some((command, answer)) = block.strip_prefix("$ resolver ").and_then(|rest| rest.split_once('\n')) else {
            continue;
        };
        let arguments: Vec<&str> = command.split(' ').collect();
        let output = desk.command(&arguments).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let said = said.trim_end();
        assert!(answer == said, "`resolver {command}`\n-- README.md shows\n{answer}\n-- it says\n{said}");
        asked += 1;
    }
    assert_eq!(asked, 2, "README.md shows a yes and a no");
}
