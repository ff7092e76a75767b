//! Edge (reads). Gives the operator the digest of the agent's sources. With it, a new operator recognises an agent that has not changed, and restarts no
//! server for it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[path = "build/agent_sources.rs"]
mod agent_sources;

use agent_sources::{AGENT_CRATES, Digest, code_of, declared_dependencies, declared_lines, locked_packages};

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut read_paths = vec![root.join("Cargo.toml"), root.join("Cargo.lock"), root.join("rust-toolchain.toml")];
    let [workspace, lock, toolchain] = [&read_paths[0], &read_paths[1], &read_paths[2]].map(fs::read_to_string);
    let (workspace, mut dependencies, mut digest) = (workspace?, Vec::new(), Digest::default());
    digest.add(&toolchain?);
    for name in AGENT_CRATES {
        let folder = root.join(name);
        let manifest = fs::read_to_string(folder.join("Cargo.toml"))?;
        dependencies.extend(declared_dependencies(&manifest));
        digest.add(name);
        for file in source_files(&folder.join("src"))? {
            digest.add(&file.strip_prefix(&root).unwrap_or(&file).to_string_lossy());
            digest.add(&code_of(&fs::read_to_string(&file)?));
        }
        read_paths.extend([folder.join("src"), folder.join("Cargo.toml")]);
    }
    dependencies.sort();
    dependencies.dedup();
    digest.add(&declared_lines(&workspace, &dependencies));
    digest.add(&locked_packages(&lock?, &dependencies).join("\n"));
    for path in read_paths {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rustc-env=AGENT_DIGEST={}", digest.to_hex());
    Ok(())
}

/// All files of a folder except tests, sorted.
fn source_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name == "tests" || name == "tests.rs" {
            continue;
        }
        if path.is_dir() { files.extend(source_files(&path)?) } else { files.push(path) }
    }
    files.sort();
    Ok(files)
}
