//! Pure. Stores a project compactly: values that releases share are written once.
//!
//! `ViaVersion`'s 886 releases repeat a few dozen lists of Minecraft versions. Written out, they are 54,000 version
//! strings. The tables reduce the file from 1.5 MB to a fifth and its parsing to a few milliseconds.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use resolver::model::catalog::{Artifact, Channel, Dependency, FurtherJar, Project, ProjectKey, Release};
use resolver::model::version::Minecraft;

#[derive(Serialize, Deserialize)]
struct Compact {
    key: ProjectKey,
    id: String,
    name: String,
    read_at: Timestamp,
    minecraft: Vec<Vec<Minecraft>>,
    loaders: Vec<Vec<String>>,
    dependencies: Vec<Vec<Dependency>>,
    releases: Vec<InternedRow>,
}

/// A release: id, version, published, channel, three table indexes, the file, and the further files.
#[derive(Serialize, Deserialize)]
struct InternedRow(String, String, Option<Timestamp>, Channel, usize, usize, usize, Option<DiskFile>, Vec<DiskFile>);

/// A file: name, url, size, hash.
#[derive(Serialize, Deserialize)]
struct DiskFile(String, String, Option<u64>, Option<String>);

/// A table under construction. Lists are compared by their text, so that each is restored exactly as it was written.
struct InternTable<T> {
    rows: Vec<T>,
    positions: BTreeMap<String, usize>,
}

impl<T: Clone + Serialize> InternTable<T> {
    fn new() -> Self {
        Self { rows: Vec::new(), positions: BTreeMap::new() }
    }

    fn intern(&mut self, row: &T) -> Result<usize, serde_json::Error> {
        let next = self.rows.len();
        let position = *self.positions.entry(serde_json::to_string(row)?).or_insert(next);
        if position == next {
            self.rows.push(row.clone());
        }
        Ok(position)
    }
}

/// For `#[serde(with)]`.
pub(super) fn serialize<S: Serializer>(project: &Project, serializer: S) -> Result<S::Ok, S::Error> {
    let Project { key, id, name, read_at, releases } = project;
    let (mut minecraft, mut loaders, mut dependencies) = (InternTable::new(), InternTable::new(), InternTable::new());
    let mut rows = Vec::with_capacity(releases.len());
    for release in releases {
        let file = |Artifact { name, url, size, hash }: Artifact| DiskFile(name, url, size, hash);
        rows.push(InternedRow(
            release.id.clone(),
            release.version.clone(),
            release.published,
            release.channel,
            minecraft.intern(&release.minecraft).map_err(serde::ser::Error::custom)?,
            loaders.intern(&release.loaders).map_err(serde::ser::Error::custom)?,
            dependencies.intern(&release.dependencies).map_err(serde::ser::Error::custom)?,
            release.file.clone().map(file),
            release.further.iter().map(|further| file(further.file.clone())).collect(),
        ));
    }
    Compact {
        key: key.clone(),
        id: id.clone(),
        name: name.clone(),
        read_at: *read_at,
        minecraft: minecraft.rows,
        loaders: loaders.rows,
        dependencies: dependencies.rows,
        releases: rows,
    }
    .serialize(serializer)
}

/// For `#[serde(with)]`.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Project, D::Error> {
    let Compact { key, id, name, read_at, minecraft, loaders, dependencies, releases } =
        Compact::deserialize(deserializer)?;
    let out_of_range = || D::Error::custom("a position outside its table");
    let artifact = |DiskFile(name, url, size, hash)| Artifact { name, url, size, hash };
    let releases = releases
        .into_iter()
        .map(
            |InternedRow(id, version, published, channel, in_minecraft, in_loaders, in_dependencies, file, further)| {
                let further = further.into_iter().map(artifact);
                Ok(Release {
                    id,
                    version,
                    published,
                    channel,
                    // Upstream pages do not contain these fields.
                    api_version: None,
                    refused: None,
                    java: None,
                    folia: None,
                    declared: None,
                    minecraft: minecraft.get(in_minecraft).ok_or_else(out_of_range)?.clone(),
                    loaders: loaders.get(in_loaders).ok_or_else(out_of_range)?.clone(),
                    dependencies: dependencies.get(in_dependencies).ok_or_else(out_of_range)?.clone(),
                    file: file.map(artifact),
                    further: further.map(FurtherJar::unread).collect(),
                })
            },
        )
        .collect::<Result<_, D::Error>>()?;
    Ok(Project { key, id, name, read_at, releases })
}
