//! Edge (reads). `resolver adopt`: writes manifests that reproduce exactly what an existing server directory runs.
//!
//! The manifests are solved before they are printed: the resulting files are compared with the files in the directory.

use std::fs;
use std::path::Path;

use jiff::Timestamp;

use crate::answers::{missing_data, resolve_all};
use crate::args::{AdoptArgs, SourceArgs};
use crate::input::files::InputFile;
use crate::input::{manifests, requests};
use crate::session::{Session, gather};
use crate::{ExitStatus, Output, input};
use resolver::model::lock::{Lock, LockReason, LockedFile};
use resolver::model::version::Minecraft;
use resolver::render::text;
use upstream::{Fetcher, format_chain};
use validate::admission::{LONGEST_PLUGIN_NAME, is_valid_server_name};

mod finding;
mod identify;
mod paper_version;
mod proposed_manifests;
mod server_dir;
mod software_signs;

use finding::AdoptFinding;
use identify::Origin;
use paper_version::VersionClaim;
use proposed_manifests::{Draft, Managed, ManagedFile};
use server_dir::{PluginFile, ServerDir};

/// Runs `resolver adopt`.
pub(crate) fn adopt(adopt: &AdoptArgs, now: Timestamp) -> Result<Output, Output> {
    let failed = |error: String| Output::failure(vec![error]);
    let name = server_name(adopt).map_err(failed)?;
    let namespace = namespace(adopt).map_err(failed)?;
    let mut folder = ServerDir::read(&adopt.directory).map_err(|error| failed(format_chain(&error)))?;
    let mut findings = std::mem::take(&mut folder.findings);
    let oldest = folder.paper.oldest();
    let catalog = match (&adopt.catalog, adopt.offline) {
        (None, true) => Some(input::cache_directory().map_err(failed)?),
        (catalog, _) => catalog.clone(),
    };
    // A directory that the user names must exist. The cache does not exist before the first use.
    let fetcher = match &catalog {
        Some(cache) if adopt.catalog.is_none() && !cache.is_dir() => {
            findings.push(AdoptFinding::NoStoredData);
            Fetcher::offline(cache)
        }
        catalog => input::fetcher(&adopt.sources, catalog.as_deref()).map_err(failed)?,
    };
    let lookup = identify::identify(&fetcher, &folder.plugins, &oldest, catalog.is_some(), now, &mut findings);
    let found = input::block_on(lookup).map_err(failed)?;
    folder.paper.identify_builds(&found.catalog.paper);
    // Stored data may be older than the build.
    let unpublished = folder.paper.unpublished_claim(&found.catalog.paper).filter(|_| catalog.is_none());
    if let Some(VersionClaim { file, minecraft, build }) = unpublished {
        let build = build.map_or_else(String::new, |build| format!(" build {build}"));
        return Err(failed(format!(
            "`{}` runs{build} of Minecraft {minecraft}, as {file} says, and PaperMC does not publish it. It may be a fork of Paper, \
             and only Paper can be adopted",
            adopt.directory.display()
        )));
    }
    let (minecraft, build) = select_paper(&folder, &mut findings);
    let origins = found.origins(&folder.plugins, &minecraft);
    if !folder.eula {
        findings.push(AdoptFinding::NoEula);
    }
    findings
        .extend(folder.properties.game_port.filter(|port| *port != 25565).map(|port| AdoptFinding::GamePort { port }));
    let Classified { managed, guesses, unmanaged } = classify_plugins(&name, &folder.plugins, &origins, &mut findings);
    let unread = findings.iter().filter_map(AdoptFinding::unread_data).collect();
    let rcon_port = folder.properties.rcon_port.filter(|port| *port != 25575 && *port != 0);
    let eula = folder.eula;
    let draft = Draft { name, namespace, minecraft, build, eula, rcon_port, managed, guesses, unmanaged, unread };
    let text = draft.render(&adopt.directory.display().to_string(), now);
    // Without any data, every answer would only be that there is none.
    if !findings.iter().any(|finding| matches!(finding, AdoptFinding::NoStoredData)) {
        check(&draft, &text, &folder, &adopt.sources, catalog.as_deref(), now, &mut findings);
    }
    let severe = findings.iter().any(AdoptFinding::is_severe);
    let stderr = findings.iter().map(ToString::to_string).collect();
    Ok(Output { stdout: text, stderr, status: if severe { ExitStatus::NoSolution } else { ExitStatus::Solved } })
}

/// `--name`, else the name of the directory.
fn server_name(adopt: &AdoptArgs) -> Result<String, String> {
    const RULE: &str = "at most 40 lower-case letters, digits and dashes, beginning with a letter";
    if let Some(name) = &adopt.name {
        let fits = is_valid_server_name(name);
        return if fits { Ok(name.clone()) } else { Err(format!("`--name` cannot be `{name}`: write {RULE}")) };
    }
    // Resolves `.` to a name, too.
    let whole = fs::canonicalize(&adopt.directory).unwrap_or_else(|_| adopt.directory.clone());
    let directory_name = whole.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = object_name(&directory_name, 40);
    if is_valid_server_name(&name) {
        Ok(name)
    } else {
        Err(format!(
            "a server cannot have the name `{}`: write `--name` with {RULE}",
            server_dir::one_line(&directory_name)
        ))
    }
}

fn namespace(adopt: &AdoptArgs) -> Result<Option<String>, String> {
    let Some(namespace) = &adopt.namespace else { return Ok(None) };
    if !namespace.is_empty() && object_name(namespace, 63) == *namespace {
        Ok(Some(namespace.clone()))
    } else {
        Err(format!("`--namespace` cannot be `{namespace}`: write at most 63 lower-case letters, digits and dashes"))
    }
}

/// Converts a text to an object name: lower-case letters, digits, and single dashes between them.
fn object_name(text: &str, max_length: usize) -> String {
    let plain: String = text.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let words: Vec<&str> = plain.split('-').filter(|word| !word.is_empty()).collect();
    let name: String = words.join("-").chars().take(max_length).collect();
    name.trim_end_matches('-').to_owned()
}

/// The Paper version for the manifest: the most trustworthy claim, with the build of a claim that agrees with it.
fn select_paper(folder: &ServerDir, findings: &mut Vec<AdoptFinding>) -> (Minecraft, Option<u32>) {
    let claims = &folder.paper.claims;
    let first = claims.first().expect("a directory without claims is refused");
    let minecraft = first.minecraft.clone();
    let with_build = claims.iter().find(|claim| claim.minecraft == minecraft && claim.build.is_some());
    let build = with_build.and_then(|claim| claim.build);
    let version_text = |minecraft: &Minecraft, build: Option<u32>| match build {
        Some(build) => format!("{minecraft} (build {build})"),
        None => minecraft.to_string(),
    };
    let trusted = with_build.unwrap_or(first);
    let conflicting = claims.iter().find(|claim| {
        claim.minecraft != minecraft || claim.build.is_some_and(|other| build.is_some_and(|build| build != other))
    });
    if let Some(other) = conflicting {
        findings.push(AdoptFinding::ConflictingVersions {
            trusted: (trusted.file.clone(), version_text(&minecraft, build)),
            other: (other.file.clone(), version_text(&other.minecraft, other.build)),
        });
    }
    if build.is_none() {
        findings.push(AdoptFinding::NoBuild { minecraft: minecraft.to_string() });
    }
    (minecraft, build)
}

/// Name of the Plugin object of a project. It contains the server's name, because another server of the namespace may
/// pin the same plugin to another version.
fn plugin_name<'m>(server: &str, project: &str, others: impl Iterator<Item = &'m Managed>) -> String {
    let taken: Vec<&str> = others.map(|other| other.object.as_str()).collect();
    let whole = object_name(&format!("{server}-{project}"), LONGEST_PLUGIN_NAME);
    let mut name = whole.clone();
    let mut number = 2;
    while taken.contains(&name.as_str()) {
        let max_length = LONGEST_PLUGIN_NAME - 4;
        name = format!("{}-{number}", whole.chars().take(max_length).collect::<String>());
        number += 1;
    }
    name
}

/// The files of `plugins`, by what is written for them.
struct Classified {
    /// The Plugins to write, by name.
    managed: Vec<Managed>,
    /// The Plugins to write as comments, by name. Their files are also unmanaged.
    guesses: Vec<Managed>,
    /// Pairs of an unmanaged file and its description.
    unmanaged: Vec<(String, String)>,
}

fn classify_plugins(
    server: &str,
    plugins: &[PluginFile],
    origins: &[Origin],
    findings: &mut Vec<AdoptFinding>,
) -> Classified {
    let mut managed: Vec<Managed> = Vec::new();
    let mut unmanaged = Vec::new();
    for (plugin, origin) in plugins.iter().zip(origins) {
        let (file, plugin) = (plugin.file.clone(), plugin.display_name());
        match origin {
            Origin::Release { key, release: _, version, main, pattern, listed } => {
                let file = ManagedFile { file, main: *main, pattern: pattern.clone() };
                if let Some(same) = managed.iter_mut().find(|managed| managed.key == *key) {
                    same.files.push(file);
                    continue;
                }
                managed.push(Managed {
                    object: plugin_name(server, &key.project, managed.iter()),
                    key: key.clone(),
                    version: version.clone(),
                    files: vec![file],
                    listed: *listed,
                });
            }
            Origin::Guess { key, .. } => {
                unmanaged.push((file.clone(), plugin.clone()));
                findings.push(AdoptFinding::Guess { file, plugin, project: key.to_string() });
            }
            Origin::Unmanaged(reason) => {
                unmanaged.push((file.clone(), plugin.clone()));
                findings.push(AdoptFinding::Unmanaged { file, plugin, reason: reason.clone() });
            }
        }
    }
    let mut guesses = guessed_plugins(server, plugins, origins, &managed);
    managed.sort_by(|a, b| a.object.cmp(&b.object));
    guesses.sort_by(|a, b| a.object.cmp(&b.object));
    Classified { managed, guesses, unmanaged }
}

/// The Plugins of guessed projects that no managed Plugin has.
fn guessed_plugins(server: &str, plugins: &[PluginFile], origins: &[Origin], managed: &[Managed]) -> Vec<Managed> {
    let mut guesses: Vec<Managed> = Vec::new();
    for (plugin, origin) in plugins.iter().zip(origins) {
        let Origin::Guess { key, version, listed } = origin else { continue };
        if managed.iter().chain(&guesses).any(|other| other.key == *key) {
            continue;
        }
        let file = ManagedFile { file: plugin.file.clone(), main: true, pattern: String::new() };
        guesses.push(Managed {
            object: plugin_name(server, &key.project, managed.iter().chain(&guesses)),
            key: key.clone(),
            version: version.clone(),
            files: vec![file],
            listed: *listed,
        });
    }
    guesses
}

/// Solves the written manifests and reports every difference from the directory.
fn check(
    draft: &Draft,
    text: &str,
    folder: &ServerDir,
    sources: &SourceArgs,
    catalog: Option<&Path>,
    now: Timestamp,
    findings: &mut Vec<AdoptFinding>,
) {
    let file = InputFile { name: "what is written".to_owned(), text: text.to_owned() };
    let mut notes = Vec::new();
    let checked = match requests::check(manifests::read(&[file]), &mut notes) {
        Ok(checked) => checked,
        Err(violations) => {
            let explanation = violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
            return findings.push(AdoptFinding::NotSolved { explanation });
        }
    };
    let session = gather(sources, catalog, checked, &mut notes, now, |catalog, requests| {
        let answers = resolve_all(catalog, requests, now);
        let missing = missing_data(&answers);
        (answers, missing)
    });
    let Session { catalog, answer, .. } = match session {
        Ok(session) => session,
        Err(output) => return findings.push(AdoptFinding::NotSolved { explanation: output.stderr.join("\n") }),
    };
    if let Some(build) = draft.build {
        let of = catalog.paper.iter().find(|paper| paper.minecraft == draft.minecraft);
        let published = of.and_then(|paper| paper.builds.iter().find(|candidate| candidate.number == build));
        let all_published = catalog.paper.iter().flat_map(|paper| &paper.builds);
        let all_published: Vec<_> = all_published.filter_map(|build| build.file.hash.as_ref()).collect();
        let unpublished = folder.paper.jars.iter().find(|jar| !all_published.contains(&&jar.hash));
        if let Some(jar) = unpublished.filter(|_| published.is_some()) {
            let paper = format!("Paper {}-{build}", draft.minecraft);
            findings.push(AdoptFinding::UnpublishedJar { file: jar.file.clone(), paper });
        }
    }
    for (_, answer) in &answer {
        match answer {
            Ok(resolution) => report_differences(&resolution.lock, &folder.plugins, findings),
            Err(unsolvable) => {
                let explanation = text::render(&unsolvable.explanation(), now).trim_end().to_owned();
                findings.push(AdoptFinding::NotSolved { explanation });
            }
        }
    }
}

/// Reports files of a lock that are not in the directory.
fn report_differences(lock: &Lock, files: &[PluginFile], findings: &mut Vec<AdoptFinding>) {
    for locked in &lock.plugins {
        let is_present = |locked: &LockedFile| files.iter().any(|file| file.has_hash(&locked.hash));
        if locked.files().all(is_present) {
            continue;
        }
        findings.push(match &locked.reason {
            LockReason::RequestedBy(_) => {
                AdoptFinding::DifferentFile { plugin: locked.name.clone(), version: locked.version.clone() }
            }
            LockReason::NeededBy(needed_by) => {
                let same = |file: &&PluginFile| file.facts.name.eq_ignore_ascii_case(&locked.name);
                let file = files.iter().find(same).map(|file| file.file.clone());
                AdoptFinding::AdditionalPlugin { plugin: locked.name.clone(), needed_by: needed_by.clone(), file }
            }
        });
    }
}

#[cfg(test)]
mod adopt_fuzz;
#[cfg(test)]
mod tests;
