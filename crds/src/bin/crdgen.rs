//! Edge (writes). Writes the generated files below `crds`. `crds/tests/generated.rs` checks that they are up to date.

use std::path::Path;
use std::process::ExitCode;

use crds::crd::generated_files;

fn main() -> ExitCode {
    for (file, text) in generated_files() {
        if let Err(error) = write(&Path::new(env!("CARGO_MANIFEST_DIR")).join(&file), &text) {
            print_error(&format!("could not write crds/{file}: {error}"));
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    std::fs::create_dir_all(path.parent().unwrap_or(path))?;
    std::fs::write(path, text)
}

#[expect(clippy::print_stderr, reason = "a command for developers prints its errors")]
fn print_error(message: &str) {
    eprintln!("{message}");
}
