//! Pure. Combines the unmanaged JARs observed on a server with the user's declarations about them.

use crds::paper_mc_server::{TrustedFile, UnmanagedFile};

use resolver::model::unmanaged_jar::UnmanagedJar;

/// The observed JARs, by file. Trust applies to bytes: a file that changed since loses it, whatever its name is.
pub fn unmanaged(spec: &crds::PaperMCServerSpec, observed: &[UnmanagedFile]) -> Vec<UnmanagedJar> {
    let trusted_versions = |sha256: &str| -> Vec<String> {
        let trusted = spec.unmanaged.iter().filter(|trusted| trusted.sha256.eq_ignore_ascii_case(sha256));
        trusted.flat_map(|TrustedFile { minecraft_versions, .. }| minecraft_versions.iter().cloned()).collect()
    };
    let mut jars: Vec<UnmanagedJar> = observed
        .iter()
        .map(|UnmanagedFile { file, sha256, sha512, name, provides, depend, api_version, java }| UnmanagedJar {
            file: file.clone(),
            sha256: sha256.clone(),
            sha512: sha512.clone(),
            name: name.clone(),
            provides: provides.clone(),
            depend: depend.clone(),
            api_version: api_version.as_deref().map(Into::into),
            java: *java,
            trusted: sha256.as_deref().map(trusted_versions).unwrap_or_default(),
        })
        .collect();
    jars.sort();
    jars
}
