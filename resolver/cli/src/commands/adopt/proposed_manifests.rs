//! Pure. Renders the proposed manifests as YAML that users can read, change and keep.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::server_dir::one_line;
use crate::output::yaml_scalar::quoted;
use resolver::model::catalog::ProjectKey;
use resolver::model::version::Minecraft;
use resolver::render::phrases::date;

/// The label that selects the Plugins of a server. It is a well-known label of Kubernetes.
const LABEL: &str = "app.kubernetes.io/instance";

/// Content of the manifests.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    pub(super) minecraft: Minecraft,
    pub(super) build: Option<u32>,
    pub(super) eula: bool,
    /// Set where it is not the default port.
    pub(super) rcon_port: Option<u16>,
    /// By the names of their objects.
    pub(super) managed: Vec<Managed>,
    /// By the names of their objects. They are written as comments.
    pub(super) guesses: Vec<Managed>,
    /// Pairs of file and description, sorted by file.
    pub(super) unmanaged: Vec<(String, String)>,
    /// What is missing because data could not be read, one sentence each, without a full stop.
    pub(super) unread: Vec<String>,
}

/// A plugin that a Plugin object can request.
#[derive(Debug, Clone)]
pub(super) struct Managed {
    /// The name of its Plugin object.
    pub(super) object: String,
    pub(super) key: ProjectKey,
    pub(super) version: String,
    /// At least one.
    pub(super) files: Vec<ManagedFile>,
    pub(super) listed: bool,
}

/// A file that a Plugin installs.
#[derive(Debug, Clone)]
pub(super) struct ManagedFile {
    /// Its name in `plugins`.
    pub(super) file: String,
    /// It is the file that is installed when `jars` is empty.
    pub(super) main: bool,
    /// The pattern that selects it.
    pub(super) pattern: String,
}

impl Managed {
    /// `a.jar and b.jar`
    fn file_names(&self) -> String {
        self.files.iter().map(|file| file.file.as_str()).collect::<Vec<_>>().join(" and ")
    }

    /// The value of `spec.source.jars`. Empty for the main file alone.
    fn jars(&self) -> Vec<String> {
        match self.files.as_slice() {
            [ManagedFile { main: true, .. }] => Vec::new(),
            files => files.iter().map(|file| quoted(&file.pattern)).collect(),
        }
    }
}

impl Draft {
    /// The manifests of `directory`, dated with `now`: the server, then its plugins by name, then the guesses as
    /// comments.
    pub(super) fn render(&self, directory: &str, now: Timestamp) -> String {
        let mut text = format!(
            "# The versions in {}, read by `resolver adopt` on {}. Everything is pinned to exactly these.\n\
             # To enable updates after a check:\n\
             #   when     replace `enabled: false` with a cron: `maintenanceWindow: {{cron: \"0 4 * * 0\"}}` is Sundays at 04:00 UTC\n\
             #   plugins  `updateStrategy: auto`, without `version` and `compatibilityOverride`\n\
             #   Paper    `updateStrategy: auto`, without `version` and `build`\n",
            one_line(directory),
            date(now)
        );
        for sentence in &self.unread {
            write_line(&mut text, format_args!("# {sentence}."));
        }
        self.write_server(&mut text);
        for plugin in &self.managed {
            let how = if plugin.files.len() == 1 { "by its hash" } else { "by their hashes" };
            write_line(&mut text, format_args!("---\n# {}, {how}", plugin.file_names()));
            self.write_plugin(&mut text, plugin);
        }
        for plugin in &self.guesses {
            self.write_guess(&mut text, plugin);
        }
        text
    }

    fn write_head(&self, text: &mut String, kind: &str, name: &str) {
        write_line(
            text,
            format_args!("apiVersion: nightshift.dev/v1alpha1\nkind: {kind}\nmetadata:\n  name: {}", quoted(name)),
        );
        if let Some(namespace) = &self.namespace {
            write_line(text, format_args!("  namespace: {}", quoted(namespace)));
        }
    }

    fn write_server(&self, text: &mut String) {
        let Self { name, minecraft, build, eula, rcon_port, unmanaged, .. } = self;
        self.write_head(text, "PaperMCServer", name);
        write_line(text, format_args!("  labels: {{{LABEL}: {}}}\nspec:", quoted(name)));
        if *eula {
            write_line(text, format_args!("  eula: Accepted # eula.txt says so"));
        }
        match build {
            Some(build) => write_line(
                text,
                format_args!(
                    "  updateStrategy: build-pin\n  version: {}\n  build: {build}",
                    quoted(minecraft.as_str())
                ),
            ),
            None => write_line(text, format_args!("  updateStrategy: pin\n  version: {}", quoted(minecraft.as_str()))),
        }
        write_line(
            text,
            format_args!("  updateSchedule:\n    maintenanceWindow: {{enabled: false}} # no automatic updates"),
        );
        if let Some(port) = rcon_port {
            write_line(text, format_args!("  rcon: {{port: {port}}}"));
        }
        write_line(
            text,
            format_args!(
                "  # storage: {{existingClaim: NAME}} # the claim with this directory. Without it, a new world is created"
            ),
        );
        if !unmanaged.is_empty() {
            write_line(text, format_args!("  # Unmanaged, and kept in `plugins`:"));
            for (file, named) in unmanaged {
                write_line(text, format_args!("  #   {file} ({named})"));
            }
        }
    }

    /// Writes a Plugin as a comment, because its file may be another plugin of the same name and version.
    fn write_guess(&self, text: &mut String, plugin: &Managed) {
        let mut manifest = String::from("---\n");
        self.write_plugin(&mut manifest, plugin);
        let (file, project) = (plugin.file_names(), one_line(&plugin.key.to_string()));
        write_line(
            text,
            format_args!(
                "# {file}: a guess by its name and version. {project} has other bytes, so it may be another plugin.\n\
                 # To replace the file with that release, remove the first two characters of these lines:"
            ),
        );
        for line in manifest.lines() {
            write_line(text, format_args!("# {line}"));
        }
    }

    fn write_plugin(&self, text: &mut String, plugin: &Managed) {
        let Managed { object, key, version, files: _, listed } = plugin;
        self.write_head(text, "Plugin", object);
        let jars = plugin.jars();
        let jars = if jars.is_empty() { String::new() } else { format!(", jars: [{}]", jars.join(", ")) };
        let project = quoted(&key.project);
        write_line(text, format_args!("spec:\n  source: {{type: {}, project: {project}{jars}}}", key.source));
        write_line(text, format_args!("  updateStrategy: pin\n  version: {}", quoted(version)));
        if !listed {
            write_line(
                text,
                format_args!(
                    "  compatibilityOverride: # its page does not list {minecraft}, but it runs on it here\n    \
                     {{enabled: true, mode: Add, minecraftVersions: [{}], releases: [{}]}}",
                    quoted(self.minecraft.as_str()),
                    quoted(version),
                    minecraft = self.minecraft,
                ),
            );
        }
        write_line(text, format_args!("  instanceSelector: {{matchLabels: {{{LABEL}: {}}}}}", quoted(&self.name)));
    }
}

fn write_line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("writing to a String cannot fail");
}
