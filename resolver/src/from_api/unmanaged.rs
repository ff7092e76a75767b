//! Pure. JARs of people's own: those that were seen on a server, with what its owner says about them.

use crds::paper_mc_server::{TrustedFile, UnmanagedFile};

use crate::unmanaged_jar::UnmanagedJar;

/// The JARs that were seen, by file. Trust is in bytes: a file that has changed since has lost it, whatever it is called.
pub fn unmanaged(spec: &crds::PaperMCServerSpec, seen: &[UnmanagedFile]) -> Vec<UnmanagedJar> {
    let said_of = |sha256: &str| -> Vec<String> {
        let said = spec.unmanaged.iter().filter(|said| said.sha256.eq_ignore_ascii_case(sha256));
        said.flat_map(|TrustedFile { minecraft_versions, .. }| minecraft_versions.iter().cloned()).collect()
    };
    let mut jars: Vec<UnmanagedJar> = seen
        .iter()
        .map(|UnmanagedFile { file, sha256, sha512, name, provides, depend, api_version, java }| UnmanagedJar {
            file: file.clone(),
            sha256: sha256.clone(),
            sha512: sha512.clone(),
            name: name.clone(),
            provides: provides.clone(),
            depend: depend.clone(),
            // One that is no version is refused by every server, or by none: that is not known here.
            api_version: api_version.as_deref().and_then(|version| version.parse().ok()),
            java: *java,
            trusted: sha256.as_deref().map(said_of).unwrap_or_default(),
        })
        .collect();
    jars.sort();
    jars
}
