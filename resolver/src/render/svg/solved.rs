//! Pure. Builds the diagram sections of a solution and of "why not".

use std::collections::BTreeMap;

use super::section::{DiagramBox, Kind, Section};
use super::{Minecraft, paper, short_name};
use crate::explanation::{
    Blocker, ChosenPlugin, Listing, NewerPaper, SharedVersion, SolvedExplanation, WhyNot, WhyOlder,
};
use crate::model::software::Software;
use crate::model::unusable::Unusable;
use crate::render::phrases::{count, date, list};
use crate::render::short;

/// The name of the Paper box, which other boxes refer to. No plugin has this name.
const PAPER: &str = "Paper";

/// The section of a solution: the chosen version set, and all newer versions.
pub(super) fn solved(solved: &SolvedExplanation) -> Section {
    let SolvedExplanation { server, software, paper: chosen, image, plugins, newer_paper, left_behind, .. } = solved;
    let runs = if chosen.runs_now { "runs" } else { "can run" };
    let plural = if plugins.len() == 1 { "plugin" } else { "plugins" };
    let name = paper(*software, &chosen.minecraft, chosen.build);
    let mut picture =
        Picture::new(format!("{} {runs} {name} with {} {plural}", short_name(server), count(plugins.len())));
    picture.section.left_head = "chosen";
    picture.section.right_head = "waits";
    let on_paper = picture.add_left(DiagramBox::new(Kind::Chosen, name, format!("Java {}", image.java)), PAPER);
    for plugin in plugins {
        let diagram_box = DiagramBox::new(
            Kind::Chosen,
            format!("{} {}", plugin.name, plugin.version),
            listing(plugin, &chosen.minecraft),
        );
        picture.add_left(diagram_box, &plugin.name);
    }
    for plugin in plugins {
        for by in &plugin.needed_by {
            if let (Some(from), Some(to)) = (picture.find(by), picture.find(&plugin.name)) {
                picture.section.needs.insert((from, to));
            }
        }
    }
    for newer in newer_paper {
        picture.add_newer_paper(*software, newer);
    }
    if let Some(newer) = &chosen.newer_build {
        let why = newer.unusable.as_ref().map_or_else(|| format!("you pinned build {}", chosen.build), short::unusable);
        picture.add_right(DiagramBox::new(Kind::Waits, paper(*software, &chosen.minecraft, newer.build), why));
    }
    for (plugin, newer) in ChosenPlugin::newer(plugins) {
        let diagram_box = DiagramBox::new(
            Kind::Waits,
            format!("{} {}", plugin.name, newer.version),
            short::why_older(&newer.because),
        );
        let waits = picture.add_right(diagram_box);
        match &newer.because {
            WhyOlder::NotListed { .. }
            | WhyOlder::Unusable { unusable: Unusable::ApiVersion { .. } | Unusable::ApiVersionRefused { .. } } => {
                picture.section.waits.insert((waits, on_paper));
            }
            // With versions: `ViaVersion 5.7.1`.
            WhyOlder::Others { with, facts: _ } => with.iter().for_each(|with| picture.add_blocking_box(waits, with)),
            WhyOlder::Unusable { .. } | WhyOlder::Pinned | WhyOlder::Needs { .. } | WhyOlder::SharedVersion { .. } => {}
        }
    }
    for left in left_behind {
        let note = left.stays.as_ref().map_or_else(|| "left out".to_owned(), |stays| format!("stays at {stays}"));
        let waits = picture.add_right(DiagramBox::new(
            Kind::Waits,
            &left.name,
            format!("{note}: {}", short::blocker(&left.blocker)),
        ));
        if left.blocker.name != left.name {
            picture.add_blocker(waits, &left.blocker);
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
        unreleased,
        unusable,
        pinned,
        ready,
        blockers,
        shared_versions,
        shared_name,
        ..
    } = why;
    let can = if *possible { "can run" } else { "cannot run" };
    let mut picture = Picture::new(format!("{} {can} {software} {target}", short_name(server)));
    picture.section.left_head = "plugins";
    picture.section.right_head = "requested";
    let note = match (unusable, pinned) {
        _ if !exists => format!("there is no such {software}"),
        _ if *unreleased => "no build of it yet".to_owned(),
        (Some(unusable), _) => short::unusable(unusable),
        (None, Some(pin)) => format!("you pinned {software} {}", pin.version),
        (None, None) if *possible => "no blockers".to_owned(),
        (None, None) => {
            let shared = shared_name.as_ref().map(short::shared_name);
            shared.or_else(|| shared_versions.first().map(short::shared_version)).unwrap_or_default()
        }
    };
    let target_position = picture.add_right(DiagramBox::new(Kind::Waits, format!("{software} {target}"), note));
    picture.add_blocking_files(target_position, unusable.as_ref());
    for blocker in blockers {
        picture.add_blocker(target_position, blocker);
    }
    for name in ready {
        if picture.find(name).is_none() {
            picture.add_left(DiagramBox::new(Kind::Chosen, name, "ready"), name);
        }
    }
    picture.add_shared(target_position, shared_versions);
    picture.section
}

/// The evidence that a plugin runs on the chosen version, or the reason why it is installed.
fn listing(plugin: &ChosenPlugin, on: &Minecraft) -> String {
    if plugin.objects.is_empty() && !plugin.needed_by.is_empty() {
        return format!("needed by {}", list(&plugin.needed_by, 2));
    }
    match &plugin.listing {
        Listing::Listed => format!("listed for {on}"),
        Listing::Sibling { of } => format!("listed for {of}, its hotfix sibling"),
        Listing::Override => "allowed by you".to_owned(),
        Listing::NoList => "has no list".to_owned(),
        Listing::Delisted => "no longer on its page, runs now and stays".to_owned(),
        Listing::Unread => "page not read, runs now and stays".to_owned(),
        Listing::RunsNow => "not listed, runs now and stays".to_owned(),
    }
}

/// A section under construction, with the positions of names.
struct Picture {
    section: Section,
    positions: BTreeMap<String, usize>,
}

impl Picture {
    fn new(title: String) -> Self {
        Self { section: Section::with_title(title), positions: BTreeMap::new() }
    }

    /// Adds a box. Other items refer to it by `name`.
    fn add_left(&mut self, diagram_box: DiagramBox, name: &str) -> usize {
        self.section.left.push(diagram_box);
        self.positions.insert(name.to_owned(), self.section.left.len() - 1);
        self.section.left.len() - 1
    }

    fn add_right(&mut self, diagram_box: DiagramBox) -> usize {
        self.section.right.push(diagram_box);
        self.section.right.len() - 1
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.positions.get(name).copied()
    }

    fn add_newer_paper(&mut self, software: Software, newer: &NewerPaper) {
        let note = match (&newer.unusable, &newer.pinned) {
            (Some(unusable), _) => short::unusable(unusable),
            (None, Some(pin)) => format!("you pinned {}", pin.version),
            (None, None) => match &newer.gave_up {
                Some(gave_up) => short::blockers_unknown(gave_up),
                None => format!("out since {}", date(newer.since)),
            },
        };
        let waits = self.add_right(DiagramBox::new(Kind::Waits, format!("{software} {}", newer.minecraft), note));
        self.add_blocking_files(waits, newer.unusable.as_ref());
        for blocker in &newer.blocked_by {
            self.add_blocker(waits, blocker);
        }
        self.add_shared(waits, &newer.shared_versions);
    }

    /// Adds a line to a blocking plugin. A plugin that was not chosen gets a new box.
    fn add_blocker(&mut self, waits: usize, blocker: &Blocker) {
        let position = match self.find(&blocker.name) {
            Some(position) => position,
            None => self.add_left(DiagramBox::new(Kind::Blocks, &blocker.name, ""), &blocker.name),
        };
        self.section.left[position].kind = Kind::Blocks;
        self.section.left[position].note = short::blocker(blocker);
        self.section.waits.insert((waits, position));
    }

    /// Adds a line to each blocking unmanaged JAR. These are in no lock.
    fn add_blocking_files(&mut self, waits: usize, unusable: Option<&Unusable>) {
        for file in unusable.map_or(&[][..], Unusable::unmanaged_files) {
            let existing = self.find(file);
            let diagram_box = || DiagramBox::new(Kind::Blocks, file, "unmanaged");
            let position = existing.unwrap_or_else(|| self.add_left(diagram_box(), file));
            self.section.waits.insert((waits, position));
        }
    }

    fn add_shared(&mut self, waits: usize, shared: &[SharedVersion]) {
        for plugin in shared.iter().flat_map(|one| &one.plugins) {
            if let Some(position) = self.find(&plugin.plugin) {
                self.section.left[position].kind = Kind::Blocks;
                "same version on several servers".clone_into(&mut self.section.left[position].note);
                self.section.waits.insert((waits, position));
            }
        }
    }

    /// Adds a line to the box with this name and version.
    fn add_blocking_box(&mut self, waits: usize, named: &str) {
        if let Some(position) = self.section.left.iter().position(|diagram_box| diagram_box.name == named) {
            self.section.waits.insert((waits, position));
        }
    }
}
