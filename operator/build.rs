//! Edge (reads). Gives the operator the digest of the agent's sources. With it, a new operator recognises an agent that has not changed, and restarts no
//! server for it.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use toml::Table;

#[path = "build/agent_sources.rs"]
mod agent_sources;

use agent_sources::{AGENT_CRATES, code_of, declared_dependencies, declared_lines, locked_packages};

/// Length of the digest in hex digits. It must only tell releases apart.
const DIGEST_LENGTH: usize = 16;

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut read_paths: Vec<PathBuf> =
        ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml"].iter().map(|name| root.join(name)).collect();
    let (workspace, lock) = (read_table(&read_paths[0])?, read_table(&read_paths[1])?);
    let mut parts = vec![fs::read_to_string(&read_paths[2])?];
    let mut dependencies = BTreeSet::new();
    for name in AGENT_CRATES {
        let folder = root.join(name);
        dependencies.extend(declared_dependencies(&read_table(&folder.join("Cargo.toml"))?));
        for file in source_files(&folder.join("src"))? {
            parts.push(file.strip_prefix(&root).unwrap_or(&file).to_string_lossy().into_owned());
            parts.push(code_of(&fs::read_to_string(&file)?));
        }
        read_paths.extend([folder.join("src"), folder.join("Cargo.toml")]);
    }
    parts.push(declared_lines(&workspace, &dependencies));
    parts.extend(locked_packages(&lock, &dependencies));
    for path in read_paths {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    println!("cargo::rerun-if-changed=build");
    // No part contains a NUL, so it marks the end of each.
    let digest = format!("{:x}", Sha256::digest(parts.join("\0")));
    println!("cargo::rustc-env=AGENT_DIGEST={}", &digest[..DIGEST_LENGTH]);
    Ok(())
}

fn read_table(path: &Path) -> Result<Table, Box<dyn Error>> {
    Ok(fs::read_to_string(path)?.parse()?)
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
