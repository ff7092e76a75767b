//! Pure. Fuzz tests for versions, locks and saved metadata: no panic, limited time, and accepted input survives writing
//! and reading.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed setup must fail the test")]

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::BTreeSet;

use fixtures::fuzz::mutate;
use jiff::Timestamp;
use proptest::prelude::*;
use resolver::explanation::Explanation;
use resolver::lock_check::{stale_file_facts, unmet};
use resolver::model::catalog::{Catalog, Channel, ProjectKey};
use resolver::model::lock::Lock;
use resolver::model::request::{PaperRequest, Request, Running};
use resolver::model::version::{Minecraft, glob, hotfix, lenient};
use resolver::render::text;
use resolver::{Budget, resolve_within, why_not};
use serde::Serialize;
use serde::de::DeserializeOwned;

#[path = "support/mutate.rs"]
mod mutate;
#[path = "support/recorded.rs"]
mod recorded;

use mutate::{MAX_ERROR_LENGTH, edits, for_all, text, within_time_limit};

const NAMES: [&str; 3] = ["viabackwards", "discordsrv", "griefprevention"];

fn now() -> Timestamp {
    "2026-01-20T18:00:00Z".parse().unwrap()
}

/// A small part of the recorded metadata, so that most changes affect the answer.
fn small_catalog() -> Catalog {
    let mut catalog = recorded::catalog();
    catalog.paper.retain(|paper| paper.minecraft.is_release());
    catalog.paper.drain(..catalog.paper.len() - 6);
    for paper in &mut catalog.paper {
        paper.builds.drain(..paper.builds.len().saturating_sub(2));
    }
    for project in &mut catalog.projects {
        project.releases.retain(|release| release.channel == Channel::Release && release.published <= Some(now()));
        project.releases.truncate(5);
    }
    catalog
}

fn request() -> Request {
    recorded::request(PaperRequest::Auto, &NAMES)
}

/// Reads a text as JSON: an error contains its position, and a value is unchanged after it is written and read.
fn round_trip<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(bytes: &[u8]) -> Option<T> {
    match serde_json::from_slice::<T>(bytes) {
        Ok(value) => {
            let text = serde_json::to_string(&value).unwrap();
            let again: T = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            assert_eq!(again, value, "{text}");
            Some(value)
        }
        Err(error) => {
            assert!(error.line() > 0 || bytes.is_empty(), "the error must state a position: {error}");
            assert!(error.to_string().len() < bytes.len() + MAX_ERROR_LENGTH, "{error}");
            None
        }
    }
}

#[test]
fn version_text_round_trips_and_orders_are_consistent() {
    let versions = "[0-9]{1,6}[.wvx-][0-9]{0,3}[a-z.-]{0,4}[0-9]{0,6}";
    let texts = prop_oneof![text(), versions];
    for_all(1_500, &(texts.clone(), texts.clone(), texts), |(a, b, c)| {
        for (a, b) in [(&a, &b), (&b, &c)] {
            prop_assert_eq!(lenient::compare(a, b), lenient::compare(b, a).reverse());
            prop_assert!(!lenient::is_patch_of(a, b) || !lenient::is_patch_of(b, a));
            lenient::names_a_snapshot(a);
        }
        if lenient::compare(&a, &b).is_le() && lenient::compare(&b, &c).is_le() {
            prop_assert!(lenient::compare(&a, &c).is_le());
        }
        let read: Vec<Minecraft> = [&a, &b, &c].iter().filter_map(|text| text.parse().ok()).collect();
        for version in &read {
            prop_assert_eq!(version.to_string().parse::<Minecraft>(), Ok(version.clone()));
            prop_assert!([&a, &b, &c].iter().any(|text| text.as_str() == version.as_str()));
            prop_assert!(glob::matches("*", version) == version.is_release());
            glob::matches(&a, version);
            // Being hotfix siblings is symmetric.
            prop_assert!(
                hotfix::siblings(version).all(|other| hotfix::siblings(other).any(|sibling| sibling == version))
            );
            version.vanilla_java();
        }
        if let [a, b, c] = &read[..] {
            prop_assert_eq!(a.cmp(b), b.cmp(a).reverse());
            prop_assert!(a.cmp(b).is_gt() || b.cmp(c).is_gt() || a.cmp(c).is_le());
        }
        Ok(())
    });
}

#[test]
fn endless_version_is_read_in_time_and_not_repeated() {
    for part in ["1", "1.", "-", "a-", "+1.", "é", "24w05b"] {
        let long = part.repeat((1 << 18) / part.len());
        within_time_limit(part, || {
            let error = long.parse::<Minecraft>().unwrap_err();
            assert!(error.to_string().len() < MAX_ERROR_LENGTH);
            assert_eq!(lenient::compare(&long, &long), Ordering::Equal);
            lenient::compare(&long, &format!("{long}1"));
            lenient::names_a_snapshot(&long);
            lenient::is_patch_of(&long, &long);
            glob::matches(&long, &"1.21.10".parse().unwrap());
        });
    }
}

#[test]
fn mutated_lock_is_read_or_refused_with_place() {
    let catalog = small_catalog();
    let lock = resolve_within(&catalog, &request(), now(), Budget::default()).unwrap().lock;
    let good = lock.to_json();
    let read = Cell::new(0_u32);
    for_all(800, &edits(), |edits| {
        let Some(changed) = round_trip::<Lock>(&mutate(good.as_bytes(), good.as_bytes(), &edits)) else {
            return Ok(());
        };
        read.set(read.get() + 1);
        prop_assert_eq!(&changed.digest(), &round_trip::<Lock>(changed.to_json().as_bytes()).unwrap().digest());
        prop_assert!(changed.digest().short().len() == 16);
        prop_assert!(lock.difference(&changed).equal == (lock.digest() == changed.digest()));
        let unmet = unmet(&changed, &catalog, &request(), now()).unwrap();
        prop_assert!(unmet.is_empty() || changed != lock);
        stale_file_facts(&changed, &catalog, now());
        Ok(())
    });
    assert!(read.get() > 40, "only {} mutated locks were read", read.get());
    for_all(500, &mutate::bytes(), |bytes| {
        prop_assert!(round_trip::<Lock>(&bytes).is_none());
        Ok(())
    });
}

/// All answers to a query, as text and as JSON.
fn check_answers(catalog: &Catalog, request: &Request) {
    let steps = Budget { steps: 400, ..Budget::default() };
    let result = resolve_within(catalog, request, now(), steps);
    let explanation = match &result {
        Ok(resolution) => {
            let files: BTreeSet<String> =
                resolution.lock.plugins.iter().map(|plugin| plugin.file.name.to_lowercase()).collect();
            assert_eq!(files.len(), resolution.lock.plugins.len(), "two plugins must not share a file name");
            assert_eq!(round_trip::<Lock>(resolution.lock.to_json().as_bytes()).as_ref(), Some(&resolution.lock));
            resolution.explanation.clone()
        }
        Err(unsolvable) => unsolvable.explanation(),
    };
    let mut explanations = vec![explanation];
    if let Some(newest) = catalog.paper.last() {
        explanations.extend(why_not(catalog, request, &newest.minecraft, now()).map(Explanation::WhyNot));
    }
    for explanation in &explanations {
        assert!(!text::render(explanation, now()).trim().is_empty());
        round_trip::<Explanation>(serde_json::to_string(explanation).unwrap().as_bytes());
    }
}

#[test]
fn mutated_catalog_is_read_or_refused_and_answered() {
    let good = serde_json::to_string(&small_catalog()).unwrap();
    let read = Cell::new(0_u32);
    for_all(400, &edits(), |edits| {
        let Some(catalog) = round_trip::<Catalog>(&mutate(good.as_bytes(), good.as_bytes(), &edits)) else {
            return Ok(());
        };
        read.set(read.get() + 1);
        check_answers(&catalog, &request());
        Ok(())
    });
    assert!(read.get() > 20, "only {} mutated catalogs were read", read.get());
}

#[test]
fn mutated_request_is_read_or_refused_and_answered() {
    let catalog = small_catalog();
    let mut request = request();
    request.delay = "72h".parse().unwrap();
    request.floor = Some("1.21.9".parse().unwrap());
    request.running =
        resolve_within(&catalog, &request, now(), Budget::default()).ok().map(|old| Running::from_lock(&old.lock));
    let good = serde_json::to_string(&request).unwrap();
    let read = Cell::new(0_u32);
    for_all(400, &edits(), |edits| {
        let Some(request) = round_trip::<Request>(&mutate(good.as_bytes(), good.as_bytes(), &edits)) else {
            return Ok(());
        };
        read.set(read.get() + 1);
        check_answers(&catalog, &request);
        Ok(())
    });
    assert!(read.get() > 15, "only {} mutated requests were read", read.get());
}

#[test]
fn endless_nesting_is_refused() {
    for open in ["[", "{\"a\":", "{\"paper\":["] {
        let deep = open.repeat(200_000);
        within_time_limit(open, || {
            assert!(round_trip::<Lock>(deep.as_bytes()).is_none());
            assert!(round_trip::<Catalog>(deep.as_bytes()).is_none());
            assert!(round_trip::<Request>(deep.as_bytes()).is_none());
            assert!(round_trip::<ProjectKey>(deep.as_bytes()).is_none());
        });
    }
}

#[test]
fn extreme_instants_and_delays_are_answered() {
    for (published, delay) in [
        ("9999-12-30T22:00:00.999999999Z", "PT0S"),
        ("9999-12-30T22:00:00.999999999Z", "P9999999D"),
        ("-009999-01-02T01:59:59Z", "PT175307616H"),
        ("-009999-01-02T01:59:59Z", "-PT175307616H"),
        ("2026-01-01T00:00:00Z", "PT2562047788015215H"),
        ("2026-01-01T00:00:00Z", "-PT2562047788015215H"),
    ] {
        let (mut catalog, mut request) = (small_catalog(), request());
        let (published, Ok(delay)) = (published.parse::<Timestamp>().unwrap(), delay.parse()) else { continue };
        request.delay = delay;
        request.plugins.iter_mut().for_each(|plugin_request| plugin_request.delay = delay);
        check_answers(&catalog, &request);
        catalog.projects.iter_mut().flat_map(|project| &mut project.releases).for_each(|release| {
            release.published = Some(published);
        });
        catalog.paper.iter_mut().flat_map(|paper| &mut paper.builds).for_each(|build| build.published = published);
        check_answers(&catalog, &request);
    }
}
