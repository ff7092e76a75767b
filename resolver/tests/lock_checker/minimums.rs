//! Pure. Compares the built-in tables with the recording.
//!
//! The minimum ViaVersion of each ViaBackwards release is solved in one small catalog for each row of the table. 57 are
//! recorded: the 56 releases of the table and `HEAD`, the main branch on the day of reading, which is no release and so
//! not in the table. The tables of the `WorldEdit` that each `WorldGuard` release was built against, and the
//! `ViaVersion` and `ViaBackwards` of each `ViaRewind`, are compared row by row.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use resolver::explanation::{Explanation, Reason};
use resolver::model::catalog::{Catalog, Channel, Project, Release};
use resolver::model::compatibility_facts::FactSource;
use resolver::model::request::PaperRequest;
use resolver::render::text;
use resolver::{Resolution, Unsolvable, resolve};
use serde::Deserialize;

use super::recorded::{read, request};
use super::{mostly_releases, numbers, time_on};

/// The tags of `ViaVersion`, the check in the code of each `ViaBackwards`, and the versions that each `WorldGuard` and
/// `ViaRewind` is built against.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    repo: String,
    #[serde(rename = "ref")]
    tag: String,
    commit: String,
    #[serde(default)]
    depend: Vec<String>,
    needs_at_run_time: Option<BTreeMap<String, String>>,
    compiled_against: Option<BTreeMap<String, String>>,
}

/// A row of a table: release, minimum version of the other plugin, commit.
type Least = (String, String, String);

/// The table.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Table {
    at_least: Vec<Least>,
}

/// The row from the build files of a tag, if they name the other plugin.
fn built_against(tag: &Row, other: &str) -> Option<Least> {
    let least = tag.compiled_against.as_ref()?.get(other)?;
    Some((tag.tag.clone(), least.clone(), tag.commit.clone()))
}

/// One Paper, and for each plugin only these versions, all listed for it, each published an hour after the previous
/// one.
fn small_catalog(catalog: &Catalog, viabackwards: &str, viaversions: &[&str], now: Timestamp) -> Catalog {
    let paper = catalog.paper.iter().find(|paper| paper.minecraft.as_str() == "1.21.10").unwrap().clone();
    let with = |name: &str, versions: &[&str]| {
        let project = catalog.projects.iter().find(|project| project.name == name).unwrap();
        let pattern = project.releases.iter().find(|release| release.channel == Channel::Release).unwrap();
        let release = |(index, version): (usize, &&str)| Release {
            id: format!("{name}-{version}"),
            version: (*version).to_owned(),
            published: Some(now - SignedDuration::from_hours(24 - i64::try_from(index).unwrap())),
            minecraft: vec![paper.minecraft.clone()],
            ..pattern.clone()
        };
        Project { releases: versions.iter().enumerate().map(release).collect(), ..project.clone() }
    };
    let projects = vec![with("ViaBackwards", &[viabackwards]), with("ViaVersion", viaversions)];
    Catalog { paper: vec![paper], projects, ..catalog.clone() }
}

#[test]
fn viabackwards_row_accepts_least_viaversion_and_refuses_one_below() {
    let (catalog, now) = (mostly_releases(), time_on("2026-01-20"));
    let tags: Vec<Row> = read("plugins/facts.json");
    let of = |repo: &'static str| tags.iter().filter(move |tag| tag.repo == repo);
    let viaversion: Vec<&str> =
        of("ViaVersion/ViaVersion").map(|tag| tag.tag.as_str()).filter(|tag| *tag != "HEAD").collect();
    let recorded: Vec<(&str, &str)> = of("ViaVersion/ViaBackwards")
        .filter_map(|tag| Some((tag.tag.as_str(), tag.needs_at_run_time.as_ref()?.get("ViaVersion")?.as_str())))
        .collect();
    let table: Table =
        serde_json::from_str(include_str!("../../src/index/known_constraints/viabackwards.json")).unwrap();
    assert_eq!((recorded.len(), table.at_least.len()), (57, 56));
    for (release, least, _) in &table.at_least {
        let (release, least) = (release.as_str(), least.as_str());
        assert!(recorded.contains(&(release, least)), "{release} has another recorded minimum than {least}");
        let below = viaversion.iter().filter(|tag| numbers(tag) < numbers(least)).max_by_key(|tag| numbers(tag));
        let below = *below.unwrap();
        let request = request(PaperRequest::Auto, &["viabackwards"]);

        // The version below the minimum was published last, so it would be the newest without the rule.
        let both = small_catalog(&catalog, release, &[least, below], now);
        let Resolution { lock, explanation } = resolve(&both, &request, now).unwrap();
        let locked: Vec<(&str, &str)> =
            lock.plugins.iter().map(|plugin| (plugin.name.as_str(), plugin.version.as_str())).collect();
        assert_eq!(locked, [("ViaBackwards", release), ("ViaVersion", least)]);
        let Explanation::Solved(solved) = explanation else { panic!("expected a solved explanation") };
        let [fact] = solved.bounds.as_slice() else { panic!("{release}: {:?}", solved.bounds) };
        assert_eq!(
            (fact.range.as_str(), matches!(fact.says, FactSource::BuiltIn { .. })),
            (format!(">={least}").as_str(), true)
        );

        let only_below = small_catalog(&catalog, release, &[below], now);
        let Err(Unsolvable::NoSolution(no)) = resolve(&only_below, &request, now) else {
            panic!("{release} must refuse ViaVersion {below}")
        };
        let names_minimum = |reason: &Reason| matches!(reason, Reason::Needs { fact: Some(fact), .. } if fact.range.as_str() == format!(">={least}"));
        let text = text::render(&Explanation::Impossible(*no.clone()), now);
        assert!(no.reasons.iter().any(names_minimum), "{release} with ViaVersion {below}: {:?}\n{text}", no.reasons);
    }
}

#[test]
fn worldguard_rows_match_tags_they_are_built_against() {
    let tags: Vec<Row> = read("plugins/facts.json");
    let table: Table = serde_json::from_str(include_str!("../../src/index/known_constraints/worldguard.json")).unwrap();
    let of_worldguard = tags.iter().filter(|tag| tag.repo == "EngineHub/WorldGuard");
    let built = of_worldguard.filter_map(|tag| built_against(tag, "WorldEdit"));
    let (head, releases): (Vec<_>, Vec<_>) = built.partition(|(tag, _, _)| tag == "HEAD");
    assert_eq!((head.len(), releases.len()), (1, 9));
    assert_eq!(table.at_least, releases);
}

#[test]
fn viarewind_rows_match_tags_they_are_built_against() {
    let tags: Vec<Row> = read("plugins/viarewind.json");
    for (other, table, rows) in [
        ("ViaVersion", include_str!("../../src/index/known_constraints/viarewind-viaversion.json"), 26),
        ("ViaBackwards", include_str!("../../src/index/known_constraints/viarewind-viabackwards.json"), 23),
    ] {
        let table: Table = serde_json::from_str(table).unwrap();
        let requires = tags.iter().filter(|tag| tag.depend.iter().any(|name| name == other));
        let built: Vec<Least> = requires.filter_map(|tag| built_against(tag, other)).collect();
        assert_eq!(built.len(), rows, "{other}");
        assert_eq!(table.at_least, built, "{other}");
    }
}
