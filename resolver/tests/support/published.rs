//! Pure. Converts the published releases of a scenario file to the catalog.

use std::collections::BTreeMap;

use jiff::Timestamp;
use resolver::model::api_version::ApiVersion;
use resolver::model::catalog::{
    Artifact, Build, BuildChannel, Channel, Declared, Dependency, DependencyKind, FurtherJar, PaperVersion, Release,
};
use resolver::model::version::Minecraft;
use serde::Deserialize;

#[expect(clippy::struct_excessive_bools, reason = "each is a field of the file format")]
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReleaseFields {
    /// The version, if several releases have the same one. The key of the table is then the id.
    version: Option<String>,
    minecraft: Option<toml::Value>,
    published: Option<String>,
    channel: Option<Channel>,
    loaders: Option<Vec<String>>,
    #[serde(default)]
    needs: Vec<String>,
    #[serde(default)]
    incompatible: Vec<String>,
    /// The name in its JAR, if the JAR was read. The JAR of a plugin from a URL is always read. The default is the name
    /// of the project. `depend`, `api_version` and `provides` are also from the JAR.
    called: Option<String>,
    #[serde(default)]
    depend: Vec<String>,
    api_version: Option<ApiVersion>,
    /// The main class of its JAR, which was read.
    main: Option<String>,
    /// The rule by which Paper refuses its JAR, which was read.
    refused: Option<String>,
    /// Whether its JAR was read and declares no minimum Minecraft.
    #[serde(default)]
    legacy: bool,
    /// The Java that its class files need.
    java: Option<u32>,
    /// Whether its JAR declares Folia support.
    folia: Option<bool>,
    #[serde(default)]
    provides: Vec<String>,
    #[serde(default)]
    optional: Vec<String>,
    #[serde(default)]
    embedded: Vec<String>,
    /// Required dependencies, by names that the source does not have.
    #[serde(default)]
    outside: Vec<String>,
    #[serde(default = "yes")]
    hash: bool,
    #[serde(default = "yes")]
    file: bool,
    /// Whether its file is an archive and no JAR.
    #[serde(default)]
    archive: bool,
    /// Names of its further JARs, without version and `.jar`, with the Java that their class files need.
    #[serde(default)]
    further: BTreeMap<String, FurtherFields>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FurtherFields {
    called: Option<String>,
    #[serde(default)]
    depend: Vec<String>,
    java: Option<u32>,
    api_version: Option<ApiVersion>,
    #[serde(default = "yes")]
    hash: bool,
}

/// The default minimum Minecraft of a JAR that was read. Every server loads the JAR, and none in legacy mode.
const DEFAULT_API_VERSION: &str = "1.13";

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(Default)]
struct PaperFields {
    published: Option<String>,
    channel: Option<BuildChannel>,
    java: Option<u32>,
    #[serde(default)]
    unsupported: bool,
    /// Replaces the single build 7.
    builds: Option<Vec<BuildFields>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BuildFields {
    number: u32,
    published: Option<String>,
    channel: Option<BuildChannel>,
    #[serde(default = "yes")]
    hash: bool,
    /// Whether its source publishes only an md5 and the build is not verified yet.
    #[serde(default)]
    unverified: bool,
}

/// Parses a day or a time.
pub(crate) fn parse_day(text: Option<&str>) -> Timestamp {
    let text = text.unwrap_or("2024-01-01");
    text.parse().unwrap_or_else(|_| format!("{text}T00:00:00Z").parse().unwrap())
}

pub(crate) fn artifact(name: &str, hash: bool) -> Artifact {
    Artifact {
        name: format!("{name}.jar"),
        url: format!("https://files.example/{name}.jar"),
        size: Some(1),
        hash: hash.then(|| format!("sha256:{:a<64}", "")),
    }
}

pub(crate) fn parse_papers(table: &toml::Table, software: &str) -> Vec<PaperVersion> {
    let versions = table["versions"].as_array().unwrap().iter().map(|version| version.as_str().unwrap());
    versions
        .map(|version| {
            let fields: Option<PaperFields> = table.get(version).map(|fields| fields.clone().try_into().unwrap());
            let fields = fields.unwrap_or_default();
            let build = |number, published: Option<&str>, channel: Option<BuildChannel>, hash| Build {
                number,
                published: parse_day(published),
                channel: channel.unwrap_or(BuildChannel::Stable),
                file: artifact(&format!("{software}-{version}-{number}"), hash),
            };
            PaperVersion {
                minecraft: version.parse().unwrap(),
                java: fields.java,
                jvm_flags: Vec::new(),
                unsupported: fields.unsupported,
                builds: match &fields.builds {
                    None => vec![build(7, fields.published.as_deref(), fields.channel, true)],
                    Some(builds) => (builds.iter())
                        .map(|b| {
                            let mut build = build(b.number, b.published.as_deref(), b.channel, b.hash);
                            if b.unverified {
                                build.file.hash = Some(format!("md5:{:c<32}", ""));
                            }
                            build
                        })
                        .collect(),
                },
            }
        })
        .collect()
}

fn listed_versions(expression: Option<&toml::Value>, all: &[PaperVersion]) -> Vec<Minecraft> {
    let keep = |keep: &dyn Fn(&Minecraft) -> bool| {
        all.iter().map(|paper| paper.minecraft.clone()).filter(|minecraft| keep(minecraft)).collect()
    };
    match expression {
        None => keep(&|_| true),
        Some(toml::Value::Array(list)) => {
            list.iter().map(|version| version.as_str().unwrap().parse().unwrap()).collect()
        }
        Some(value) => {
            let text = value.as_str().unwrap();
            let version = |prefix: &str| text.strip_prefix(prefix).map(|rest| rest.parse::<Minecraft>().unwrap());
            if let Some(least) = version(">=") {
                keep(&|minecraft| *minecraft >= least)
            } else if let Some(most) = version("<=") {
                keep(&|minecraft| *minecraft <= most)
            } else {
                panic!("`{text}` is neither a list of versions nor a bound with `>=` or `<=`")
            }
        }
    }
}

/// The names that a JAR declares, if the scenario specifies any.
fn declared(name: Option<String>, provides: &[String], depend: &[String], default_name: &str) -> Option<Declared> {
    let read = name.is_some() || !provides.is_empty() || !depend.is_empty();
    read.then(|| Declared {
        name: name.unwrap_or_else(|| default_name.to_owned()),
        main: None,
        provides: provides.to_vec(),
        depend: depend.to_vec(),
    })
}

impl ReleaseFields {
    /// The lines of its page.
    pub(crate) fn dependencies(&self, dependency: impl Fn(&str, DependencyKind) -> Dependency) -> Vec<Dependency> {
        let kinds = [
            (&self.needs, DependencyKind::Required),
            (&self.optional, DependencyKind::Optional),
            (&self.incompatible, DependencyKind::Incompatible),
            (&self.embedded, DependencyKind::Embedded),
        ];
        let lines = kinds.iter().flat_map(|(texts, kind)| texts.iter().map(|text| dependency(text, *kind)));
        let outside = self.outside.iter().map(|name| Dependency {
            project_id: None,
            name: Some(name.clone()),
            version_id: None,
            kind: DependencyKind::Required,
        });
        lines.chain(outside).collect()
    }

    /// The release `version` of the project `(name, display name)`, with these lines on its page.
    pub(crate) fn release(
        self,
        (name, shown): (&str, &str),
        version: &str,
        dependencies: Vec<Dependency>,
        is_file: bool,
        papers: &[PaperVersion],
    ) -> Release {
        let modern = |declared: &Option<Declared>| declared.as_ref().map(|_| DEFAULT_API_VERSION.into());
        let further = self.further.into_iter().map(|(jar_name, jar)| {
            let declared = declared(jar.called, &[], &jar.depend, &jar_name);
            FurtherJar {
                file: artifact(&format!("{jar_name}-{version}"), jar.hash),
                api_version: jar.api_version.or_else(|| modern(&declared)),
                refused: None,
                java: jar.java,
                folia: None,
                declared,
            }
        });
        // The JAR of a plugin from a URL is always read.
        let declared_name = self.called.or_else(|| is_file.then(|| shown.to_owned()));
        let mut declared = declared(declared_name, &self.provides, &self.depend, shown);
        if let Some(declared) = &mut declared {
            declared.main = self.main;
        }
        Release {
            id: format!("{name}-{version}"),
            further: further.collect(),
            version: self.version.unwrap_or_else(|| version.to_owned()),
            published: (!is_file).then(|| parse_day(self.published.as_deref())),
            channel: self.channel.unwrap_or(Channel::Release),
            minecraft: if is_file { Vec::new() } else { listed_versions(self.minecraft.as_ref(), papers) },
            api_version: self.api_version.or_else(|| modern(&declared).filter(|_| !self.legacy)),
            refused: self.refused,
            java: self.java,
            folia: self.folia,
            declared,
            loaders: self.loaders.unwrap_or_else(|| vec!["paper".to_owned()]),
            dependencies,
            file: self.file.then(|| {
                let mut file = artifact(&format!("{name}-{version}"), self.hash);
                if self.archive {
                    file.name = format!("{name}-{version}.zip");
                }
                file
            }),
        }
    }
}
