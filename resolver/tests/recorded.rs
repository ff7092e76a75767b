//! Edge (reads). Tests answers on recorded data: 66 Paper versions, 886 ViaVersion releases, 517 ViaBackwards releases.

#![expect(clippy::unwrap_used, clippy::panic, reason = "an unreadable recording must fail the test")]

use jiff::{SignedDuration, Timestamp};
use resolver::explanation::{Explanation, Reason};
use resolver::model::catalog::{Catalog, Channel, Release};
use resolver::model::request::{CompatibilityOverride, OverrideMode, PaperRequest, Request};
use resolver::render::text;
use resolver::{Unsolvable, resolve};

#[path = "support/recorded.rs"]
mod recorded;

use recorded::request;

const THREE_PLUGINS: [&str; 3] = ["viabackwards", "discordsrv", "griefprevention"];

fn time_on(day: &str) -> Timestamp {
    format!("{day}T18:00:00Z").parse().unwrap()
}

fn resolve_on(catalog: &Catalog, request: &Request, day: &str) -> (String, String) {
    match resolve(catalog, request, time_on(day)) {
        Ok(resolution) => (resolution.lock.minecraft.to_string(), text::render(&resolution.explanation, time_on(day))),
        Err(unsolvable) => ("none".to_owned(), text::render(&unsolvable.explanation(), time_on(day))),
    }
}

#[test]
fn recorded_days_have_expected_answers() {
    let catalog = recorded::catalog();
    let four = ["viaversion", "viabackwards", "discordsrv", "griefprevention"];
    for (plugins, day, paper) in [
        (&["viabackwards"][..], "2024-12-08", "1.21.4"),
        (&["viabackwards"], "2025-04-14", "1.21.5"),
        (&["viabackwards"], "2025-07-02", "1.21.7"),
        (&four, "2025-12-20", "1.21.10"),
        (&four, "2026-01-20", "1.21.10"),
        (&["viaversion", "viabackwards", "discordsrv"], "2026-01-20", "1.21.11"),
    ] {
        let (found, text) = resolve_on(&catalog, &request(PaperRequest::Auto, plugins), day);
        assert_eq!(found, paper, "{day}\n{text}");
    }
}

#[test]
fn griefprevention_alone_blocks_paper_on_20_january() {
    let catalog = recorded::catalog();
    let resolution = resolve(&catalog, &request(PaperRequest::Auto, &THREE_PLUGINS), time_on("2026-01-20")).unwrap();
    assert_eq!(resolution.explanation.blocked_by(), ["GriefPrevention"]);
    let text = text::render(&resolution.explanation, time_on("2026-01-20"));
    for part in [
        "lobby can run Paper 1.21.10 (build 129) with four plugins. Everything except Paper is up to date.",
        "ViaVersion 5.7.1         of 18 January 2026 (needed by ViaBackwards)",
        "Paper 1.21.11 has been out since December 2025. One plugin blocks it:",
        "newest, of 6 October 2025. Its Modrinth page lists Minecraft up to 1.21.10",
        "No incompatibility with 1.21.11 is known.",
        "The other three are ready for 1.21.11.",
        r#"on Plugin griefprevention:  compatibilityOverride: {enabled: true, mode: Add, minecraftVersions: ["1.21.11"], releases: ["16.18.5"]}"#,
        "lobby would then run Paper 1.21.11 (build 69). One-way: the world cannot return to 1.21.10.",
        "version lists as of 2026-01-21: older lists are not recorded",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn override_adding_version_unblocks_paper_without_other_blockers() {
    let catalog = recorded::catalog();
    for (mode, day, paper) in [
        (OverrideMode::Add, "2026-01-20", "1.21.11"),
        (OverrideMode::Replace, "2026-01-20", "1.21.11"),
        (OverrideMode::Add, "2025-12-20", "1.21.10"),
        // The override removes 1.21.10, and DiscordSRV did not list 1.21.11 yet.
        (OverrideMode::Replace, "2025-12-20", "none"),
    ] {
        let mut request = request(PaperRequest::Auto, &THREE_PLUGINS);
        request.plugins[2].compatibility =
            Some(CompatibilityOverride { mode, minecraft: vec!["1.21.11".to_owned()], releases: Vec::new() });
        let (found, text) = resolve_on(&catalog, &request, day);
        assert_eq!(found, paper, "{mode:?} {day}\n{text}");
    }
}

#[test]
fn unsatisfiable_pin_is_answered_in_few_lines() {
    let catalog = recorded::catalog();
    let mut request = request(PaperRequest::Auto, &THREE_PLUGINS);
    request.paper = PaperRequest::Pin { version: "1.21.11".parse().unwrap() };
    let (found, text) = resolve_on(&catalog, &request, "2026-01-20");
    assert_eq!(found, "none");
    assert!(text.contains("you ask for Paper 1.21.11  on the server, `spec.version`"), "{text}");
    assert!(text.contains("its newest, of 6 October 2025, is listed up to 1.21.10"), "{text}");
    assert!(!text.contains("DiscordSRV") && !text.contains("ViaVersion"), "unrelated plugins are named:\n{text}");
    assert!(text.lines().count() <= 14, "{text}");
}

#[test]
fn recorded_answer_is_deterministic() {
    let once = || {
        let catalog = recorded::catalog();
        let resolution =
            resolve(&catalog, &request(PaperRequest::Auto, &THREE_PLUGINS), time_on("2026-01-20")).unwrap();
        (resolution.lock.to_json(), serde_json::to_string(&resolution.explanation).unwrap())
    };
    assert_eq!(once(), once());
}

#[test]
fn hints_are_verified_on_recorded_lists() {
    let catalog = recorded::catalog();
    let resolution = resolve(&catalog, &request(PaperRequest::Auto, &THREE_PLUGINS), time_on("2025-12-20")).unwrap();
    let Explanation::Solved(solved) = &resolution.explanation else { panic!("expected a solved explanation") };
    // Two plugins block 1.21.11. One override alone would change nothing and is not suggested.
    assert_eq!(solved.hints.len(), 1, "{:?}", solved.hints);
    assert_eq!(solved.hints[0].steps.len(), 2);
    assert_eq!(solved.hints[0].gives.minecraft.as_str(), "1.21.11");
}

/// The other releases reject the `ViaVersion` of the day before them.
const ACCEPT_THE_DAY_BEFORE: [&str; 4] = ["4.9.1", "5.3.1", "5.4.1", "5.4.2"];

#[test]
fn viabackwards_releases_refuse_previous_viaversion_in_24_of_28() {
    let mut catalog = recorded::catalog();
    // Only the relation between the two is tested, without Paper versions, other dependencies and pages.
    for project in &mut catalog.projects {
        project.releases.retain(|release| {
            let recorded = release.published < Some(recorded::READ_AT.parse().unwrap());
            // The first release of ViaBackwards is for Fabric only.
            let meant = project.name == "ViaVersion" || release.loaders.iter().any(|loader| loader == "paper");
            meant && recorded && release.channel == Channel::Release
        });
        for release in &mut project.releases {
            release.minecraft.clear();
            release.loaders.clear();
            release.dependencies.clear();
        }
    }
    let releases = |name: &str| catalog.projects.iter().find(|project| project.name == name).unwrap().releases.clone();
    let mut backwards = releases("ViaBackwards");
    backwards.sort_by_key(|release| release.published);
    // 4.8.1 was published twice. The first publication counts.
    backwards.dedup_by(|again, first| again.version == first.version);
    assert_eq!(backwards.len(), 28);
    // The answer with only the newest ViaVersion of that time.
    let with = |release: &Release, instant: Timestamp| {
        let published = releases("ViaVersion").into_iter().filter(|via| via.published <= Some(instant));
        let newest = published.max_by_key(|via| via.published).unwrap();
        let mut reduced = catalog.clone();
        for (name, only_release) in [("ViaVersion", &newest), ("ViaBackwards", release)] {
            let project = reduced.projects.iter_mut().find(|project| project.name == name).unwrap();
            project.releases = vec![only_release.clone()];
        }
        resolve(&reduced, &request(PaperRequest::Auto, &["viabackwards"]), time_on("2026-01-20"))
    };
    let (mut refuse, mut accept) = (0, Vec::new());
    for release in &backwards {
        let published = release.published.unwrap();
        let version = release.version.as_str();
        match with(release, published - SignedDuration::from_hours(24)) {
            Ok(_) => accept.push(version),
            Err(Unsolvable::NoSolution(no)) => {
                let names_viaversion = |reason: &Reason| {
                    matches!(reason, Reason::Needs { plugin, needs, fact: Some(_), .. }
                        if plugin == "ViaBackwards" && needs == "ViaVersion")
                };
                assert!(no.reasons.iter().any(names_viaversion), "{version}: {:?}", no.reasons);
                refuse += 1;
            }
            Err(other) => panic!("{version}: {other}"),
        }
        let same_night = with(release, published + SignedDuration::from_hours(1));
        assert!(same_night.is_ok(), "{version} with the ViaVersion of its own night: {same_night:?}");
    }
    assert_eq!((refuse, accept), (24, ACCEPT_THE_DAY_BEFORE.to_vec()));
}
