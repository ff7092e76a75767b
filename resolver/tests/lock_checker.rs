//! Edge (reads). Tests the lock checker: it accepts every lock of the recorded data, and detects each way to break one.

#![expect(clippy::unwrap_used, clippy::panic, reason = "an unreadable recording must fail the test")]

use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};
use resolver::explanation::Explanation;
use resolver::lock_check::{StaleFact, Unmet, stale_facts, stale_file_facts, unmet};
use resolver::model::catalog::{Artifact, Catalog, Channel, FurtherJar, Release};
use resolver::model::jar_pattern::stem;
use resolver::model::lock::{Guess, ImageJava, Lock, LockReason};
use resolver::model::request::{PaperRequest, PluginRequest, Request, VersionRequest};
use resolver::model::software::Software;
use resolver::model::version::Minecraft;
use resolver::{Budget, Resolution, Unsolvable, resolve, resolve_within};

#[path = "support/checker.rs"]
mod checker;
#[path = "support/dependencies.rs"]
mod dependencies;
#[path = "support/jar_identification.rs"]
mod jar_identification;
#[path = "support/loading.rs"]
mod loading;
#[path = "support/membership.rs"]
mod membership;
#[path = "lock_checker/minimums.rs"]
mod minimums;
#[path = "support/name_rules.rs"]
mod name_rules;
#[path = "support/paper_rules.rs"]
mod paper_rules;
#[path = "support/recorded.rs"]
mod recorded;
#[path = "support/recorded_listings.rs"]
mod recorded_listings;
#[path = "support/rules.rs"]
mod rules;
#[path = "lock_checker/single_plugin.rs"]
mod single_plugin;
#[path = "support/texts.rs"]
mod texts;
#[path = "support/unmanaged_jars.rs"]
mod unmanaged_jars;

use recorded::{plugin_request, request};

/// Twelve days on or before which a relevant release was published.
const DAYS: [&str; 12] = [
    "2023-06-20",
    "2023-09-30",
    "2023-12-20",
    "2024-02-01",
    "2024-05-10",
    "2024-06-30",
    "2024-11-15",
    "2025-01-15",
    "2025-07-10",
    "2025-10-15",
    "2026-01-20",
    "2026-08-01",
];
const FOUR_PLUGINS: [&str; 4] = ["viaversion", "viabackwards", "discordsrv", "griefprevention"];

/// Further combinations of plugins, with the names of their snapshots. The last three plugins are known by git tags
/// only.
const MORE_COMBINATIONS: [(&str, &[&str]); 2] = [
    ("four-that-go-on-on-twelve-days", &["viaversion", "viabackwards", "multiverse-core", "BlueMap"]),
    ("worlds-on-twelve-days", &["griefprevention", "multiverse-core", "worldedit", "worldguard", "essentialsx"]),
];

fn time_on(day: &str) -> Timestamp {
    format!("{day}T18:00:00Z").parse().unwrap()
}

/// The recorded data with every 20th of the 1,300 alphas and betas, which are not on the channel. With all of them, a
/// thousand solves would take minutes.
fn mostly_releases() -> Catalog {
    let mut catalog = recorded::catalog();
    for project in catalog.projects.iter_mut().filter(|project| project.releases.len() > 100) {
        let mut index = 0;
        project.releases.retain(|release| {
            index += 1;
            release.channel == Channel::Release || index % 20 == 0
        });
    }
    catalog
}

/// The version set on one line, after the checker accepts it. The budget covers only the solve, because the texts are
/// not used.
fn version_set_line(catalog: &Catalog, request: &Request, day: &str) -> String {
    match resolve_within(catalog, request, time_on(day), Budget { steps: 400, ..Budget::default() }) {
        Ok(Resolution { lock, explanation }) => {
            assert_eq!(
                checker::violations(catalog, request, time_on(day), &lock),
                [""; 0],
                "{day} {:?}",
                request.paper
            );
            let Explanation::Solved(solved) = explanation else { panic!("expected a solved explanation") };
            let mut line: Vec<String> =
                lock.plugins.iter().map(|plugin| format!("{} {}", plugin.name, plugin.version)).collect();
            line.extend(solved.left_behind.iter().map(|plugin| format!("no {}", plugin.name)));
            line.join(", ")
        }
        Err(Unsolvable::NoSolution(_)) => "-".to_owned(),
        Err(other) => panic!("{day}: {other}"),
    }
}

/// Merges adjacent Paper versions with the same version set to one line.
fn write_rows(table: &mut String, papers: &[(&Minecraft, String)]) {
    let mut from = 0;
    for at in 1..=papers.len() {
        if papers.get(at).is_none_or(|(_, versions)| *versions != papers[from].1) {
            let (first, last) = (papers[from].0, papers[at - 1].0);
            let span = if first == last { first.to_string() } else { format!("{first} to {last}") };
            writeln!(table, "  {span:20} {}", papers[from].1).unwrap();
            from = at;
        }
    }
}

/// Compares a text with its reviewed snapshot.
fn assert_snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// The version sets of one day: by each strategy, and on each published Paper version.
fn page(catalog: &Catalog, plugins: &[&str], day: &str) -> String {
    let build_request = |paper: PaperRequest| {
        let mut request = request(paper, &[]);
        request.plugins.extend(plugins.iter().map(|slug| recorded_listings::plugin_request(slug)));
        request
    };
    let mut table = format!("{day}\n");
    for (name, strategy) in [("auto", PaperRequest::Auto), ("latest", PaperRequest::Latest)] {
        let request = build_request(strategy);
        let paper = resolve_within(catalog, &request, time_on(day), Budget { steps: 400, ..Budget::default() })
            .map_or_else(|_| "-".to_owned(), |resolution| resolution.lock.minecraft.to_string());
        writeln!(table, "  {:20} {}", format!("{name} {paper}"), version_set_line(catalog, &request, day)).unwrap();
    }
    let published =
        catalog.paper.iter().filter(|paper| paper.builds.iter().any(|build| build.published <= time_on(day)));
    let pinned: Vec<(&Minecraft, String)> = published
        .map(|paper| {
            let pin = PaperRequest::Pin { version: paper.minecraft.clone() };
            (&paper.minecraft, version_set_line(catalog, &build_request(pin), day))
        })
        .collect();
    write_rows(&mut table, &pinned);
    table
}

#[test]
fn recorded_paper_locks_stay_same_on_twelve_days() {
    let catalog = mostly_releases();
    assert_snapshot("chosen-on-twelve-days", &DAYS.map(|day| page(&catalog, &FOUR_PLUGINS, day)).concat());
}

#[test]
fn further_plugin_sets_stay_same_on_twelve_days() {
    let all = recorded_listings::add_all(mostly_releases());
    let catalogs = DAYS.map(|day| (day, recorded_listings::as_of(&all, time_on(day))));
    for (name, plugins) in MORE_COMBINATIONS {
        assert_snapshot(name, &catalogs.each_ref().map(|(day, catalog)| page(catalog, plugins, day)).concat());
    }
}

/// `5.2.0` as three numbers.
fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map(|part| part.parse().unwrap()).collect()
}

#[test]
fn viabackwards_minimums_are_honoured_on_each_listed_day() {
    let catalog = mostly_releases();
    let viabackwards = catalog.projects.iter().find(|project| project.name == "ViaBackwards").unwrap();
    let viaversion = catalog.projects.iter().find(|project| project.name == "ViaVersion").unwrap();
    let (mut honoured, mut refused) = (0, 0);
    for release in &viabackwards.releases {
        let Some(least) = dependencies::least_viaversion(&release.version) else { continue };
        let pin = |version: &str| VersionRequest::Pin { version: version.to_owned() };
        let mut pinned = request(PaperRequest::Auto, &["viabackwards"]);
        pinned.plugins[0].version = pin(&release.version);
        for day in DAYS.iter().filter(|day| release.published <= Some(time_on(day))) {
            let Ok(Resolution { lock, explanation: _ }) =
                resolve_within(&catalog, &pinned, time_on(day), Budget { steps: 400, ..Budget::default() })
            else {
                continue;
            };
            let via = lock.plugins.iter().find(|plugin| plugin.name == "ViaVersion");
            let via = &via.unwrap_or_else(|| panic!("{} on {day} has no ViaVersion", release.version)).version;
            assert!(numbers(via) >= numbers(least), "{}: ViaVersion {via} on {day}", release.version);
            honoured += 1;
        }
        // The newest release that is too old, on every Paper version: there must be no solution.
        let released = viaversion.releases.iter().filter(|via| via.channel == Channel::Release);
        let older =
            released.filter(|via| numbers(&via.version) < numbers(least)).max_by_key(|via| numbers(&via.version));
        if let Some(older) = older {
            let mut too_old = pinned.clone();
            too_old.plugins.push(PluginRequest { version: pin(&older.version), ..plugin_request("viaversion") });
            let result =
                resolve_within(&catalog, &too_old, time_on(DAYS[11]), Budget { steps: 2_000, ..Budget::default() });
            assert!(matches!(result, Err(Unsolvable::NoSolution(_))), "{} with {}", release.version, older.version);
            refused += 1;
        }
    }
    assert!(honoured >= 100 && refused >= 25, "too few cases: {honoured} and {refused}");
}

fn valid_lock() -> (Catalog, Request, Timestamp, Lock) {
    let (catalog, request, now) =
        (recorded::catalog(), request(PaperRequest::Auto, &FOUR_PLUGINS[1..]), time_on("2026-01-20"));
    let lock = resolve(&catalog, &request, now).unwrap().lock;
    (catalog, request, now, lock)
}

/// A defect: its name, the change, and the expected error.
type Break<'x> = (&'static str, &'x dyn Fn(&mut Lock), &'static str);

#[test]
fn checker_detects_each_broken_lock() {
    let (catalog, request, now, good) = valid_lock();
    assert_eq!(checker::violations(&catalog, &request, now, &good), [""; 0]);
    let index = |name: &str| good.plugins.iter().position(|plugin| plugin.name == name).unwrap();
    let (via, grief) = (index("ViaVersion"), index("GriefPrevention"));
    let other_release = |lock: &mut Lock, plugin: usize, version: &str| {
        let project = catalog.projects.iter().find(|project| project.name == good.plugins[plugin].name).unwrap();
        let release = project.releases.iter().find(|release| release.version == version).unwrap();
        let file = release.file.as_ref().unwrap();
        lock.plugins[plugin].release_id = release.id.clone();
        lock.plugins[plugin].version = release.version.clone();
        lock.plugins[plugin].file.url = file.url.clone();
        lock.plugins[plugin].file.size = file.size;
        lock.plugins[plugin].file.hash = file.hash.clone().unwrap();
    };
    let breaks: [Break<'_>; 11] = [
        ("a newer Paper", &|lock| lock.minecraft = "1.21.11".parse().unwrap(), "the rules choose build"),
        ("an older build", &|lock| lock.build -= 1, "the rules choose build"),
        ("another Java", &|lock| lock.java = 17, "Java 17"),
        (
            "an image that was read wrongly",
            &|lock| lock.image_java = Some(ImageJava { has: 8, pushed: None }),
            "does not match the tag of image",
        ),
        ("an unsupported guess", &|lock| lock.guesses.push(unsupported_guess()), "but the lock contains the guesses"),
        ("another file", &|lock| lock.plugins[via].file.hash.push('0'), "differs from its release in the catalog"),
        ("no needed dependency", &|lock| drop(lock.plugins.remove(via)), "on ViaVersion is not met"),
        ("no requested plugin", &|lock| drop(lock.plugins.remove(grief)), "is requested, but the lock does not"),
        ("an older ViaVersion", &|lock| other_release(lock, via, "5.7.0"), "on ViaVersion is not met"),
        ("an old release", &|lock| other_release(lock, grief, "16.18.3"), "is not listed"),
        (
            "a wrong reason",
            &|lock| lock.plugins[via].reason = LockReason::NeededBy(vec!["DiscordSRV".to_owned()]),
            "wrong reason for ViaVersion",
        ),
    ];
    for (label, change, expected) in breaks {
        let mut broken = good.clone();
        change(&mut broken);
        let found = checker::violations(&catalog, &request, now, &broken);
        assert!(found.iter().any(|found| found.contains(expected)), "{label}: {found:?}");
    }
}

/// A guess that no publication dates support.
fn unsupported_guess() -> Guess {
    let text = |text: &str| text.to_owned();
    let (plugin, version, needs, at_least) = (text("ViaBackwards"), text("5.7.1"), text("ViaVersion"), text("5.6.0"));
    Guess { plugin, version, published: None, needs, at_least, at_least_published: None }
}

/// Guesses of a lock are computed again, and a fact without a source is detected.
#[test]
fn checker_recomputes_version_facts_of_lock() {
    let (mut catalog, mut request, now, plain) = valid_lock();
    assert_eq!(stale_facts(&plain, &catalog, &request, now).unwrap(), []);
    assert!(plain.bounds.iter().any(|fact| fact.plugin == "ViaBackwards") && plain.guesses.is_empty());
    let mut other = plain.clone();
    other.bounds[0].range = ">=1".parse().unwrap();
    let found = stale_facts(&other, &catalog, &request, now).unwrap();
    assert!(matches!(found.as_slice(), [StaleFact::FactGone { said }] if *said == other.bounds[0]), "{found:?}");
    other = plain.clone();
    other.guesses = vec![unsupported_guess()];
    let found = stale_facts(&other, &catalog, &request, now).unwrap();
    assert!(matches!(found.as_slice(), [StaleFact::GuessChanged { now: None, .. }]), "{found:?}");

    // A release that is in no table, so its minimum is guessed.
    let project = catalog.projects.iter_mut().find(|project| project.name == "ViaBackwards").unwrap();
    let release = project.releases.iter_mut().find(|release| release.version == "5.7.1").unwrap();
    release.version = "5.7.1.9".to_owned();
    let guessed = resolve(&catalog, &request, now).unwrap().lock;
    let [locked_guess] = guessed.guesses.as_slice() else { panic!("{:?}", guessed.guesses) };
    assert_eq!((locked_guess.version.as_str(), locked_guess.at_least.as_str()), ("5.7.1.9", "5.7.1"));
    assert_eq!(stale_facts(&guessed, &catalog, &request, now).unwrap(), []);
    let mut moved = catalog.clone();
    let via = moved.projects.iter_mut().find(|project| project.name == "ViaVersion").unwrap();
    let newest = via.releases.iter_mut().find(|release| release.version == "5.7.1").unwrap();
    newest.published = newest.published.map(|date| date + SignedDuration::from_hours(24));
    let found = stale_facts(&guessed, &moved, &request, now).unwrap();
    let [StaleFact::GuessChanged { guess, now: Some(least) }] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((guess, least.at_least.as_str()), (locked_guess, "5.7.0"));
    // For a removed release only the removal is reported, and for other software nothing is.
    let project = moved.projects.iter_mut().find(|project| project.name == "ViaBackwards").unwrap();
    project.releases.retain(|release| release.version != "5.7.1.9");
    assert_eq!(stale_facts(&guessed, &moved, &request, now).unwrap(), []);
    request.software = Software::Folia;
    assert_eq!(stale_facts(&other, &catalog, &request, now).unwrap(), []);
}

#[test]
fn checker_rereads_tag_of_locked_image() {
    let (catalog, _, now, mut plain) = valid_lock();
    let read = ImageJava { has: 21, pushed: None };
    (plain.image, plain.image_java) = (Some("example.org/paper:2026.1-java21".to_owned()), Some(read));
    assert_eq!(stale_file_facts(&plain, &catalog, now), []);
    let broken = |change: &dyn Fn(&mut Lock)| {
        let mut lock = plain.clone();
        change(&mut lock);
        stale_file_facts(&lock, &catalog, now)
    };
    assert_eq!(
        broken(&|lock| lock.image_java = Some(ImageJava { has: 25, ..read })),
        [StaleFact::ImageJava { locked: 25, says: Some(21) }]
    );
    assert_eq!(broken(&|lock| lock.image = None), [StaleFact::ImageJava { locked: 21, says: None }]);
    assert_eq!(broken(&|lock| (lock.image, lock.image_java) = (None, None)), []);
}

/// A release with a second JAR that its Plugin names. It is part of the lock, and a missing or different one is
/// detected.
#[test]
fn checker_and_verify_detect_missing_named_jar() {
    let (mut catalog, mut request, now, before) = valid_lock();
    let grief = before.plugins.iter().position(|plugin| plugin.name == "GriefPrevention").unwrap();
    let locked = &before.plugins[grief];
    let project = catalog.projects.iter_mut().find(|project| project.id == locked.project_id).unwrap();
    let release = project.releases.iter_mut().find(|release| release.id == locked.release_id).unwrap();
    let (name, url) = ("GriefFlags-1.jar".to_owned(), "https://files.example/flags".to_owned());
    let file = Artifact { name, url, size: None, hash: Some(format!("sha512:{:e<128}", "")) };
    release.further.push(FurtherJar { java: Some(25), ..FurtherJar::unread(file) });
    let main = stem(&release.file.as_ref().unwrap().name);
    let plugin_request =
        request.plugins.iter_mut().find(|plugin_request| plugin_request.object == "griefprevention").unwrap();
    plugin_request.jars = vec![main, "GriefFlags".to_owned()];

    let unmet_requirements = unmet(&before, &catalog, &request, now).unwrap();
    assert!(
        matches!(unmet_requirements.as_slice(), [Unmet::Files { wanted, .. }] if wanted.len() == 2),
        "{unmet_requirements:?}"
    );
    let after = resolve(&catalog, &request, now).unwrap().lock;
    assert_eq!((after.plugins[grief].more[0].name.as_str(), after.java), ("GriefFlags-1.jar", 25));
    assert_eq!(checker::violations(&catalog, &request, now, &after), [""; 0]);
    assert_eq!(unmet(&after, &catalog, &request, now).unwrap(), []);
    assert_eq!(stale_file_facts(&after, &catalog, now), []);

    let mut other = after.clone();
    other.plugins[grief].more[0].hash = "sha512:0".to_owned();
    let broken = stale_file_facts(&other, &catalog, now);
    assert!(matches!(broken.as_slice(), [StaleFact::FileChanged { .. }]), "{broken:?}");
    let mut lacks = after.clone();
    lacks.plugins[grief].more.clear();
    let found = checker::violations(&catalog, &request, now, &lacks);
    assert!(found.iter().any(|found| found.contains("differs from its release in the catalog")), "{found:?}");
}

/// A dependency that is delisted, alone or with its whole project. The query is from files, so no running version is
/// known, and the removal is the whole answer.
#[test]
fn delisted_dependency_is_the_only_reported_loss() {
    let (catalog, request, now, lock) = valid_lock();
    let via = lock.plugins.iter().find(|plugin| plugin.name == "ViaVersion").unwrap();
    let losses: [&dyn Fn(&Release) -> bool; 2] = [&|release| release.id == via.release_id, &|_| true];
    for is_delisted in losses {
        let mut catalog = catalog.clone();
        let project = catalog.projects.iter_mut().find(|project| project.id == via.project_id).unwrap();
        project.releases.retain(|release| !is_delisted(release));
        let broken = stale_file_facts(&lock, &catalog, now);
        assert!(
            matches!(broken.as_slice(), [StaleFact::ReleaseGone { plugin, .. }] if plugin == "ViaVersion"),
            "{broken:?}"
        );
        assert_eq!(unmet(&lock, &catalog, &request, now).unwrap(), []);
    }
}
