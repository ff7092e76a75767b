//! Pure. What releases ask of each other, by `docs/concepts/solve.md`; for tests only.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use jiff::SignedDuration;
use resolver::catalog::{Catalog, Dependency, DependencyKind, Project, ProjectKey, Release, Source};
use resolver::request::{Dependencies, Request};

use super::rules::{Unknown, place_of, published, runs, runs_on_paper};
use super::texts::Key;

/// What one release asks of one other member.
pub(crate) struct Ask<'a> {
    /// The other member.
    pub(crate) of: usize,
    /// Whether it may as well not be there.
    pub(crate) or_absent: bool,
    /// The releases that will do.
    pub(crate) one_of: BTreeSet<&'a str>,
}

/// Reads dependency lines.
pub(crate) struct Needs<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) request: &'a Request,
    /// Places of what was asked for.
    pub(crate) asked: BTreeSet<usize>,
}

enum Leads {
    To(usize),
    /// Could not be read.
    Unread,
    /// Nobody has tried to read it yet.
    Unknown,
    /// Not at this source, or not for Paper: nothing to choose.
    Nowhere,
}

/// `ViaBackwards`' least `ViaVersion`, release by release: data with a source of its own, so it is read, not repeated.
static LEAST: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let table: serde_json::Value = serde_json::from_str(include_str!("../../src/overlay/viabackwards.json")).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    table["atLeast"].as_array().unwrap().iter().map(|row| (text(&row[0]), text(&row[1]))).collect()
});

/// What `ViaBackwards` needs: the least version of a known release.
pub(crate) fn least_viaversion(viabackwards: &str) -> Option<&'static str> {
    LEAST.get(viabackwards).map(String::as_str)
}

fn viaversion_for(project: &Project) -> Option<ProjectKey> {
    let needs = match project.key.source {
        Source::Modrinth => (project.id == "NpvuJQoq").then_some("P1OZGk5p"),
        Source::Hangar => project.name.eq_ignore_ascii_case("ViaBackwards").then_some("ViaVersion"),
        Source::Url => None,
    };
    needs.map(|needs| ProjectKey { source: project.key.source, project: needs.to_owned() })
}

impl<'a> Needs<'a> {
    /// The projects that these releases need. A faulty release needs nothing.
    pub(crate) fn by(&self, place: usize, releases: &[&'a Release]) -> Result<BTreeSet<usize>, Unknown> {
        let mut needed = BTreeSet::new();
        for release in releases {
            for leads in self.required(place, release) {
                match leads {
                    Leads::To(other) if self.can_be_met(place, release) => {
                        needed.insert(other);
                    }
                    Leads::Unknown => return Err(Unknown),
                    Leads::To(_) | Leads::Unread | Leads::Nowhere => {}
                }
            }
        }
        Ok(needed)
    }

    /// Whether everything it requires can be read and is allowed.
    pub(crate) fn can_be_met(&self, place: usize, release: &Release) -> bool {
        self.required(place, release).iter().all(|leads| match leads {
            Leads::To(other) => self.request.dependencies == Dependencies::Install || self.asked.contains(other),
            Leads::Unread => runs(self.request, release),
            Leads::Unknown | Leads::Nowhere => true,
        })
    }

    fn required(&self, place: usize, release: &Release) -> Vec<Leads> {
        let lines = release.dependencies.iter().filter(|line| line.kind == DependencyKind::Required);
        let mut leads: Vec<Leads> = lines.map(|line| self.line(place, line)).collect();
        if let Some(key) = viaversion_for(&self.catalog.projects[place]) {
            leads.push(self.key(&key));
        }
        leads
    }

    fn key(&self, key: &ProjectKey) -> Leads {
        match place_of(self.catalog, key) {
            Some(place) => Leads::To(place),
            None if self.unread(key) => Leads::Unread,
            None => Leads::Unknown,
        }
    }

    fn unread(&self, key: &ProjectKey) -> bool {
        let full = format!("{}/{}", key.source, key.project);
        self.catalog
            .unread
            .keys()
            .any(|name| name.eq_ignore_ascii_case(&full) || name.eq_ignore_ascii_case(&key.project))
    }

    fn line(&self, place: usize, line: &Dependency) -> Leads {
        let source = self.catalog.projects[place].key.source;
        let keys: Vec<ProjectKey> = [&line.project_id, &line.name]
            .into_iter()
            .flatten()
            .map(|project| ProjectKey { source, project: project.clone() })
            .collect();
        let holds = |project: &Project| {
            project.key.source == source
                && project.releases.iter().any(|release| Some(&release.id) == line.version_id.as_ref())
        };
        let found = keys
            .iter()
            .find_map(|key| place_of(self.catalog, key))
            .or_else(|| self.catalog.projects.iter().position(holds));
        match found {
            Some(other) if other != place && self.catalog.projects[other].releases.iter().any(runs_on_paper) => {
                Leads::To(other)
            }
            None if keys.iter().any(|key| self.unread(key)) => Leads::Unread,
            None if line.project_id.is_some() => Leads::Unknown,
            Some(_) | None => Leads::Nowhere,
        }
    }

    /// What a release asks of the members; `out` are their releases, oldest first.
    pub(crate) fn asks(
        &self,
        members: &[usize],
        out: &[Vec<&'a Release>],
        place: usize,
        release: &'a Release,
    ) -> Vec<Ask<'a>> {
        let member = |leads: &Leads| match leads {
            Leads::To(other) => members.iter().position(|member| member == other),
            Leads::Unread | Leads::Unknown | Leads::Nowhere => None,
        };
        let mut asks = Vec::new();
        for line in &release.dependencies {
            let Some(of) = member(&self.line(place, line)) else { continue };
            let means = |other: &Release| line.version_id.as_ref().is_none_or(|id| other.id == *id);
            let ids = |keep: &dyn Fn(&Release) -> bool| {
                out[of].iter().filter(|other| keep(other)).map(|other| other.id.as_str()).collect()
            };
            match line.kind {
                DependencyKind::Required => asks.push(Ask { of, or_absent: false, one_of: ids(&means) }),
                DependencyKind::Optional if line.version_id.is_some() => {
                    asks.push(Ask { of, or_absent: true, one_of: ids(&means) });
                }
                DependencyKind::Incompatible => {
                    asks.push(Ask { of, or_absent: true, one_of: ids(&|other| !means(other)) });
                }
                DependencyKind::Optional | DependencyKind::Embedded => {}
            }
        }
        let project = &self.catalog.projects[place];
        if let Some(of) = viaversion_for(project).and_then(|key| member(&self.key(&key))) {
            asks.push(Ask { of, or_absent: false, one_of: viaversions(release, &out[of]) });
        }
        asks
    }
}

/// The `ViaVersion` releases that a release of `ViaBackwards` accepts: by the table, else guessed from the dates.
fn viaversions<'a>(release: &Release, out: &[&'a Release]) -> BTreeSet<&'a str> {
    if let Some(least) = least_viaversion(&release.version) {
        let least = Key::of(least);
        return out.iter().filter(|via| Key::of(&via.version) >= least).map(|via| via.id.as_str()).collect();
    }
    let same_night = published(release).checked_add(SignedDuration::from_hours(1)).unwrap();
    let newest = out.iter().rposition(|via| via.channel == release.channel && published(via) <= same_night);
    out[newest.unwrap_or(0)..].iter().map(|via| via.id.as_str()).collect()
}
