//! Pure. Random problems of servers that run as something else than Paper. By dice of their own, so that all else of a problem
//! stays what it was before there were any.

use resolver::catalog::{OtherSoftware, Release, Source};
use resolver::software::Software;
use resolver::version::Minecraft;

use super::generate::{Dice, now};
use super::problem::Problem;

/// Makes a few of the servers one of Folia or a proxy, with builds of its own and releases that are for it.
pub(crate) fn scatter(dice: &mut Dice, problem: &mut Problem) {
    if !dice.chance(12) {
        return;
    }
    let software = *dice.one(&[Software::Folia, Software::Velocity]);
    problem.request.software = software;
    let mut versions: Vec<_> = dice.some(&problem.catalog.paper, 75).into_iter().cloned().collect();
    if versions.is_empty() {
        versions.push(problem.catalog.paper[0].clone());
    }
    problem.catalog.others.insert(software, OtherSoftware { versions, read_at: now() });
    if let Some(running) = &mut problem.request.running {
        running.software = if dice.chance(70) { software } else { Software::Paper };
    }
    for project in &mut problem.catalog.projects {
        let source = project.key.source;
        for release in &mut project.releases {
            match software {
                Software::Paper => {}
                Software::Folia => for_folia(dice, source, release),
                Software::Velocity => for_velocity(dice, source, release),
            }
        }
    }
}

fn for_folia(dice: &mut Dice, source: Source, release: &mut Release) {
    if source == Source::Modrinth && dice.chance(85) {
        release.loaders.push("folia".to_owned());
    }
    // The JAR of a file was read; of the others only those that somebody has downloaded.
    let is_read = source == Source::Url || dice.chance(45);
    release.folia = is_read.then(|| dice.chance(92));
    for jar in &mut release.further {
        jar.folia = dice.chance(60).then(|| dice.chance(92));
    }
}

fn for_velocity(dice: &mut Dice, source: Source, release: &mut Release) {
    if dice.chance(92) {
        release.loaders.push("velocity".to_owned());
    }
    if source == Source::Hangar {
        // Lines, as Hangar has them of proxies.
        let lines = release.minecraft.iter().filter_map(Minecraft::parts);
        let mut lines: Vec<Minecraft> =
            lines.map(|[major, minor, _]| format!("{major}.{minor}").parse().unwrap()).collect();
        lines.sort();
        lines.dedup();
        release.minecraft = lines;
    }
}
