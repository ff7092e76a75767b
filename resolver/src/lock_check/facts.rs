//! Pure. Checks whether a lock's facts about versions still have a source, and whether the dates still give its
//! guesses.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{StaleFact, build_index, is_same_project};
use crate::explanation::Unanswerable;
use crate::model::catalog::Catalog;
use crate::model::compatibility_facts::UsedFact;
use crate::model::lock::{Guess, Lock};
use crate::model::request::Request;

/// The facts of a lock about versions that no source states any more, and its guesses that the dates no longer give, as
/// of `now`.
///
/// # Errors
/// The catalog lacks a project that the request needs.
pub fn stale_facts(
    lock: &Lock,
    catalog: &Catalog,
    request: &Request,
    now: Timestamp,
) -> Result<Vec<StaleFact>, Box<Unanswerable>> {
    if request.software != lock.software {
        return Ok(Vec::new());
    }
    let candidates = build_index(catalog, request, now)?;
    let (mut facts, mut guesses, mut read) = (Vec::new(), Vec::new(), BTreeSet::new());
    for locked in &lock.plugins {
        let on = |&at: &usize| {
            is_same_project(locked, &candidates.plugins[at].project.key, &candidates.plugins[at].project.id)
        };
        let Some(at) = (0..candidates.plugins.len()).find(on) else { continue };
        let plugin = &candidates.plugins[at];
        let position = plugin.releases.iter().position(|candidate| candidate.release.id == locked.release_id);
        // The dependencies of a missing or unusable release were not resolved. That it is missing is reported
        // elsewhere.
        let Some(position) = position.filter(|&position| plugin.releases[position].unusable.is_none()) else {
            continue;
        };
        read.insert((locked.name.as_str(), locked.version.as_str()));
        facts.extend(plugin.edges[position].iter().filter_map(|edge| candidates.fact(at, position, edge)));
        guesses.extend(candidates.guesses(at, position));
    }
    let is_unread = |plugin: &str, version: &str| {
        let is_locked = lock.plugins.iter().any(|locked| locked.name == plugin && locked.version == version);
        is_locked && !read.contains(&(plugin, version))
    };
    let mut stale = Vec::new();
    for used in &lock.bounds {
        // The source of the fact may have changed.
        let is_same = |UsedFact { plugin, version, needs, range, says: _ }: &UsedFact| {
            (plugin, version, needs, range) == (&used.plugin, &used.version, &used.needs, &used.range)
        };
        if !is_unread(&used.plugin, &used.version) && !facts.iter().any(is_same) {
            stale.push(StaleFact::FactGone { said: used.clone() });
        }
    }
    for guess in lock.guesses.iter().filter(|guess| !is_unread(&guess.plugin, &guess.version)) {
        let is_about_same = |other: &&Guess| {
            (&other.plugin, &other.version, &other.needs) == (&guess.plugin, &guess.version, &guess.needs)
        };
        let now = guesses.iter().find(is_about_same);
        if now != Some(guess) {
            stale.push(StaleFact::GuessChanged { guess: guess.clone(), now: now.cloned() });
        }
    }
    Ok(stale)
}
