//! Edge (reads). Reads manifests from files, directories and stdin.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// A text with its name for messages.
#[derive(Debug)]
pub(crate) struct InputFile {
    /// As the user named it, or `stdin`.
    pub(crate) name: String,
    /// The whole text.
    pub(crate) text: String,
}

/// Why manifests could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InputError {
    #[error("could not read `{name}`")]
    Read {
        name: String,
        #[source]
        source: io::Error,
    },
    #[error("`{name}` holds no .yaml, .yml or .json file")]
    NoFiles { name: String },
}

/// The file extensions that kubectl reads in a directory. Like kubectl, subdirectories are not read.
const EXTENSIONS: [&str; 3] = ["json", "yaml", "yml"];

/// Reads each of `names`: a file, the manifests of a directory sorted by name, or `-` for stdin.
pub(crate) fn read(names: &[String]) -> Result<Vec<InputFile>, InputError> {
    let mut files = Vec::new();
    for name in names {
        let failed = |source| InputError::Read { name: name.clone(), source };
        if name == "-" {
            let mut text = String::new();
            io::stdin()
                .read_to_string(&mut text)
                .map_err(|source| InputError::Read { name: "stdin".to_owned(), source })?;
            files.push(InputFile { name: "stdin".to_owned(), text });
        } else if Path::new(name).is_dir() {
            let inside = manifests_in(Path::new(name)).map_err(failed)?;
            if inside.is_empty() {
                return Err(InputError::NoFiles { name: name.clone() });
            }
            for path in inside {
                files.push(read_file(&path)?);
            }
        } else {
            files.push(read_file(Path::new(name))?);
        }
    }
    Ok(files)
}

fn manifests_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if extension.is_some_and(|extension| EXTENSIONS.contains(&extension)) && path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn read_file(path: &Path) -> Result<InputFile, InputError> {
    let name = path.display().to_string();
    match fs::read_to_string(path) {
        Ok(text) => Ok(InputFile { name, text }),
        Err(source) => Err(InputError::Read { name, source }),
    }
}
