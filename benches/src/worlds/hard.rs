//! Pure. Worlds that are hard to solve for one server or for many: what the encoding and the budget are for.

use resolver::catalog::{Catalog, Channel, DependencyKind};
use resolver::request::{PaperWish, Request, VersionWish};

use super::{PAPERS, RELEASES, Random, dependency, fleet, minecraft, papers, project, release, request, wish, world};

/// Plugins of the one big server.
pub const PLUGINS: usize = 40;

/// One big server as plain numbers: what every encoding is made from.
pub struct Big {
    /// Per plugin and release: the least and the most Paper that it runs on, and whether it may be used.
    pub plugins: Vec<Vec<(usize, usize, bool)>>,
}

/// 40 plugins of 900 releases, of which 3 in 10 may not be used, with windows of 4 to 19 Papers; for the newest `blocked`
/// Papers some plugin (another one each) has nothing.
pub fn big(blocked: usize) -> Big {
    let mut random = Random(3);
    let plugins = (0..PLUGINS).map(|_| {
        let width = 4 + random.below(16);
        let releases = (0..RELEASES).map(|number| {
            let to = number * (PAPERS - 1) / (RELEASES - 1);
            (to.saturating_sub(width), to, random.below(10) >= 3)
        });
        releases.collect()
    });
    let mut big = Big { plugins: plugins.collect() };
    for paper in PAPERS - blocked..PAPERS {
        let plugin = random.below(PLUGINS);
        for (from, to, usable) in &mut big.plugins[plugin] {
            *usable = *usable && !(*from..=*to).contains(&paper);
        }
    }
    big
}

impl Big {
    /// The same for the resolver: what may not be used is a beta.
    pub fn catalog(&self) -> Catalog {
        let projects = self.plugins.iter().enumerate().map(|(plugin, releases)| {
            let name = format!("b{plugin:02}");
            let releases = releases.iter().enumerate().map(|(number, &(from, to, usable))| {
                let mut release = release(&name, number, (from..=to).map(minecraft).collect());
                release.channel = if usable { Channel::Release } else { Channel::Beta };
                release
            });
            project(&name, releases.collect())
        });
        world(papers(PAPERS), projects.collect())
    }

    /// Who wants all of it.
    pub fn request(&self) -> Request {
        let wishes = (0..self.plugins.len()).map(|plugin| wish(&format!("b{plugin:02}"), VersionWish::Auto));
        request("games/big".to_owned(), PaperWish::Auto, wishes.collect())
    }
}

/// Plugins in a ring: release `k` of each goes with nothing of the next from `k` up, so nothing goes with anything.
pub fn ladder(plugins: usize) -> (Catalog, Request) {
    let name = |at: usize| format!("l{}", at % plugins);
    let projects = (0..plugins).map(|at| {
        let releases = (1..=RELEASES).map(|number| {
            let mut release = release(&name(at), number, vec![minecraft(0)]);
            let excludes = (number..=RELEASES).map(|to| dependency(&name(at + 1), to, DependencyKind::Incompatible));
            release.dependencies = excludes.collect();
            release
        });
        project(&name(at), releases.collect())
    });
    let catalog = world(papers(1), projects.collect());
    (catalog, asking_for(plugins, "l"))
}

/// Plugins on top of each other: release `k` of each needs release `k` or `k - 1` of the next one below, and the lowest goes
/// with no release of the highest but its first: only the far end of each works.
pub fn tower(plugins: usize, releases: usize) -> (Catalog, Request) {
    let name = |at: usize| format!("l{at}");
    let projects = (0..plugins).map(|at| {
        let list = (1..=releases).map(|number| {
            let mut release = release(&name(at), number, vec![minecraft(0)]);
            let below = at + 1;
            release.dependencies = if below < plugins {
                // All but the two that it goes with.
                let apart = (1..=releases).filter(|&other| other != number && other + 1 != number);
                apart.map(|other| dependency(&name(below), other, DependencyKind::Incompatible)).collect()
            } else {
                (2..=releases).map(|other| dependency(&name(0), other, DependencyKind::Incompatible)).collect()
            };
            release
        });
        project(&name(at), list.collect())
    });
    let catalog = world(papers(1), projects.collect());
    (catalog, asking_for(plugins, "l"))
}

fn asking_for(plugins: usize, prefix: &str) -> Request {
    let wishes = (0..plugins).map(|at| wish(&format!("{prefix}{at}"), VersionWish::Auto)).collect();
    request("games/lobby".to_owned(), PaperWish::Auto, wishes)
}

/// A fleet that crawls: the shared plugins run on windows of 12 Papers, and the last server takes no Paper above number 19,
/// so that all others have to come down to it step by step.
pub fn crawl(servers: usize) -> (Catalog, Vec<Request>) {
    let mut catalog = super::fleet_catalog();
    for project in catalog.projects.iter_mut().take(super::SHARED) {
        for (number, release) in project.releases.iter_mut().enumerate() {
            let to = number * (PAPERS - 4) / (RELEASES - 1);
            release.minecraft = (to.saturating_sub(11)..=to).map(minecraft).collect();
        }
    }
    catalog.projects.push(project("stuck", vec![release("stuck", 0, (0..20).map(minecraft).collect())]));
    let mut requests = fleet(servers);
    if let Some(last) = requests.last_mut() {
        last.plugins.truncate(super::SHARED);
        last.plugins.push(wish("stuck", VersionWish::Auto));
    }
    (catalog, requests)
}
