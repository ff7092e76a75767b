//! Edge (writes). Writes the definitions below `crds/manifests`, or with `--check` says which of them differ.

use std::path::Path;
use std::process::ExitCode;

use crds::definitions::manifests;

fn main() -> ExitCode {
    let check = std::env::args().nth(1).as_deref() == Some("--check");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests");
    let mut differs = false;
    for (file, text) in manifests() {
        let path = folder.join(file);
        if check {
            if std::fs::read_to_string(&path).ok().as_deref() != Some(text.as_str()) {
                complain(&format!("crds/manifests/{file} is not what crds/src says: run `make generate`"));
                differs = true;
            }
        } else if let Err(error) = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, &text)) {
            complain(&format!("could not write crds/manifests/{file}: {error}"));
            differs = true;
        }
    }
    if differs { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

#[expect(clippy::print_stderr, reason = "a command for developers says what is wrong where they see it")]
fn complain(what: &str) {
    eprintln!("{what}");
}
