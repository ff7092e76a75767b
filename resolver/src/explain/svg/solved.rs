//! Pure. Builds the diagram sections of a solution and of "why not".

use std::collections::BTreeMap;

use super::section::{DiagramBox, Kind, Section};
use super::{Minecraft, paper, short, short_form};
use crate::explain::phrases::{count, date, list};
use crate::explain::{Blocker, ChosenPlugin, Listing, NewerPaper, OneVersion, SolvedExplanation, WhyNot, WhyOlder};
use crate::software::Software;
use crate::unusable::Unusable;

/// The name of the Paper box, which other boxes refer to. No plugin has this name.
const PAPER: &str = "Paper";

/// The section of a solution: the chosen version set, and all newer versions.
pub(super) fn solved(solved: &SolvedExplanation) -> Section {
    let SolvedExplanation { server, software, paper: chosen, image, plugins, newer_paper, unfollowed, .. } = solved;
    let runs = if chosen.runs_now { "runs" } else { "can run" };
    let plural = if plugins.len() == 1 { "plugin" } else { "plugins" };
    let name = paper(*software, &chosen.minecraft, chosen.build);
    let mut picture = Picture::new(format!("{} {runs} {name} with {} {plural}", short(server), count(plugins.len())));
    picture.section.left_head = "chosen";
    picture.section.right_head = "waits";
    let on_paper = picture.left(DiagramBox::new(Kind::Chosen, name, format!("Java {}", image.java)), PAPER);
    for plugin in plugins {
        let card = DiagramBox::new(
            Kind::Chosen,
            format!("{} {}", plugin.name, plugin.version),
            listing(plugin, &chosen.minecraft),
        );
        picture.left(card, &plugin.name);
    }
    for plugin in plugins {
        for by in &plugin.needed_by {
            if let (Some(from), Some(to)) = (picture.find(by), picture.find(&plugin.name)) {
                picture.section.needs.insert((from, to));
            }
        }
    }
    for newer in newer_paper {
        picture.newer_paper(*software, newer);
    }
    if let Some(newer) = &chosen.newer_build {
        let why =
            newer.unusable.as_ref().map_or_else(|| format!("you pinned build {}", chosen.build), short_form::unusable);
        picture.right(DiagramBox::new(Kind::Waits, paper(*software, &chosen.minecraft, newer.build), why));
    }
    for (plugin, newer) in ChosenPlugin::newer(plugins) {
        let card = DiagramBox::new(
            Kind::Waits,
            format!("{} {}", plugin.name, newer.version),
            short_form::because(&newer.because),
        );
        let waits = picture.right(card);
        match &newer.because {
            WhyOlder::NotListed { .. } | WhyOlder::Unusable { unusable: Unusable::ApiVersion { .. } } => {
                picture.section.waits.insert((waits, on_paper));
            }
            // With versions: `ViaVersion 5.7.1`.
            WhyOlder::Others { with, facts: _ } => with.iter().for_each(|with| picture.wait_for_named(waits, with)),
            WhyOlder::Unusable { .. } | WhyOlder::Pinned | WhyOlder::Needs { .. } | WhyOlder::OneVersion { .. } => {}
        }
    }
    for left in unfollowed {
        let note = left.stays.as_ref().map_or_else(|| "left out".to_owned(), |stays| format!("stays at {stays}"));
        let waits = picture.right(DiagramBox::new(
            Kind::Waits,
            &left.name,
            format!("{note}: {}", short_form::holder(&left.holder)),
        ));
        if left.holder.name != left.name {
            picture.wait_for(waits, &left.holder);
        }
    }
    picture.section
}

/// The section of a requested version, with the plugins that support it.
pub(super) fn why_not(why: &WhyNot) -> Section {
    let WhyNot {
        server,
        software,
        target,
        possible,
        exists,
        to_come,
        unusable,
        pinned,
        ready,
        holders,
        one_version,
        shared_name,
        ..
    } = why;
    let can = if *possible { "can run" } else { "cannot run" };
    let mut picture = Picture::new(format!("{} {can} {software} {target}", short(server)));
    picture.section.left_head = "plugins";
    picture.section.right_head = "asked about";
    let note = match (unusable, pinned) {
        _ if !exists => format!("there is no such {software}"),
        _ if *to_come => "no build of it yet".to_owned(),
        (Some(unusable), _) => short_form::unusable(unusable),
        (None, Some(pin)) => format!("you pinned {software} {}", pin.version),
        (None, None) if *possible => "nothing speaks against it".to_owned(),
        (None, None) => {
            let shared = shared_name.as_ref().map(short_form::shared_name);
            shared.or_else(|| one_version.first().map(short_form::one_version)).unwrap_or_default()
        }
    };
    let asked = picture.right(DiagramBox::new(Kind::Waits, format!("{software} {target}"), note));
    picture.wait_for_files(asked, unusable.as_ref());
    for holder in holders {
        picture.wait_for(asked, holder);
    }
    for name in ready {
        if picture.find(name).is_none() {
            picture.left(DiagramBox::new(Kind::Chosen, name, "ready"), name);
        }
    }
    picture.wait_for_shared(asked, one_version);
    picture.section
}

/// The evidence that a plugin runs on the chosen version, or the reason why it is installed.
fn listing(plugin: &ChosenPlugin, on: &Minecraft) -> String {
    if plugin.objects.is_empty() && !plugin.needed_by.is_empty() {
        return format!("needed by {}", list(&plugin.needed_by, 2));
    }
    match &plugin.listing {
        Listing::Listed => format!("listed for {on}"),
        Listing::Sibling { of } => format!("listed for {of}, which is as good"),
        Listing::Override => "allowed by you".to_owned(),
        Listing::NoList => "has no list".to_owned(),
        Listing::Lost => "on its page no more; it runs now and stays".to_owned(),
        Listing::RunsNow => "not listed; it runs now and stays".to_owned(),
    }
}

/// A section under construction, with the positions of names.
struct Picture {
    section: Section,
    places: BTreeMap<String, usize>,
}

impl Picture {
    fn new(title: String) -> Self {
        Self { section: Section::titled(title), places: BTreeMap::new() }
    }

    /// Adds a box. Other items refer to it by `name`.
    fn left(&mut self, card: DiagramBox, name: &str) -> usize {
        self.section.left.push(card);
        self.places.insert(name.to_owned(), self.section.left.len() - 1);
        self.section.left.len() - 1
    }

    fn right(&mut self, card: DiagramBox) -> usize {
        self.section.right.push(card);
        self.section.right.len() - 1
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    fn newer_paper(&mut self, software: Software, newer: &NewerPaper) {
        let note = match (&newer.unusable, &newer.pinned) {
            (Some(unusable), _) => short_form::unusable(unusable),
            (None, Some(pin)) => format!("you pinned {}", pin.version),
            (None, None) => match &newer.gave_up {
                Some(gave_up) => short_form::holders_unknown(gave_up),
                None => format!("out since {}", date(newer.since)),
            },
        };
        let waits = self.right(DiagramBox::new(Kind::Waits, format!("{software} {}", newer.minecraft), note));
        self.wait_for_files(waits, newer.unusable.as_ref());
        for holder in &newer.held_by {
            self.wait_for(waits, holder);
        }
        self.wait_for_shared(waits, &newer.one_version);
    }

    /// Adds a line to a blocking plugin. A plugin that was not chosen gets a new box.
    fn wait_for(&mut self, waits: usize, holder: &Blocker) {
        let place = match self.find(&holder.name) {
            Some(place) => place,
            None => self.left(DiagramBox::new(Kind::Holds, &holder.name, ""), &holder.name),
        };
        self.section.left[place].kind = Kind::Holds;
        self.section.left[place].note = short_form::holder(holder);
        self.section.waits.insert((waits, place));
    }

    /// Adds a line to each blocking unmanaged JAR. These are in no lock.
    fn wait_for_files(&mut self, waits: usize, unusable: Option<&Unusable>) {
        for file in unusable.map_or(&[][..], Unusable::own_files) {
            let known = self.find(file);
            let card = || DiagramBox::new(Kind::Holds, file, "not managed here");
            let place = known.unwrap_or_else(|| self.left(card(), file));
            self.section.waits.insert((waits, place));
        }
    }

    fn wait_for_shared(&mut self, waits: usize, shared: &[OneVersion]) {
        for plugin in shared.iter().flat_map(|one| &one.plugins) {
            if let Some(place) = self.find(&plugin.plugin) {
                self.section.left[place].kind = Kind::Holds;
                "one version on several servers".clone_into(&mut self.section.left[place].note);
                self.section.waits.insert((waits, place));
            }
        }
    }

    /// Adds a line to the box with this name and version.
    fn wait_for_named(&mut self, waits: usize, named: &str) {
        if let Some(place) = self.section.left.iter().position(|card| card.name == named) {
            self.section.waits.insert((waits, place));
        }
    }
}
