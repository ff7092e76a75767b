//! Edge (reads). `resolver trust`: prints the command that marks unmanaged JARs as tested on a Minecraft version.

use std::fmt::Write as _;

use crds::PaperMCServer;
use crds::paper_mc_server::{TrustedFile, UnmanagedFile};
use serde_json::json;

use crate::Output;
use crate::args::TrustArgs;
use crate::cluster;
use crate::input::block_on;
use crate::input::{files, manifests};
use crate::output::join::or_list;
use crate::select_server::select_server;
use from_api::server_name;
use resolver::model::did_you_mean::nearest;
use resolver::model::version::Minecraft;
use resolver::render::phrases::shell_quoted;
use upstream::format_chain;

/// The maximum number of files that a spec may name.
const MAX_TRUSTED_FILES: usize = 100;

/// Runs `resolver trust`.
pub(crate) fn trust(trust: &TrustArgs) -> Result<Output, Output> {
    let failed = |error: String| Output::failure(vec![error]);
    check_version_pattern(&trust.minecraft).map_err(failed)?;
    let mut notes = Vec::new();
    let server = read_server(trust, &mut notes)?;
    let name = server_name(&server);
    let reported = server.status.map(|status| status.unmanaged).unwrap_or_default();
    let mut trusted = server.spec.unmanaged;
    for jar in &trust.jars {
        let sha256 = reported_sha256(&name, jar, &reported).map_err(failed)?;
        trust_file(&mut trusted, jar, sha256, &trust.minecraft);
    }
    trusted.sort_by(|a, b| (&a.file, &a.sha256).cmp(&(&b.file, &b.sha256)));
    if trusted.len() > MAX_TRUSTED_FILES {
        return Err(failed(format!(
            "`spec.unmanaged` can name {MAX_TRUSTED_FILES} files: first remove those that no longer exist"
        )));
    }
    Ok(Output { stderr: notes, ..Output::success(render_command(&name, &trusted)) })
}

/// Reads the server with its status.
fn read_server(trust: &TrustArgs, notes: &mut Vec<String>) -> Result<PaperMCServer, Output> {
    let failed = |error: String| Output::failure(vec![error]);
    if trust.files.is_empty() {
        let found = block_on(cluster::read_one(&trust.place, &trust.server, notes)).map_err(failed)?;
        return found.map_err(|error| failed(format_chain(&error)));
    }
    let files = files::read(&trust.files).map_err(|error| failed(format_chain(&error)))?;
    let mut manifests = manifests::read(&files);
    notes.append(&mut manifests.notes);
    if !manifests.violations.is_empty() {
        return Err(Output::failure(manifests.violations.iter().map(ToString::to_string).collect()));
    }
    let names: Vec<String> = manifests.servers.iter().map(|placed| server_name(&placed.object)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if names.is_empty() {
        return Err(failed("there is no PaperMCServer here".to_owned()));
    }
    let no_such = |_| {
        failed(format!(
            "`{}` is not the name of exactly one server here: write {}",
            trust.server,
            or_list(names.iter().copied())
        ))
    };
    let name = trust.server.strip_prefix("server/").unwrap_or(&trust.server);
    let wanted = select_server(&names, Some(name), "").map_err(no_such)?;
    let index = names.iter().position(|name| *name == wanted).expect("the name is in the list");
    Ok(manifests.servers.swap_remove(index).object)
}

/// Accepts a version, or a glob for a minor version.
fn check_version_pattern(written: &str) -> Result<(), String> {
    let minor = written.strip_suffix(".x").or_else(|| written.strip_suffix(".*"));
    let globs = minor.is_some_and(|minor| {
        minor.split('.').count() <= 2 && minor.split('.').all(|number| number.parse::<u16>().is_ok())
    });
    let exact = written.parse::<Minecraft>().is_ok_and(|version| version.parts().is_some());
    if written.len() <= 64 && (exact || globs) {
        Ok(())
    } else {
        Err(format!(
            "`--minecraft` cannot be `{written}`: write a version such as `1.21.11`, or `1.21.x` for all of its line"
        ))
    }
}

/// The sha256 of a file that is on the server.
fn reported_sha256<'s>(server: &str, jar: &str, reported: &'s [UnmanagedFile]) -> Result<&'s str, String> {
    let jar = jar.strip_prefix("plugins/").unwrap_or(jar);
    let Some(file) = reported.iter().find(|file| file.file == jar) else {
        let files: Vec<&str> = reported.iter().map(|file| file.file.as_str()).collect();
        let fix = match nearest(jar, files.iter().copied()).next() {
            Some(suggestion) => format!("did you mean `{suggestion}`?"),
            None if files.is_empty() => "its status names none (`status.unmanaged`)".to_owned(),
            None => format!("there is {}", or_list(files.iter().copied())),
        };
        return Err(format!("{server} has no unmanaged JAR `{jar}`: {fix}"));
    };
    file.sha256.as_deref().ok_or_else(|| {
        format!(
            "the hash of {jar} is not known yet: the agent of {server} is of an older version until its next restart"
        )
    })
}

/// Adds the version to the trusted files. An entry for other bytes under the same name is obsolete and is removed.
fn trust_file(trusted: &mut Vec<TrustedFile>, jar: &str, sha256: &str, minecraft: &str) {
    let file = jar.strip_prefix("plugins/").unwrap_or(jar);
    trusted.retain(|trusted_file| trusted_file.file != file || trusted_file.sha256 == sha256);
    if let Some(trusted_file) = trusted.iter_mut().find(|trusted_file| trusted_file.sha256 == sha256) {
        if !trusted_file.minecraft_versions.iter().any(|version| version == minecraft) {
            trusted_file.minecraft_versions.push(minecraft.to_owned());
        }
        return;
    }
    trusted.push(TrustedFile {
        file: file.to_owned(),
        sha256: sha256.to_owned(),
        minecraft_versions: vec![minecraft.to_owned()],
    });
}

/// The command, preceded by the same spec as a comment for manifests that are kept in git.
fn render_command(server: &str, trusted: &[TrustedFile]) -> String {
    let mut text =
        format!("# If the manifest of {server} is stored in git, add this there:\n#   spec:\n#     unmanaged:\n");
    let json = |value: &serde_json::Value| value.to_string();
    for TrustedFile { file, sha256, minecraft_versions } in trusted {
        writeln!(
            text,
            "#       - {{file: {}, sha256: {}, minecraftVersions: {}}}",
            json(&json!(file)),
            json(&json!(sha256)),
            json(&json!(minecraft_versions))
        )
        .expect("writing to a String cannot fail");
    }
    let patch = json(&json!({"spec": {"unmanaged": trusted}}));
    let (namespace, name) = match server.split_once('/') {
        Some((namespace, name)) => (format!("-n {namespace} "), name),
        None => (String::new(), server),
    };
    writeln!(text, "kubectl {namespace}patch papermcserver {name} --type merge -p {}", shell_quoted(&patch))
        .expect("writing to a String cannot fail");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_accepts_version_or_release_line_glob() {
        for good in ["1.21.11", "26.2", "1.21.9-rc1", "1.21.x", "26.1.*"] {
            assert_eq!(check_version_pattern(good), Ok(()), "{good}");
        }
        for bad in ["", "*", "x", "newest", "1.x.y", ".x"] {
            assert!(check_version_pattern(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn trust_lapses_for_changed_bytes_and_stays_for_same() {
        let of = |file: &str, sha256: &str, version: &str| TrustedFile {
            file: file.to_owned(),
            sha256: sha256.to_owned(),
            minecraft_versions: vec![version.to_owned()],
        };
        let mut trusted = vec![of("a.jar", "old", "1.21.10"), of("b.jar", "b", "1.21.10")];
        trust_file(&mut trusted, "plugins/a.jar", "new", "1.21.11");
        trust_file(&mut trusted, "b.jar", "b", "1.21.11");
        trust_file(&mut trusted, "b.jar", "b", "1.21.11");
        let mut b = of("b.jar", "b", "1.21.10");
        b.minecraft_versions.push("1.21.11".to_owned());
        assert_eq!(trusted, [b, of("a.jar", "new", "1.21.11")]);
    }
}
