//! Edge (reads). `resolver migrate`: converts manifests of lexfrei/minecraft-operator to ours.
//!
//! Each result is checked like any other manifest before it is printed, so that the operator accepts it.

use std::sync::LazyLock;

use serde_json::Value;

use crate::args::MigrateArgs;
use crate::input::files::{self, InputFile};
use crate::input::manifests::{self, FOREIGN_GROUP, InputViolation, Manifests, violation};
use crate::input::requests;
use crate::input::yaml::{self, YamlNode, YamlValue};
use crate::{ExitStatus, Output};
use upstream::format_chain;

mod foreign_schema;
mod foreign_values;
mod plugin;
mod pod_template;
mod remarks;
mod server;
mod yaml_block;

use foreign_schema::API_VERSION;
use foreign_values::{find, text_at};
use plugin::convert_plugin;
use remarks::{Remark, RemarkKind, Remarks};
use server::convert_server;
use yaml_block::{YamlBlock, YamlDraft};

/// Where kubectl stores what it applied last. It describes the old object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Runs `resolver migrate`.
pub(crate) fn migrate(migrate: &MigrateArgs) -> Result<Output, Output> {
    let files = files::read(&migrate.files).map_err(|error| Output::failure(vec![format_chain(&error)]))?;
    let ForeignReader { converted, mut violations, notes: mut stderr } = read(&files);
    if violations.is_empty() {
        violations = check(&converted);
    }
    if !violations.is_empty() {
        return Err(Output::failure(violations.iter().map(ToString::to_string).collect()));
    }
    if converted.is_empty() {
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        stderr.push(format!("{}: there is no PaperMCServer or Plugin of {FOREIGN_GROUP} here", names.join(", ")));
        return Err(Output::failure(stderr));
    }
    let open: Vec<String> = converted.iter().flat_map(Converted::required_actions).collect();
    let status = if open.is_empty() { ExitStatus::Solved } else { ExitStatus::NoSolution };
    let summary = summary(converted.len(), open.len());
    stderr.extend(open);
    stderr.push(summary);
    let documents: Vec<String> = converted.iter().map(Converted::document).collect();
    Ok(Output { stdout: documents.join("---\n"), stderr, status })
}

/// The last line on stderr.
fn summary(objects: usize, open: usize) -> String {
    let objects = if objects == 1 { "1 object".to_owned() } else { format!("{objects} objects") };
    let open = match open {
        0 => "No action is needed".to_owned(),
        1 => "1 field needs an action".to_owned(),
        open => format!("{open} fields need an action"),
    };
    format!("{objects} converted. {open}")
}

/// An object with its result.
#[derive(Debug)]
struct Converted {
    file: String,
    origin: YamlNode,
    /// `PaperMCServer games/lobby`
    name: String,
    /// Our manifest.
    manifest: Vec<String>,
    /// The manifest lacks a value that only the user knows.
    is_incomplete: bool,
    remarks: Vec<Remark>,
}

impl Converted {
    /// The manifest with its origin. An incomplete one is a comment, so that the others can be applied.
    fn document(&self) -> String {
        let Self { file, origin, manifest, is_incomplete, .. } = self;
        let file: String = file.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        let mut text = format!("# From {file}:{}, converted by `resolver migrate`.", origin.line);
        if *is_incomplete {
            text.push_str(" Complete it, and remove the first two characters of each line:");
        }
        text.push('\n');
        for line in manifest {
            text.push_str(if *is_incomplete { "# " } else { "" });
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    /// The remarks that need an action, with their positions in the input.
    fn required_actions(&self) -> Vec<String> {
        let Self { file, origin, name, remarks, .. } = self;
        let actions = remarks.iter().filter(|remark| remark.kind == RemarkKind::ActionRequired);
        actions.map(|Remark { path, text, .. }| format!("{file}:{}: {name}: {text}", origin.line_of(path))).collect()
    }
}

/// Checks the results together, as `explain` and the operator would.
fn check(converted: &[Converted]) -> Vec<InputViolation> {
    let mut manifests = Manifests::default();
    for object in converted.iter().filter(|object| !object.is_incomplete) {
        manifests.add_converted(&object.manifest.join("\n"), &object.file, &object.origin);
    }
    requests::check(manifests, &mut Vec::new()).err().unwrap_or_default()
}

/// Reads and converts all objects of these files.
fn read(files: &[InputFile]) -> ForeignReader {
    let mut reader = ForeignReader::default();
    for file in files {
        match yaml::read(&file.text) {
            Ok(documents) => documents.iter().for_each(|document| reader.read_object(file, document)),
            Err(refused) => reader.refuse(file, refused.line, "", refused.problem, refused.fix),
        }
    }
    reader
}

#[derive(Debug, Default)]
struct ForeignReader {
    converted: Vec<Converted>,
    violations: Vec<InputViolation>,
    /// Objects of other kinds.
    notes: Vec<String>,
}

impl ForeignReader {
    fn refuse(&mut self, file: &InputFile, line: u64, path: &str, problem: impl Into<String>, fix: &str) {
        let position = Some((file.name.clone(), line));
        self.violations.push(InputViolation::new(position, &violation("", path, problem, fix)));
    }

    fn read_object(&mut self, file: &InputFile, node: &YamlNode) {
        let (version, kind) = (text_at(node, "apiVersion").unwrap_or_default(), text_at(node, "kind"));
        let Some(kind) = kind.filter(|_| matches!(node.tree, YamlValue::Map(_))) else {
            let fix = "write a manifest with `apiVersion`, `kind`, `metadata` and `spec`";
            return self.refuse(file, node.line, "kind", "is missing", fix);
        };
        let is_foreign = version.split('/').next() == Some(FOREIGN_GROUP);
        match kind {
            "List" => self.read_items(file, node),
            "PaperMCServerList" | "PluginList" if is_foreign => self.read_items(file, node),
            "PaperMCServer" | "Plugin" if version == API_VERSION => self.convert(file, node, kind),
            "PaperMCServer" | "Plugin" if is_foreign => {
                let problem = format!("cannot be `{version}`");
                let fix = format!("`migrate` reads `{API_VERSION}`, which `kubectl get -o yaml` prints");
                self.refuse(file, node.line_of("apiVersion"), "apiVersion", problem, &fix);
            }
            _ if is_foreign => {
                let problem = format!("cannot be `{kind}`");
                self.refuse(file, node.line_of("kind"), "kind", problem, "the kinds are `PaperMCServer` and `Plugin`");
            }
            _ => {
                let name = text_at(node, "metadata.name").unwrap_or("?");
                self.notes.push(format!("{}:{}: {kind} `{name}` is not converted: keep it", file.name, node.line));
            }
        }
    }

    fn read_items(&mut self, file: &InputFile, list: &YamlNode) {
        for item in find(list, "items").map_or(&[][..], foreign_values::items) {
            self.read_object(file, item);
        }
    }

    fn convert(&mut self, file: &InputFile, node: &YamlNode, kind: &str) {
        static SCHEMAS: LazyLock<[Value; 2]> = LazyLock::new(|| [foreign_schema::server(), foreign_schema::plugin()]);
        let [server, plugin] = &*SCHEMAS;
        let name = manifests::object_label(node, kind);
        let violations = manifests::check_schema(file, node, &name, if kind == "Plugin" { plugin } else { server });
        if !violations.is_empty() {
            return self.violations.extend(violations);
        }
        let mut remarks = Remarks::default();
        let (spec, is_incomplete) = if kind == "Plugin" {
            convert_plugin(node, &mut remarks)
        } else {
            (convert_server(node, &mut remarks), false)
        };
        let mut manifest = YamlBlock::default();
        manifest.field("apiVersion", YamlDraft::Scalar(manifests::API_VERSION.to_owned()));
        manifest.text("kind", kind);
        manifest.block("metadata", convert_metadata(node));
        manifest.block("spec", spec);
        self.converted.push(Converted {
            file: file.name.clone(),
            origin: node.clone(),
            name,
            manifest: manifest.lines(),
            is_incomplete,
            remarks: remarks.0,
        });
    }
}

/// What the user wrote of the metadata. Requests to minecraft-operator have been handled by it.
fn convert_metadata(node: &YamlNode) -> YamlBlock {
    let mut metadata = YamlBlock::default();
    metadata.copy("name", find(node, "metadata.name"));
    metadata.copy("namespace", find(node, "metadata.namespace"));
    metadata.copy("labels", find(node, "metadata.labels"));
    let mut annotations = YamlBlock::default();
    for entry in find(node, "metadata.annotations").map_or(&[][..], YamlNode::entries) {
        let is_request = entry.key.split('/').next() == Some(FOREIGN_GROUP);
        if !is_request && entry.key != LAST_APPLIED {
            annotations.copy(&entry.key, Some(&entry.value));
        }
    }
    metadata.block("annotations", annotations);
    metadata
}
