//! Edge (reads). Solves each recorded plugin alone on every Paper at the twelve dates, and compares one table for each
//! date.

use std::fmt::Write as _;

use resolver::model::catalog::Catalog;
use resolver::model::lock::LockReason;
use resolver::model::request::{PaperRequest, Request};
use resolver::{Budget, Resolution, Unsolvable, resolve_within};

use super::recorded::request;
use super::{DAYS, assert_snapshot, checker, mostly_releases, recorded_listings, time_on};

/// One column each: first the plugins with lists, then those that are known by tags.
const PLUGINS: [&str; 11] = [
    "viaversion",
    "viabackwards",
    "discordsrv",
    "griefprevention",
    "multiverse-core",
    "BlueMap",
    "Maintenance",
    "clickvillagers",
    "worldedit",
    "worldguard",
    "essentialsx",
];

const HEAD: &str = "\
Each plugin alone, on every Paper. In parentheses what comes along. `-`: no release may be used, or this Paper may not: it is a
preview, or has no stable build (1.20.5, 1.21.9, 26.2 at first).
WorldEdit, WorldGuard and Essentials are known by their git tags: no list of Minecraft versions is recorded, so what their
plugin.yml does not refuse is used. DiscordSRV, GriefPrevention, Maintenance and ClickVillagers end where their recordings do.
";

/// `5.2.0 (5.2.1)`: the requested plugin, and its dependencies.
fn cell(catalog: &Catalog, request: &Request, day: &str) -> String {
    match resolve_within(catalog, request, time_on(day), Budget { steps: 30, ..Budget::default() }) {
        Ok(Resolution { lock, explanation: _ }) => {
            assert_eq!(
                checker::violations(catalog, request, time_on(day), &lock),
                [""; 0],
                "{day} {:?}",
                request.paper
            );
            let versions = |is_requested: bool| {
                let of = lock
                    .plugins
                    .iter()
                    .filter(|plugin| matches!(plugin.reason, LockReason::RequestedBy(_)) == is_requested);
                of.map(|plugin| plugin.version.clone()).collect::<Vec<_>>().join(", ")
            };
            let dependencies = versions(false);
            if dependencies.is_empty() { versions(true) } else { format!("{} ({dependencies})", versions(true)) }
        }
        Err(Unsolvable::NoSolution(_)) => "-".to_owned(),
        Err(other) => panic!("{day}: {other}"),
    }
}

/// Aligns cells in columns, without trailing spaces.
fn align_columns(rows: &[Vec<String>]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn recorded_plugins_alone_stay_same_on_twelve_days() {
    let all = recorded_listings::add_all(mostly_releases());
    let name = |slug: &&str| {
        let key = recorded_listings::plugin_request(slug).key;
        all.projects.iter().find(|project| project.key == key).unwrap().name.clone()
    };
    let head: Vec<String> = std::iter::once("Paper".to_owned()).chain(PLUGINS.iter().map(name)).collect();
    let mut pages = HEAD.to_owned();
    for day in DAYS {
        let catalog = recorded_listings::as_of(&all, time_on(day));
        let mut rows = vec![head.clone()];
        // Merges adjacent equal Paper versions to one row with the first and the last of them.
        let mut spans = vec![(String::new(), String::new())];
        for paper in &catalog.paper {
            let pin = PaperRequest::Pin { version: paper.minecraft.clone() };
            let cell_for = |slug: &&str| {
                let mut request = request(pin.clone(), &[]);
                request.plugins.push(recorded_listings::plugin_request(slug));
                cell(&catalog, &request, day)
            };
            let cells: Vec<String> = PLUGINS.iter().map(cell_for).collect();
            let (minecraft, last) = (paper.minecraft.to_string(), rows.len() - 1);
            if last > 0 && rows[last][1..] == cells[..] {
                spans[last].1 = minecraft;
            } else {
                rows.push(std::iter::once(minecraft.clone()).chain(cells).collect());
                spans.push((minecraft.clone(), minecraft));
            }
        }
        for (row, (from, to)) in rows.iter_mut().zip(&spans).skip(1) {
            row[0] = if from == to { from.clone() } else { format!("{from} to {to}") };
        }
        writeln!(pages, "\n{day}\n{}", align_columns(&rows)).unwrap();
    }
    assert_snapshot("alone-on-twelve-days", &pages);
}
