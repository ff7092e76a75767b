//! Edge (reads). `resolver trust`: prints the command that marks unmanaged JARs as tested on a Minecraft version.

use std::fmt::Write as _;

use crds::PaperMCServer;
use crds::paper_mc_server::{TrustedFile, UnmanagedFile};
use serde_json::json;

use super::args::TrustArgs;
#[cfg(feature = "cluster")]
use super::cluster;
#[cfg(feature = "cluster")]
use super::explain::in_runtime;
use super::join::listed;
use super::session::one_server;
use super::{Output, files, manifests};
use crate::did_you_mean::nearest;
use crate::explain::phrases::in_a_shell;
use crate::from_api::server_name;
use crate::upstream::in_words;
use crate::version::Minecraft;

/// The maximum number of files that a spec may name.
const MOST: usize = 100;

/// Runs `resolver trust`.
pub(super) fn trust(trust: &TrustArgs) -> Result<Output, Output> {
    let failed = |said: String| Output::nothing_but(vec![said]);
    check_versions(&trust.minecraft).map_err(failed)?;
    let mut notes = Vec::new();
    let server = read_server(trust, &mut notes)?;
    let name = server_name(&server);
    let seen = server.status.map(|status| status.unmanaged).unwrap_or_default();
    let mut said = server.spec.unmanaged;
    for jar in &trust.jars {
        let sha256 = checked(&name, jar, &seen).map_err(failed)?;
        vouch(&mut said, jar, sha256, &trust.minecraft);
    }
    said.sort_by(|a, b| (&a.file, &a.sha256).cmp(&(&b.file, &b.sha256)));
    if said.len() > MOST {
        return Err(failed(format!("`spec.unmanaged` can name {MOST} files; remove those that are gone first")));
    }
    Ok(Output { notes, ..Output::only(command(&name, &said)) })
}

/// Reads the server with its status.
fn read_server(trust: &TrustArgs, notes: &mut Vec<String>) -> Result<PaperMCServer, Output> {
    let failed = |said: String| Output::nothing_but(vec![said]);
    #[cfg(feature = "cluster")]
    if trust.files.is_empty() {
        let found = in_runtime(cluster::read_one(&trust.place, &trust.server, notes)).map_err(failed)?;
        return found.map_err(|error| failed(in_words(&error)));
    }
    let files = files::read(&trust.files).map_err(|error| failed(in_words(&error)))?;
    let mut manifests = manifests::read(&files);
    notes.append(&mut manifests.notes);
    if !manifests.mistakes.is_empty() {
        return Err(Output::nothing_but(manifests.mistakes.iter().map(ToString::to_string).collect()));
    }
    let names: Vec<String> = manifests.servers.iter().map(|placed| server_name(&placed.object)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if names.is_empty() {
        return Err(failed("there is no PaperMCServer here".to_owned()));
    }
    let no_such =
        |_| failed(format!("there is no one server `{}` here; write {}", trust.server, listed(names.iter().copied())));
    let asked = trust.server.strip_prefix("server/").unwrap_or(&trust.server);
    let wanted = one_server(&names, Some(asked), "").map_err(no_such)?;
    let place = names.iter().position(|name| *name == wanted).expect("it is one of them");
    Ok(manifests.servers.swap_remove(place).object)
}

/// Accepts a version, or a glob for a minor version.
fn check_versions(written: &str) -> Result<(), String> {
    let line = written.strip_suffix(".x").or_else(|| written.strip_suffix(".*"));
    let globs = line.is_some_and(|line| {
        line.split('.').count() <= 2 && line.split('.').all(|number| number.parse::<u16>().is_ok())
    });
    let exact = written.parse::<Minecraft>().is_ok_and(|version| version.parts().is_some());
    if written.len() <= 64 && (exact || globs) {
        Ok(())
    } else {
        Err(format!(
            "`--minecraft` cannot be `{written}`; write a version such as `1.21.11`, or `1.21.x` for all of its line"
        ))
    }
}

/// The sha256 of a file that is on the server.
fn checked<'s>(server: &str, jar: &str, seen: &'s [UnmanagedFile]) -> Result<&'s str, String> {
    let jar = jar.strip_prefix("plugins/").unwrap_or(jar);
    let Some(file) = seen.iter().find(|file| file.file == jar) else {
        let files: Vec<&str> = seen.iter().map(|file| file.file.as_str()).collect();
        let fix = match nearest(jar, files.iter().copied()).next() {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if files.is_empty() => "its status names none (`status.unmanaged`)".to_owned(),
            None => format!("there is {}", listed(files.iter().copied())),
        };
        return Err(format!("{server} has no JAR `{jar}` that is not managed; {fix}"));
    };
    file.sha256.as_deref().ok_or_else(|| {
        format!(
            "the hash of {jar} is not known yet: the agent of {server} is of an older version until its next restart"
        )
    })
}

/// Adds the version to the trusted files. An entry for other bytes under the same name is obsolete and is removed.
fn vouch(said: &mut Vec<TrustedFile>, jar: &str, sha256: &str, minecraft: &str) {
    let file = jar.strip_prefix("plugins/").unwrap_or(jar);
    said.retain(|known| known.file != file || known.sha256 == sha256);
    if let Some(known) = said.iter_mut().find(|known| known.sha256 == sha256) {
        if !known.minecraft_versions.iter().any(|version| version == minecraft) {
            known.minecraft_versions.push(minecraft.to_owned());
        }
        return;
    }
    said.push(TrustedFile {
        file: file.to_owned(),
        sha256: sha256.to_owned(),
        minecraft_versions: vec![minecraft.to_owned()],
    });
}

/// The command, preceded by the same spec as a comment for manifests that are kept in git.
fn command(server: &str, said: &[TrustedFile]) -> String {
    let mut text = format!(
        "# As in the manifest of {server}, where it belongs if that is kept in git:\n#   spec:\n#     unmanaged:\n"
    );
    let json = |value: &serde_json::Value| value.to_string();
    for TrustedFile { file, sha256, minecraft_versions } in said {
        writeln!(
            text,
            "#       - {{file: {}, sha256: {}, minecraftVersions: {}}}",
            json(&json!(file)),
            json(&json!(sha256)),
            json(&json!(minecraft_versions))
        )
        .expect("writing to a String cannot fail");
    }
    let patch = json(&json!({"spec": {"unmanaged": said}}));
    let (namespace, name) = match server.split_once('/') {
        Some((namespace, name)) => (format!("-n {namespace} "), name),
        None => (String::new(), server),
    };
    writeln!(text, "kubectl {namespace}patch papermcserver {name} --type merge -p {}", in_a_shell(&patch))
        .expect("writing to a String cannot fail");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_accepts_version_or_release_line_glob() {
        for good in ["1.21.11", "26.2", "1.21.9-rc1", "1.21.x", "26.1.*"] {
            assert_eq!(check_versions(good), Ok(()), "{good}");
        }
        for bad in ["", "*", "x", "newest", "1.x.y", ".x"] {
            assert!(check_versions(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn trust_lapses_for_changed_bytes_and_stays_for_same() {
        let of = |file: &str, sha256: &str, version: &str| TrustedFile {
            file: file.to_owned(),
            sha256: sha256.to_owned(),
            minecraft_versions: vec![version.to_owned()],
        };
        let mut said = vec![of("a.jar", "old", "1.21.10"), of("b.jar", "b", "1.21.10")];
        vouch(&mut said, "plugins/a.jar", "new", "1.21.11");
        vouch(&mut said, "b.jar", "b", "1.21.11");
        vouch(&mut said, "b.jar", "b", "1.21.11");
        let mut b = of("b.jar", "b", "1.21.10");
        b.minecraft_versions.push("1.21.11".to_owned());
        assert_eq!(said, [b, of("a.jar", "new", "1.21.11")]);
    }
}
