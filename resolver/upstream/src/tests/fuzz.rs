//! Edge (reads). Fuzz tests for invalid responses: recorded ones with changed bytes, and noise.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use fixtures::fuzz::{mutate, recorded};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::docker_hub;
use crate::docker_hub::DockerHubRepository;
use crate::mutate::{MAX_ERROR_LENGTH, bytes, edits, for_all, within_time_limit};
use crate::project_page::{Name, ProjectListing};
use crate::{FetchError, fill, format_chain, hangar, modrinth, purpur};
use resolver::model::catalog::{Artifact, ImageTag};
use resolver::model::unverified_build::announced_md5;

static URL: LazyLock<Url> = LazyLock::new(|| Url::parse("https://upstream.example/an/address").unwrap());

fn name() -> Name {
    Name { id: "P1".to_owned(), slug: "odd".to_owned(), title: "Odd".to_owned() }
}

/// An error names the URL, and its length is limited.
fn accepted<T>(read: Result<T, FetchError>) -> Option<T> {
    read.map_err(|error| {
        let message = format_chain(&error);
        assert!(message.contains(URL.as_str()), "the URL is missing: {message}");
        assert!(message.len() < MAX_ERROR_LENGTH, "{} bytes: {message}", message.len());
    })
    .ok()
}

/// The hash of a file is absent or can be checked.
fn assert_hash_complete(file: &Artifact) {
    if let Some(hash) = &file.hash {
        assert!(artifacts::Hash::parse(hash).is_some_and(|read| read.to_string() == *hash), "{hash}");
    }
}

/// Invariants of every list of releases. The list is unchanged after it is stored and read.
fn assert_sorted(listing: &ProjectListing) {
    let releases = &listing.project.releases;
    let ids: BTreeSet<&str> = releases.iter().map(|release| release.id.as_str()).collect();
    assert_eq!(ids.len(), releases.len(), "a release is listed twice");
    assert!(releases.is_sorted_by(|a, b| a.published >= b.published), "the newest release is not first");
    for release in releases {
        assert!(release.minecraft.is_sorted() && release.loaders.is_sorted());
        release.file.iter().chain(release.further.iter().map(|jar| &jar.file)).for_each(assert_hash_complete);
    }
    let text = serde_json::to_string(listing).unwrap();
    assert_eq!(serde_json::from_str::<ProjectListing>(&text).unwrap(), *listing);
}

fn modrinth_list(body: &[u8]) -> bool {
    let read = accepted(modrinth::parse_listing(&URL, body, &name(), now()));
    read.iter().for_each(assert_sorted);
    read.is_some()
}

/// Also merges the page into its own result.
fn hangar_list(body: &[u8]) -> bool {
    let page = || accepted(hangar::parse_page(&URL, body, 0));
    let Some(first) = page() else { return false };
    let (releases, scan) = hangar::join_pages(vec![first], now());
    let listing = hangar::build_listing(&name(), releases.clone(), scan.clone(), now());
    assert_sorted(&listing);
    if let Some((again, scan)) = hangar::merge(&page().unwrap(), releases, scan) {
        assert_eq!(hangar::build_listing(&name(), again, scan, now()), listing);
    }
    true
}

fn fill_versions(body: &[u8]) -> bool {
    let Some(listed) = accepted(fill::parse_versions(&URL, body)) else { return false };
    assert!(listed.is_sorted_by(|a, b| a.minecraft < b.minecraft));
    let builds = listed.iter().map(|version| version.builds.as_ref().unwrap());
    assert!(builds.into_iter().all(|builds| builds.is_sorted_by(|a, b| a < b)));
    assert_eq!(serde_json::from_str::<Vec<fill::Listed>>(&serde_json::to_string(&listed).unwrap()).unwrap(), listed);
    true
}

fn fill_builds(body: &[u8]) -> bool {
    let Some(builds) = accepted(fill::parse_builds(&URL, body)) else { return false };
    assert!(builds.builds.is_sorted_by(|a, b| a.number < b.number));
    builds.builds.iter().for_each(|build| assert_hash_complete(&build.file));
    assert_eq!(serde_json::from_str::<fill::FillBuilds>(&serde_json::to_string(&builds).unwrap()).unwrap(), builds);
    true
}

fn purpur_versions(body: &[u8]) -> bool {
    let Some(listed) = accepted(purpur::parse_versions(&URL, body)) else { return false };
    assert!(!listed.is_empty() && listed.is_sorted_by(|a, b| a.minecraft < b.minecraft));
    true
}

fn purpur_builds(body: &[u8]) -> bool {
    let (upstreams, version) = (Upstreams::default(), "26.2".parse().unwrap());
    let Some(builds) = accepted(purpur::parse_builds(&URL, &upstreams, &version, body)) else { return false };
    assert!(builds.builds.is_sorted_by(|a, b| a.number < b.number));
    for build in &builds.builds {
        assert!(builds.numbers.contains(&build.number));
        assert!(build.file.hash.is_none() || announced_md5(&build.file).is_some(), "{:?}", build.file.hash);
    }
    true
}

fn docker_tags(body: &[u8]) -> bool {
    let Some((tags, _)) = accepted(docker_hub::parse_page(&URL, body, &DockerHubRepository::parse("itzg/x").unwrap()))
    else {
        return false;
    };
    for ImageTag { repository, tag, digest, pushed: _ } in &tags {
        assert_eq!(repository, "docker.io/itzg/x");
        let hash = artifacts::Hash::parse(digest);
        assert!(hash.is_some_and(|hash| hash.to_string() == *digest), "{tag} has an invalid digest: {digest:?}");
    }
    true
}

fn modrinth_name(body: &[u8]) -> bool {
    accepted(modrinth::parse_name(&URL, body)).is_some()
}

fn hangar_name(body: &[u8]) -> bool {
    accepted(hangar::parse_name(&URL, body)).is_some()
}

/// The first rows of a recorded list.
fn rows(name: &str, count: usize) -> Vec<Value> {
    let Value::Array(mut rows) = serde_json::from_slice(&recorded(name)).unwrap() else { panic!("{name}: no list") };
    rows.truncate(count);
    rows
}

/// Whether the body is a valid response.
type Reader = fn(&[u8]) -> bool;

/// Each reader with a response that it accepts.
fn readers() -> [(Reader, Vec<u8>); 9] {
    let tag = |name: &str, last: &str| json!({"name": name, "digest": format!("sha256:{}", "0f".repeat(32)), "tag_last_pushed": last, "images": []});
    let tags = [
        tag("2026.1.0-java21", "2026-01-18T09:12:30.123456Z"),
        tag("latest", "2026-01-18T09:12:31Z"),
        tag("2025.12.2-java25", "2025-12-20T00:00:00Z"),
    ];
    let versions = json!({"versions": [
        {"version": {"id": "1.21.10", "support": {"status": "SUPPORTED"}, "java": {"version": {"minimum": 21}, "flags": {"recommended": ["-XX:+UseG1GC"]}}}, "builds": [130, 129]},
        {"version": {"id": "1.21.9-rc1", "support": {"status": "UNSUPPORTED", "end": "2025-09-29"}}, "builds": [36]}]});
    let builds: Vec<Value> = ["1.21.6-46", "1.21.8-60", "1.21.9-49", "1.21.9-rc1-36"]
        .iter()
        .map(|build| serde_json::from_slice(&recorded(&format!("fill/build-{build}.json"))).unwrap())
        .collect();
    let purpur =
        json!({"project": "purpur", "metadata": {"current": "26.2"}, "versions": ["1.14.1", "1.21.10", "26.2"]});
    let of_purpur = json!({"project": "purpur", "version": "26.2", "builds": {"latest": null, "all": [
        {"build": "2621", "result": "SUCCESS", "timestamp": 1_767_312_000_000_i64, "metadata": {}, "md5": "0f".repeat(16)},
        {"build": "2622", "result": "FAILURE", "timestamp": 1_767_312_000_001_i64, "metadata": {"type": "experimental"}, "md5": null}]}});
    [
        (purpur_versions, purpur.to_string().into_bytes()),
        (purpur_builds, of_purpur.to_string().into_bytes()),
        (modrinth_name, recorded("modrinth/nucledoom-project.json")),
        (modrinth_list, json!(rows("modrinth/griefprevention.json", 5)).to_string().into_bytes()),
        (
            hangar_name,
            json!({"id": 31, "name": "Maintenance", "namespace": {"owner": "kennytv", "slug": "Maintenance"}})
                .to_string()
                .into_bytes(),
        ),
        (hangar_list, recorded("hangar/maintenance.json")),
        (fill_versions, versions.to_string().into_bytes()),
        (fill_builds, json!(builds).to_string().into_bytes()),
        (docker_tags, json!({"count": 3, "next": null, "results": tags}).to_string().into_bytes()),
    ]
}

#[test]
fn mutated_answer_is_read_or_refused_with_its_url() {
    let readers = readers();
    for (position, (read, good)) in readers.iter().enumerate() {
        assert!(read(good), "{}", String::from_utf8_lossy(good));
        let others = &readers[(position + 1) % readers.len()].1;
        let accepted = Cell::new(0_u32);
        for_all(400, &(edits(), any::<bool>()), |(edits, is_own_reader)| {
            let spliced = if is_own_reader { good } else { others };
            accepted.set(accepted.get() + u32::from(read(&mutate(good, spliced, &edits))));
            Ok(())
        });
        assert!(accepted.get() > 20, "reader {position}: only {} inputs were read", accepted.get());
    }
}

#[test]
fn random_bytes_are_refused_as_answer() {
    for_all(400, &bytes(), |bytes| {
        for (position, (read, _)) in readers().iter().enumerate().skip(bytes.len() % 7).take(1) {
            // `[]` is a list without releases.
            prop_assert!(!read(&bytes) || bytes.trim_ascii().first() == Some(&b'['), "reader {}", position);
        }
        Ok(())
    });
}

#[test]
fn long_and_deep_answers_are_read_in_time() {
    let long = "x".repeat(1 << 20);
    for (position, (read, good)) in readers().iter().enumerate() {
        let text = String::from_utf8(good.clone()).unwrap();
        let mut texts =
            vec!["[".repeat(1 << 20), "{\"a\":".repeat(1 << 18), format!("{{\"{long}\":1}}"), format!("\"{long}\"")];
        // Endless dates, names and numbers in several positions.
        for (old, new) in [("20", long.as_str()), (":\"", &format!(":\"{long}")), (":[", &format!(":[\"{long}\","))] {
            texts.push(text.replacen(old, new, 1));
            texts.push(text.replacen(old, new, 4));
        }
        // A list 400 times as long.
        if let Some((head, rest)) = text.split_once('[').filter(|_| text.ends_with(']') || position == 3) {
            let end = rest.rfind(']').unwrap();
            let row = &rest[..end];
            texts.push(format!("{head}[{}{row}{}", format!("{row},").repeat(400), &rest[end..]));
        }
        for text in texts {
            within_time_limit(&format!("reader {position}"), || read(text.as_bytes()));
        }
    }
}

#[test]
fn upstream_error_repeats_little_of_answer() {
    let long = "x".repeat(1 << 20);
    let body = format!(
        "[{{\"id\": \"R1\", \"version_number\": \"1\", \"version_type\": \"release\", \"date_published\": \"{long}\"}}]"
    );
    let error = modrinth::parse_listing(&URL, body.as_bytes(), &name(), now()).unwrap_err();
    let message = format_chain(&error);
    assert!(
        message.contains("Modrinth") && message.contains(URL.as_str()) && message.len() < MAX_ERROR_LENGTH,
        "{} bytes",
        message.len()
    );
    let body = format!("\"{long}\"");
    let message = format_chain(&modrinth::parse_listing(&URL, body.as_bytes(), &name(), now()).unwrap_err());
    assert!(message.contains("invalid type") && message.len() < MAX_ERROR_LENGTH, "{} bytes", message.len());
}

#[test]
fn release_listed_twice_with_two_dates_is_one() {
    let row =
        |date: &str| json!({"id": "R1", "version_number": "1", "version_type": "release", "date_published": date});
    let other =
        json!({"id": "R2", "version_number": "2", "version_type": "release", "date_published": "2026-01-02T00:00:00Z"});
    let body = json!([row("2026-01-01T00:00:00Z"), other, row("2026-01-03T00:00:00Z")]).to_string();
    let listing = modrinth::parse_listing(&URL, body.as_bytes(), &name(), now()).unwrap();
    let ids: Vec<_> =
        listing.project.releases.iter().map(|release| (release.id.as_str(), release.published.unwrap())).collect();
    assert_eq!(
        ids,
        [("R1", instant("2026-01-03T00:00:00Z")), ("R2", instant("2026-01-02T00:00:00Z"))],
        "the row with the newest date wins"
    );
}

#[test]
fn hangar_version_count_overflow_does_not_panic() {
    let page = |ids: &[u64]| {
        let rows: Vec<Value> = ids.iter().map(|id| json!({"id": id, "name": "1"})).collect();
        let body = json!({"pagination": {"limit": 25, "count": u64::MAX}, "result": rows}).to_string();
        hangar::parse_page(&URL, body.as_bytes(), 0).unwrap()
    };
    let (releases, scan) = hangar::join_pages(vec![page(&[1])], now());
    assert!(hangar::merge(&page(&[2, 1]), releases, scan).is_none());
}

#[test]
fn hangar_small_pages_have_bounded_request_count() {
    let body = json!({"pagination": {"limit": 1, "count": u64::MAX}, "result": []}).to_string();
    assert!(hangar::parse_page(&URL, body.as_bytes(), 0).unwrap().further_offsets().count() < 200);
}

#[test]
fn image_digest_is_normalised_to_registry_form() {
    let digest = format!("sha256:{}", "AB".repeat(32));
    let body = json!({"next": null, "results": [
        {"name": "2026.1.0-java21", "digest": digest, "last_updated": "2026-01-01T00:00:00Z"},
        {"name": "2026.2.0-java21", "digest": digest + "\n", "last_updated": "2026-01-01T00:00:00Z"}]});
    let (tags, _) =
        docker_hub::parse_page(&URL, body.to_string().as_bytes(), &DockerHubRepository::parse("itzg/x").unwrap())
            .unwrap();
    let digests: Vec<_> = tags.into_iter().map(|tag| tag.digest).collect();
    let right = format!("sha256:{}", "ab".repeat(32));
    assert_eq!(digests, [right.clone(), right]);
}
