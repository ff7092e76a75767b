//! Pure. Checks whether a lock's facts about versions still have a source, and whether the dates still give its
//! guesses.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{StaleFact, is_project, world};
use crate::catalog::Catalog;
use crate::compatibility_facts::UsedFact;
use crate::explain::Unanswerable;
use crate::lock::{Guess, Lock};
use crate::request::Request;

/// The facts of a lock about versions that no source states any more, and its guesses that the dates no longer give, as
/// of `now`.
///
/// # Errors
/// The catalog lacks a project that the request needs.
pub fn unsaid(
    lock: &Lock,
    catalog: &Catalog,
    request: &Request,
    now: Timestamp,
) -> Result<Vec<StaleFact>, Box<Unanswerable>> {
    if request.software != lock.software {
        return Ok(Vec::new());
    }
    let world = world(catalog, request, now)?;
    let (mut facts, mut guesses, mut read) = (Vec::new(), Vec::new(), BTreeSet::new());
    for locked in &lock.plugins {
        let on = |&at: &usize| is_project(locked, &world.shelves[at].project.key, &world.shelves[at].project.id);
        let Some(at) = (0..world.shelves.len()).find(on) else { continue };
        let shelf = &world.shelves[at];
        let place = shelf.releases.iter().position(|stocked| stocked.release.id == locked.release_id);
        // The dependencies of a missing or unusable release were not resolved. That it is missing is reported
        // elsewhere.
        let Some(place) = place.filter(|&place| shelf.releases[place].unusable.is_none()) else { continue };
        read.insert((locked.name.as_str(), locked.version.as_str()));
        facts.extend(shelf.links[place].iter().filter_map(|link| world.fact(at, place, link)));
        guesses.extend(world.guesses(at, place));
    }
    let is_unread = |plugin: &str, version: &str| {
        let is_locked = lock.plugins.iter().any(|locked| locked.name == plugin && locked.version == version);
        is_locked && !read.contains(&(plugin, version))
    };
    let mut broken = Vec::new();
    for said in &lock.bounds {
        // The source of the fact may have changed.
        let is_it = |UsedFact { plugin, version, needs, range, says: _ }: &UsedFact| {
            (plugin, version, needs, range) == (&said.plugin, &said.version, &said.needs, &said.range)
        };
        if !is_unread(&said.plugin, &said.version) && !facts.iter().any(is_it) {
            broken.push(StaleFact::FactGone { said: said.clone() });
        }
    }
    for guess in lock.guesses.iter().filter(|guess| !is_unread(&guess.plugin, &guess.version)) {
        let about_it = |other: &&Guess| {
            (&other.plugin, &other.version, &other.needs) == (&guess.plugin, &guess.version, &guess.needs)
        };
        let now = guesses.iter().find(about_it);
        if now != Some(guess) {
            broken.push(StaleFact::GuessChanged { guess: guess.clone(), now: now.cloned() });
        }
    }
    Ok(broken)
}
