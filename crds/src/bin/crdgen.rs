//! Edge (writes). Writes what is generated from the types below `crds`, or with `--check` says which of them differ.

use std::path::Path;
use std::process::ExitCode;

use crds::definitions::generated;

fn main() -> ExitCode {
    let check = std::env::args().nth(1).as_deref() == Some("--check");
    let mut differs = false;
    for (file, text) in generated() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(&file);
        if check {
            if std::fs::read_to_string(&path).ok().as_deref() != Some(text.as_str()) {
                complain(&format!("crds/{file} is not what crds/src says: run `make generate`"));
                differs = true;
            }
        } else if let Err(error) = write(&path, &text) {
            complain(&format!("could not write crds/{file}: {error}"));
            differs = true;
        }
    }
    if differs { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    std::fs::create_dir_all(path.parent().unwrap_or(path))?;
    std::fs::write(path, text)
}

#[expect(clippy::print_stderr, reason = "a command for developers says what is wrong where they see it")]
fn complain(what: &str) {
    eprintln!("{what}");
}
