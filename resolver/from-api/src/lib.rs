//! Pure. Converts API objects into a [`Request`]: the `resolver` command and the operator build the same request from
//! the same objects.

use std::fmt;

use crds::plugin::{self, SourceKind};
use crds::{PaperMCServer, Plugin, duration, paper_mc_server};
use jiff::SignedDuration;

use resolver::model::catalog::{BuildChannel, Channel};
use resolver::model::compatibility_facts::CompatibilityFacts;
use resolver::model::request::{
    CompatibilityOverride, Dependencies, Hold, HotfixSiblings, ImagePolicy, OverrideMode, PaperRequest, PluginRequest,
    Request, Running, Unlisted, VersionRequest,
};
use resolver::model::software::Software;
use resolver::model::unmanaged_jar::UnmanagedPlugins;
use resolver::model::version::Minecraft;
use resolver::render::phrases::sentence;

mod facts_file;
mod requires;
mod selector;
mod server_state;
mod source;
mod unmanaged;

pub use facts_file::{FactsFileError, parse_facts};
pub use requires::range_error;
pub use selector::{matches, matching};
pub use server_state::{ServerState, takes_part_in_group};
pub use source::{CHECKSUM_FORMAT, pasted_slug, project_key, url_error};
pub use unmanaged::unmanaged;

/// An error in an object that prevents a request, and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The object: `PaperMCServer games/lobby`.
    pub object: String,
    /// The field: `spec.version`.
    pub path: String,
    /// The error, to be read after the field's name.
    pub problem: String,
    /// The value to write instead.
    pub fix: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { object, path, problem, fix } = self;
        write!(f, "{object}: `{path}` {problem}. {}", sentence(fix))
    }
}

/// Builds the request of a server from its own spec and from the [`matching`] plugins among `plugins`, by name.
///
/// Its unmanaged JARs are those in its status: see [`unmanaged`] for newer ones. `floor` is the newest Minecraft
/// version that opened its world, and `running` holds the running versions according to the last verified lock. The
/// objects contain neither of them. They do not contain the facts of the cluster either: the caller sets
/// [`Request::facts`].
///
/// # Errors
/// All errors in the server and its plugins. The API server refuses most of them before.
pub fn request<'a>(
    server: &PaperMCServer,
    plugins: impl IntoIterator<Item = &'a Plugin>,
    floor: Option<Minecraft>,
    running: Option<Running>,
) -> Result<Request, Vec<Violation>> {
    let mut collector =
        ManifestViolations { object: object_name("PaperMCServer", &server_name(server)), violations: Vec::new() };
    let spec = &server.spec;
    let paper = collector.paper(spec);
    let delay = collector.delay(Some(&spec.update_delay));
    let image_policy = collector.image_policy(spec);
    let software = match spec.software {
        paper_mc_server::Software::Paper => Software::Paper,
        paper_mc_server::Software::Purpur => Software::Purpur,
        paper_mc_server::Software::Folia => Software::Folia,
        paper_mc_server::Software::Velocity => Software::Velocity,
    };
    // Data from a time as a Minecraft server does not apply to a proxy.
    let status = server.status.as_ref().filter(|_| software.is_minecraft());
    let observed = status.map_or(&[][..], |status| &status.unmanaged);
    let mut plugin_requests = Vec::new();
    let plugins = matching(server, plugins);
    collector.check_holds(spec, &plugins);
    for plugin in plugins {
        collector.object = object_name("Plugin", &plugin_name(plugin));
        let mut plugin_request = collector.plugin(plugin, delay.unwrap_or_default());
        if let Some(plugin_request) =
            plugin_request.as_mut().filter(|plugin_request| spec.hold.contains(&plugin_request.object))
        {
            // The hold on the server is more specific, but the hold on the Plugin would remain after its removal.
            plugin_request.hold = plugin_request.hold.or(Some(Hold::Server));
        }
        plugin_requests.extend(plugin_request);
    }
    match paper {
        Some(paper) if collector.violations.is_empty() => Ok(Request {
            server: server_name(server),
            software,
            paper,
            delay: delay.unwrap_or_default(),
            channel: match spec.channel {
                paper_mc_server::PaperChannel::Stable => BuildChannel::Stable,
                paper_mc_server::PaperChannel::Beta => BuildChannel::Beta,
                paper_mc_server::PaperChannel::Alpha => BuildChannel::Alpha,
            },
            floor: floor.filter(|_| software.is_minecraft()),
            running,
            plugins: plugin_requests,
            dependencies: match spec.dependencies {
                paper_mc_server::Dependencies::Install => Dependencies::Install,
                paper_mc_server::Dependencies::Propose => Dependencies::Propose,
                paper_mc_server::Dependencies::Forbid => Dependencies::Forbid,
            },
            image: spec.image.clone(),
            image_is_given: false,
            image_policy,
            unmanaged: unmanaged(spec, observed),
            unmanaged_plugins: match spec.unmanaged_plugins {
                paper_mc_server::UnmanagedPlugins::Hold => UnmanagedPlugins::Hold,
                paper_mc_server::UnmanagedPlugins::Warn => UnmanagedPlugins::Warn,
                paper_mc_server::UnmanagedPlugins::Ignore => UnmanagedPlugins::Ignore,
            },
            hotfix_siblings: match spec.hotfix_siblings {
                paper_mc_server::HotfixSiblings::Trust => HotfixSiblings::Trust,
                paper_mc_server::HotfixSiblings::Ask => HotfixSiblings::Ask,
            },
            unlisted: match spec.unlisted {
                paper_mc_server::Unlisted::Assume => Unlisted::Assume,
                paper_mc_server::Unlisted::Refuse => Unlisted::Refuse,
            },
            facts: CompatibilityFacts::default(),
            checked_at: None,
        }),
        _ => Err(collector.violations),
    }
}

/// The errors in a Plugin, independent of the server.
pub fn check_plugin(plugin: &Plugin) -> Vec<Violation> {
    let mut collector =
        ManifestViolations { object: object_name("Plugin", &plugin_name(plugin)), violations: Vec::new() };
    // Only the errors are used here.
    let _ = collector.plugin(plugin, SignedDuration::ZERO);
    collector.violations
}

/// The server as requests and results name it: `games/lobby`, or `lobby` without a namespace.
pub fn server_name(server: &PaperMCServer) -> String {
    full_name(server.metadata.namespace.as_deref(), server.metadata.name.as_deref())
}

/// The Plugin object, in the same form.
pub fn plugin_name(plugin: &Plugin) -> String {
    full_name(plugin.metadata.namespace.as_deref(), plugin.metadata.name.as_deref())
}

fn full_name(namespace: Option<&str>, name: Option<&str>) -> String {
    let name = name.unwrap_or_default();
    namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"))
}

fn object_name(kind: &str, name: &str) -> String {
    if name.is_empty() { kind.to_owned() } else { format!("{kind} {name}") }
}

/// Collects the errors in the current object. An error is reported for every value that is left out.
struct ManifestViolations {
    object: String,
    violations: Vec<Violation>,
}

impl ManifestViolations {
    fn report(&mut self, path: &str, problem: impl Into<String>, fix: impl Into<String>) {
        let object = self.object.clone();
        self.violations.push(Violation { object, path: path.to_owned(), problem: problem.into(), fix: fix.into() });
    }

    fn paper(&mut self, spec: &crds::PaperMCServerSpec) -> Option<PaperRequest> {
        use paper_mc_server::UpdateStrategy as Strategy;
        match spec.update_strategy {
            Strategy::Latest => Some(PaperRequest::Latest),
            Strategy::Auto => Some(PaperRequest::Auto),
            Strategy::Pin => Some(PaperRequest::Pin { version: self.pinned_minecraft(spec, "pin")? }),
            Strategy::BuildPin => {
                let version = self.pinned_minecraft(spec, "build-pin");
                if spec.build.is_none() {
                    let fix = "write the build to stay on, such as `build: 130`, or use updateStrategy `pin`";
                    self.report("spec.build", "is missing, and updateStrategy `build-pin` needs it", fix);
                }
                Some(PaperRequest::BuildPin { version: version?, build: spec.build? })
            }
        }
    }

    fn pinned_minecraft(&mut self, spec: &crds::PaperMCServerSpec, strategy: &str) -> Option<Minecraft> {
        let Some(written) = spec.version.as_deref().filter(|version| !version.is_empty()) else {
            let problem = format!("is missing, and updateStrategy `{strategy}` needs it");
            self.report("spec.version", problem, "write the Minecraft version to stay on, such as `version: 1.21.10`");
            return None;
        };
        let Ok(version) = written.parse() else {
            let problem = format!("is `{written}`, which is not a Minecraft version");
            self.report("spec.version", problem, "write one such as `1.21.10` or `26.1`");
            return None;
        };
        Some(version)
    }

    /// A hold with a misspelt name would have no effect, and users would notice too late.
    fn check_holds(&mut self, spec: &crds::PaperMCServerSpec, plugins: &[&Plugin]) {
        let names: Vec<&str> = plugins.iter().filter_map(|plugin| plugin.metadata.name.as_deref()).collect();
        // A hold on the whole version set is not part of the request: the result is what will run after it is removed.
        let is_strange = |name: &str| name != paper_mc_server::WHOLE_SET && !names.contains(&name);
        for (at, held) in spec.hold.iter().enumerate().filter(|(_, held)| is_strange(held)) {
            let fix = match names.as_slice() {
                [] => "remove it".to_owned(),
                names => format!("write {}, or remove it", names.join(" or ")),
            };
            self.report(
                &format!("spec.hold[{at}]"),
                format!("names `{held}`, which is not a Plugin for this server"),
                fix,
            );
        }
    }

    fn image_policy(&mut self, spec: &crds::PaperMCServerSpec) -> ImagePolicy {
        let policy = match spec.image_policy {
            paper_mc_server::ImagePolicy::Follow => ImagePolicy::Follow,
            paper_mc_server::ImagePolicy::SameJava => ImagePolicy::SameJava,
            paper_mc_server::ImagePolicy::Keep => ImagePolicy::Keep,
        };
        if policy != ImagePolicy::Follow && spec.image.is_some() {
            let problem = "says how a chosen image may change, and `spec.image` pins one";
            self.report("spec.imagePolicy", problem, "remove one of the two");
        }
        policy
    }

    /// `None` if the value is missing or invalid.
    fn delay(&mut self, written: Option<&str>) -> Option<SignedDuration> {
        let written = written?;
        let read = duration::parse(written);
        if read.is_err() {
            let fix = "write numbers with d, h, m or s, such as `72h` or `1h30m`";
            self.report("spec.updateDelay", format!("is `{written}`, which is not a duration"), fix);
        }
        read.ok()
    }

    fn plugin(&mut self, plugin: &Plugin, servers_delay: SignedDuration) -> Option<PluginRequest> {
        let spec = &plugin.spec;
        let delay = self.delay(spec.update_delay.as_deref());
        let version = self.release(spec);
        let key = self.source(&spec.source);
        let requires = self.requires(&spec.requires);
        Some(PluginRequest {
            object: plugin.metadata.name.clone().unwrap_or_default(),
            key: key?,
            jars: spec.source.jars.clone(),
            version: version?,
            delay: if spec.urgent { SignedDuration::ZERO } else { delay.unwrap_or(servers_delay) },
            channel: match spec.channel {
                plugin::PluginChannel::Release => Channel::Release,
                plugin::PluginChannel::Beta => Channel::Beta,
                plugin::PluginChannel::Alpha => Channel::Alpha,
            },
            allow_downgrade: spec.allow_downgrade,
            hold: spec.hold.then_some(Hold::Plugin),
            compatibility: spec.compatibility_override.as_ref().and_then(compatibility),
            requires,
            delay_together: spec.delay_together.clone(),
            selector: Some(serde_json::to_string(&spec.instance_selector).expect("a selector has string keys only")),
        })
    }

    fn release(&mut self, spec: &crds::PluginSpec) -> Option<VersionRequest> {
        use paper_mc_server::UpdateStrategy as Strategy;
        if spec.source.kind == SourceKind::Url {
            return self.only_release(spec);
        }
        match spec.update_strategy {
            Strategy::Latest => Some(VersionRequest::Latest),
            Strategy::Auto => Some(VersionRequest::Auto),
            // A plugin's release has no builds: both pins mean exactly this release.
            Strategy::Pin | Strategy::BuildPin => {
                let Some(version) = spec.version.clone().filter(|version| !version.is_empty()) else {
                    let fix = "write the release to stay on as its authors write it, such as `version: \"5.7.1\"`";
                    self.report("spec.version", "is missing, and a pin needs it", fix);
                    return None;
                };
                Some(VersionRequest::Pin { version })
            }
        }
    }
}

/// `None` if it is disabled.
fn compatibility(written: &plugin::CompatibilityOverride) -> Option<CompatibilityOverride> {
    let plugin::CompatibilityOverride { enabled, mode, minecraft_versions, releases } = written;
    enabled.then(|| CompatibilityOverride {
        mode: match mode {
            plugin::OverrideMode::Add => OverrideMode::Add,
            plugin::OverrideMode::Replace => OverrideMode::Replace,
            plugin::OverrideMode::Remove => OverrideMode::Remove,
        },
        minecraft: minecraft_versions.clone(),
        releases: releases.clone(),
    })
}

#[cfg(test)]
mod tests;
