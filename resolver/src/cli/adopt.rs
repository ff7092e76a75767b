//! Edge (reads). `resolver adopt`: writes manifests that reproduce exactly what an existing server directory runs.
//!
//! The manifests are solved before they are printed: the resulting files are compared with the files in the directory.

use std::fs;
use std::path::Path;

use jiff::Timestamp;

use super::args::{AdoptArgs, SourceArgs};
use super::files::InputFile;
use super::session::{Session, answers, gather, lacking};
use super::{ExitStatus, Output, cel_rules, explain, manifests, requests};
use crate::explain::text;
use crate::lock::{Lock, LockReason, LockedFile};
use crate::upstream::in_words;
use crate::version::Minecraft;

mod finding;
mod identify;
mod paper_version;
mod proposed_manifests;
mod server_dir;

use finding::AdoptFinding;
use identify::Origin;
use proposed_manifests::{Draft, Managed, ManagedFile};
use server_dir::{PluginFile, ServerDir};

/// The longest allowed name of a Plugin.
const LONGEST_PLUGIN_NAME: usize = 63;

/// Runs `resolver adopt`.
pub(super) fn adopt(adopt: &AdoptArgs, now: Timestamp) -> Result<Output, Output> {
    let failed = |said: String| Output::nothing_but(vec![said]);
    let name = server_name(adopt).map_err(failed)?;
    let namespace = namespace(adopt).map_err(failed)?;
    let mut folder = ServerDir::read(&adopt.directory).map_err(|error| failed(in_words(&error)))?;
    let mut doubts = std::mem::take(&mut folder.doubts);
    let oldest = folder.paper.oldest();
    let catalog = match (&adopt.catalog, adopt.offline) {
        (None, true) => Some(explain::cache().map_err(failed)?),
        (catalog, _) => catalog.clone(),
    };
    let fetcher = explain::fetcher(&adopt.sources, catalog.as_deref()).map_err(failed)?;
    let finding = identify::find(&fetcher, &folder.plugins, &oldest, catalog.is_some(), now, &mut doubts);
    let found = explain::in_runtime(finding).map_err(failed)?;
    folder.paper.recognise(&found.catalog.paper);
    let (minecraft, build) = settle_paper(&folder, &mut doubts);
    let origins = found.origins(&folder.plugins, &minecraft);
    if !folder.eula {
        doubts.push(AdoptFinding::NoEula);
    }
    doubts
        .extend(folder.properties.game_port.filter(|port| *port != 25565).map(|port| AdoptFinding::GamePort { port }));
    let (managed, unmanaged) = sort_out(&name, &folder.plugins, &origins, &mut doubts);
    let rcon_port = folder.properties.rcon_port.filter(|port| *port != 25575 && *port != 0);
    let draft = Draft { name, namespace, minecraft, build, eula: folder.eula, rcon_port, managed, unmanaged };
    let text = draft.render(&adopt.directory.display().to_string(), now);
    check(&draft, &text, &folder, &adopt.sources, catalog.as_deref(), now, &mut doubts);
    let grave = doubts.iter().any(AdoptFinding::is_grave);
    let notes = doubts.iter().map(ToString::to_string).collect();
    Ok(Output { answer: text, notes, end: if grave { ExitStatus::NoSolution } else { ExitStatus::Solved } })
}

/// `--name`, else the name of the directory.
fn server_name(adopt: &AdoptArgs) -> Result<String, String> {
    const RULE: &str = "at most 40 lower-case letters, digits and dashes, beginning with a letter";
    if let Some(name) = &adopt.name {
        let fits = cel_rules::can_name_a_server(name);
        return if fits { Ok(name.clone()) } else { Err(format!("`--name` cannot be `{name}`; write {RULE}")) };
    }
    // Resolves `.` to a name, too.
    let whole = fs::canonicalize(&adopt.directory).unwrap_or_else(|_| adopt.directory.clone());
    let called = whole.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = object_name(&called, 40);
    if cel_rules::can_name_a_server(&name) {
        Ok(name)
    } else {
        Err(format!("no server can be called `{}`; write `--name` with {RULE}", server_dir::one_line(&called)))
    }
}

fn namespace(adopt: &AdoptArgs) -> Result<Option<String>, String> {
    let Some(namespace) = &adopt.namespace else { return Ok(None) };
    if !namespace.is_empty() && object_name(namespace, 63) == *namespace {
        Ok(Some(namespace.clone()))
    } else {
        Err(format!("`--namespace` cannot be `{namespace}`; write at most 63 lower-case letters, digits and dashes"))
    }
}

/// Converts a text to an object name: lower-case letters, digits, and single dashes between them.
fn object_name(text: &str, most: usize) -> String {
    let plain: String = text.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let words: Vec<&str> = plain.split('-').filter(|word| !word.is_empty()).collect();
    let name: String = words.join("-").chars().take(most).collect();
    name.trim_end_matches('-').to_owned()
}

/// The Paper version for the manifest: the most trustworthy claim, with the build of a claim that agrees with it.
fn settle_paper(folder: &ServerDir, doubts: &mut Vec<AdoptFinding>) -> (Minecraft, Option<u32>) {
    let claims = &folder.paper.claims;
    let first = claims.first().expect("a folder without claims is not adopted");
    let minecraft = first.minecraft.clone();
    let with_build = claims.iter().find(|claim| claim.minecraft == minecraft && claim.build.is_some());
    let build = with_build.and_then(|claim| claim.build);
    let says = |minecraft: &Minecraft, build: Option<u32>| match build {
        Some(build) => format!("{minecraft} (build {build})"),
        None => minecraft.to_string(),
    };
    let believed = with_build.unwrap_or(first);
    let otherwise = claims.iter().find(|claim| {
        claim.minecraft != minecraft || claim.build.is_some_and(|other| build.is_some_and(|build| build != other))
    });
    if let Some(other) = otherwise {
        doubts.push(AdoptFinding::PaperDisagrees {
            believed: (believed.file.clone(), says(&minecraft, build)),
            other: (other.file.clone(), says(&other.minecraft, other.build)),
        });
    }
    if build.is_none() {
        doubts.push(AdoptFinding::NoBuild { minecraft: minecraft.to_string() });
    }
    (minecraft, build)
}

/// Name of the Plugin object of a project. It contains the server's name, because another server of the namespace may
/// pin the same plugin to another version.
fn plugin_name(server: &str, project: &str, others: &[Managed]) -> String {
    let whole = object_name(&format!("{server}-{project}"), LONGEST_PLUGIN_NAME);
    let mut name = whole.clone();
    let mut number = 2;
    while others.iter().any(|other| other.object == name) {
        let most = LONGEST_PLUGIN_NAME - 4;
        name = format!("{}-{number}", whole.chars().take(most).collect::<String>());
        number += 1;
    }
    name
}

/// The Plugins to write, by name, and the unmanaged files with a description of each.
fn sort_out(
    server: &str,
    plugins: &[PluginFile],
    origins: &[Origin],
    doubts: &mut Vec<AdoptFinding>,
) -> (Vec<Managed>, Vec<(String, String)>) {
    let mut managed: Vec<Managed> = Vec::new();
    let mut unmanaged = Vec::new();
    for (plugin, origin) in plugins.iter().zip(origins) {
        match origin {
            Origin::Of { key, release: _, version, main, pattern, listed, guess } => {
                if *guess {
                    doubts.push(AdoptFinding::Guess {
                        file: plugin.file.clone(),
                        plugin: plugin.named(),
                        project: key.to_string(),
                    });
                }
                let file = ManagedFile { file: plugin.file.clone(), main: *main, pattern: pattern.clone() };
                if let Some(same) = managed.iter_mut().find(|managed| managed.key == *key) {
                    same.files.push(file);
                    continue;
                }
                managed.push(Managed {
                    object: plugin_name(server, &key.project, &managed),
                    key: key.clone(),
                    version: version.clone(),
                    files: vec![file],
                    guess: *guess,
                    listed: *listed,
                });
            }
            Origin::Nobody(because) => {
                unmanaged.push((plugin.file.clone(), plugin.named()));
                doubts.push(AdoptFinding::Unmanaged {
                    file: plugin.file.clone(),
                    plugin: plugin.named(),
                    because: because.clone(),
                });
            }
        }
    }
    managed.sort_by(|a, b| a.object.cmp(&b.object));
    (managed, unmanaged)
}

/// Solves the written manifests and reports every difference from the directory.
fn check(
    draft: &Draft,
    text: &str,
    folder: &ServerDir,
    sources: &SourceArgs,
    catalog: Option<&Path>,
    now: Timestamp,
    doubts: &mut Vec<AdoptFinding>,
) {
    let file = InputFile { name: "what is written".to_owned(), text: text.to_owned() };
    let mut notes = Vec::new();
    let checked = match requests::check(manifests::read(&[file]), &mut notes) {
        Ok(checked) => checked,
        Err(mistakes) => {
            let why = mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
            return doubts.push(AdoptFinding::NoAnswer { why });
        }
    };
    let gathered = gather(sources, catalog, checked, &mut notes, now, |catalog, requests| {
        let answers = answers(catalog, requests, now);
        let lacking = lacking(&answers);
        (answers, lacking)
    });
    let Session { catalog, answer, .. } = match gathered {
        Ok(gathered) => gathered,
        Err(said) => return doubts.push(AdoptFinding::NoAnswer { why: said.notes.join("\n") }),
    };
    if let Some(build) = draft.build {
        let of = catalog.paper.iter().find(|paper| paper.minecraft == draft.minecraft);
        let published = of.and_then(|paper| paper.builds.iter().find(|known| known.number == build));
        let all_published = catalog.paper.iter().flat_map(|paper| &paper.builds);
        let all_published: Vec<_> = all_published.filter_map(|build| build.file.hash.as_ref()).collect();
        let ours = folder.paper.jars.iter().find(|jar| !all_published.contains(&&jar.hash));
        if let Some(jar) = ours.filter(|_| published.is_some()) {
            let paper = format!("Paper {}-{build}", draft.minecraft);
            doubts.push(AdoptFinding::NotFills { file: jar.file.clone(), paper });
        }
    }
    for (_, answer) in &answer {
        match answer {
            Ok(resolution) => compare(&resolution.lock, draft, &folder.plugins, doubts),
            Err(unsolvable) => {
                let why = text::render(&unsolvable.explanation(), now).trim_end().to_owned();
                doubts.push(AdoptFinding::NoAnswer { why });
            }
        }
    }
}

/// Reports files of a lock that are not in the directory.
fn compare(lock: &Lock, draft: &Draft, files: &[PluginFile], doubts: &mut Vec<AdoptFinding>) {
    for locked in &lock.plugins {
        let guessed = draft.managed.iter().any(|managed| managed.guess && managed.key == locked.key);
        let is_there = |locked: &LockedFile| files.iter().any(|file| file.has(&locked.hash));
        if guessed || locked.files().all(is_there) {
            continue;
        }
        doubts.push(match &locked.reason {
            LockReason::RequestedBy(_) => {
                AdoptFinding::OtherFile { plugin: locked.name.clone(), version: locked.version.clone() }
            }
            LockReason::NeededBy(needed_by) => {
                let same = |file: &&PluginFile| file.facts.name.eq_ignore_ascii_case(&locked.name);
                let file = files.iter().find(same).map(|file| file.file.clone());
                AdoptFinding::Further { plugin: locked.name.clone(), needed_by: needed_by.clone(), file }
            }
        });
    }
}

#[cfg(test)]
mod adopt_fuzz;
#[cfg(test)]
mod tests;
