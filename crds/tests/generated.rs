//! Edge (reads). Checks that the generated files in the repository match the types.

use std::fs;
use std::path::Path;

use crds::crd::generated_files;

#[test]
fn generated_files_match_types() {
    let differs = |file: &String, text: &String| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        fs::read_to_string(path).ok().as_ref() != Some(text)
    };
    let other: Vec<String> =
        generated_files().into_iter().filter(|(file, text)| differs(file, text)).map(|(file, _)| file).collect();
    assert!(other.is_empty(), "outdated files: {}. Run `make generate`", other.join(", "));
}
