//! Edge (writes). Writes the generated files below `crds`. `crds/tests/generated.rs` checks that they are up to date.

use std::path::Path;
use std::process::ExitCode;

use crds::crd::generated;

fn main() -> ExitCode {
    for (file, text) in generated() {
        if let Err(error) = write(&Path::new(env!("CARGO_MANIFEST_DIR")).join(&file), &text) {
            complain(&format!("could not write crds/{file}: {error}"));
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    std::fs::create_dir_all(path.parent().unwrap_or(path))?;
    std::fs::write(path, text)
}

#[expect(clippy::print_stderr, reason = "a command for developers says what is wrong where they see it")]
fn complain(what: &str) {
    eprintln!("{what}");
}
