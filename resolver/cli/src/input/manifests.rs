//! Pure. Reads the objects in manifests: validates Nightshift's kinds, and notes other kinds.

use std::fmt;
use std::sync::LazyLock;

use crds::crd::SPEC_SCHEMAS;
use crds::{PaperMCServer, Plugin};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::files::InputFile;
use super::running;
use super::schema_check::{self, SchemaViolation};
use super::yaml::{self, YamlNode, YamlValue};
use from_api::{Violation, plugin_name, server_name};
use resolver::model::did_you_mean::nearest;
use resolver::model::untrusted_text::shortened;
use resolver::render::phrases::sentence;

/// The group and version of Nightshift's kinds.
pub(crate) const API_VERSION: &str = "nightshift.dev/v1alpha1";

/// The group of minecraft-operator's kinds, which `migrate` converts.
pub(crate) const FOREIGN_GROUP: &str = "mc.k8s.lex.la";

/// Maximum length of one part of a violation, in characters. A list of all fields of a server is shorter.
const MAX_PART_LENGTH: usize = 400;

/// A violation in an object, with its position.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct InputViolation {
    /// File and line. `None` for an object of a cluster.
    position: Option<(String, u64)>,
    /// Object, field, problem and fix. Each part is shortened, because it repeats the user's text, which may be a megabyte.
    text: String,
}

impl InputViolation {
    /// A violation at a file and line.
    pub(crate) fn new(position: Option<(String, u64)>, violation: &Violation) -> Self {
        let Violation { object, path, problem, fix } = violation;
        if fix.is_empty() {
            return Self::in_words_of_operator(position, object, path, problem);
        }
        let [object, path, problem, fix] = [object, path, problem, fix].map(|text| shortened(text, MAX_PART_LENGTH));
        let object = if object.is_empty() { String::new() } else { format!("{object}: ") };
        let path = if path.is_empty() { String::new() } else { format!("`{path}` ") };
        Self { position, text: format!("{object}{path}{problem}. {}", sentence(&fix)) }
    }

    /// A violation of a rule that the operator checks too. Its condition has the same words, which contain the fix.
    fn in_words_of_operator(position: Option<(String, u64)>, object: &str, path: &str, problem: &str) -> Self {
        let [object, path, problem] = [object, path, problem].map(|text| shortened(text, MAX_PART_LENGTH));
        Self { position, text: format!("{object}: {path}: {problem}") }
    }
}

impl fmt::Display for InputViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { position, text } = self;
        match position {
            Some((file, line)) => write!(f, "{file}:{line}: {text}"),
            None => f.write_str(text),
        }
    }
}

/// An object with its position.
#[derive(Debug, Clone)]
pub(crate) struct WithPosition<T> {
    /// The object.
    pub(crate) object: T,
    /// The file, and the object as it is written there. `None` for an object of a cluster.
    position: Option<(String, YamlNode)>,
}

impl<T> WithPosition<T> {
    /// An object of a cluster.
    pub(crate) fn in_cluster(object: T) -> Self {
        Self { object, position: None }
    }

    fn position_of(&self, path: &str) -> Option<(String, u64)> {
        self.position.as_ref().map(|(file, node)| (file.clone(), node.line_of(path)))
    }

    /// A violation of this object, with its position.
    pub(crate) fn violation(&self, violation: &Violation) -> InputViolation {
        InputViolation::new(self.position_of(&violation.path), violation)
    }

    /// The same for a rule that the operator checks too. Its condition has the same words.
    pub(crate) fn spec_violation(&self, object: &str, violation: &validate::Violation) -> InputViolation {
        let validate::Violation { path, problem } = violation;
        InputViolation::in_words_of_operator(self.position_of(path), object, path, problem)
    }
}

/// Content of manifests.
#[derive(Debug, Default)]
pub(crate) struct Manifests {
    /// The servers, in file order.
    pub(crate) servers: Vec<WithPosition<PaperMCServer>>,
    /// The plugins, in file order.
    pub(crate) plugins: Vec<WithPosition<Plugin>>,
    /// Violations.
    pub(crate) violations: Vec<InputViolation>,
    /// Notes about ignored objects.
    pub(crate) notes: Vec<String>,
}

impl Manifests {
    /// Adds an object that was converted from `origin` in `file`. Violations have the position of the same field there.
    pub(crate) fn add_converted(&mut self, text: &str, file: &str, origin: &YamlNode) {
        let refuse = |violations: &mut Vec<InputViolation>, name: &str, path: &str, problem: String, fix: &str| {
            let position = Some((file.to_owned(), origin.line_of(path)));
            violations.push(InputViolation::new(position, &violation(name, path, problem, fix)));
        };
        let documents = match yaml::read(text) {
            Ok(documents) => documents,
            Err(refused) => return refuse(&mut self.violations, "", "", refused.problem, refused.fix),
        };
        for node in &documents {
            let kind = node.get("kind").and_then(YamlNode::text).unwrap_or_default();
            let name = object_label(node, kind);
            let [server, plugin] = schemas();
            let schema = if kind == "Plugin" { plugin } else { server };
            let found = schema_check::check(node, schema, text);
            if !found.is_empty() {
                for SchemaViolation { line: _, path, problem, fix } in found {
                    refuse(&mut self.violations, &name, &path, problem, &fix);
                }
                continue;
            }
            let added = if kind == "Plugin" {
                deserialize(node, (file, origin)).map(|plugin| self.plugins.push(plugin))
            } else {
                deserialize(node, (file, origin)).map(|server| self.servers.push(server))
            };
            if let Err(error) = added {
                refuse(
                    &mut self.violations,
                    &name,
                    "spec",
                    format!("cannot be read: {error}"),
                    "see `kubectl explain`",
                );
            }
        }
    }
}

/// Reads all objects of these files.
pub(crate) fn read(files: &[InputFile]) -> Manifests {
    let mut reader = ManifestReader { manifests: Manifests::default() };
    for file in files {
        match yaml::read(&file.text) {
            Ok(documents) => documents.iter().for_each(|document| reader.read_object(file, document)),
            Err(refused) => {
                let violation = violation("", "", refused.problem, refused.fix);
                reader.add_violation(file, refused.line, &violation);
            }
        }
    }
    reader.manifests
}

/// The schemas of both kinds: server, then plugin. They are never dropped, because that would take a tenth of the time
/// of an answer.
pub(crate) fn schemas() -> &'static [Value; 2] {
    static SCHEMAS: LazyLock<[Value; 2]> = LazyLock::new(|| {
        let mut specs: Value =
            serde_json::from_str(SPEC_SCHEMAS).expect("it is valid JSON, as the tests of this file check");
        ["PaperMCServer", "Plugin"].map(|kind| schema_of(specs[kind].take()))
    });
    &SCHEMAS
}

/// The schema of a whole object: the spec of its kind, and the fields of every object.
pub(crate) fn schema_of(spec: Value) -> Value {
    let text = json!({"type": "string"});
    let texts = json!({"type": "object", "additionalProperties": text});
    let mut metadata =
        json!({"name": text, "generateName": text, "namespace": text, "labels": texts, "annotations": texts});
    // Fields that only the API server writes. They are ignored, because `kubectl get -o yaml` prints them.
    for served in [
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "ownerReferences",
        "finalizers",
        "managedFields",
        "selfLink",
    ] {
        metadata[served] = json!({});
    }
    let mut schema = json!({
        "type": "object", "required": ["metadata", "spec"],
        "properties": {
            "apiVersion": text, "kind": text, "status": {},
            "metadata": {"type": "object", "required": ["name"], "properties": metadata},
        },
    });
    // Assigned outside of `json!`, which would copy it.
    schema["properties"]["spec"] = spec;
    schema
}

/// A violation in an object with this name.
pub(crate) fn violation(object: &str, path: &str, problem: impl Into<String>, fix: &str) -> Violation {
    Violation { object: object.to_owned(), path: path.to_owned(), problem: problem.into(), fix: fix.to_owned() }
}

struct ManifestReader {
    manifests: Manifests,
}

impl ManifestReader {
    fn add_violation(&mut self, file: &InputFile, line: u64, violation: &Violation) {
        self.manifests.violations.push(InputViolation::new(Some((file.name.clone(), line)), violation));
    }

    fn read_object(&mut self, file: &InputFile, node: &YamlNode) {
        let text = |key: &str| node.get(key).and_then(YamlNode::text).unwrap_or_default();
        let (version, kind) = (text("apiVersion"), text("kind"));
        if !matches!(node.tree, YamlValue::Map(_)) || kind.is_empty() {
            let violation = violation(
                "",
                "kind",
                "is missing",
                "write a manifest with `apiVersion`, `kind`, `metadata` and `spec`",
            );
            return self.add_violation(file, node.line, &violation);
        }
        if kind == "List" || (version == API_VERSION && matches!(kind, "PaperMCServerList" | "PluginList")) {
            if let Some(YamlValue::List(items)) = node.get("items").map(|items| &items.tree) {
                for item in items {
                    self.read_object(file, item);
                }
            }
            return;
        }
        let group = version.split('/').next().unwrap_or_default();
        let kinds = ["PaperMCServer", "Plugin"];
        if version == API_VERSION && kinds.contains(&kind) {
            return self.read_nightshift_object(file, node, kind);
        }
        if group == "nightshift.dev" || kind == "PaperMCServer" || nearest(group, ["nightshift.dev"]).next().is_some() {
            let violation = if version == API_VERSION {
                let fix = nearest(kind, kinds).next().map_or_else(
                    || "the kinds are `PaperMCServer` and `Plugin`".to_owned(),
                    |meant| format!("did you mean `{meant}`?"),
                );
                violation("", "kind", format!("cannot be `{kind}`"), &fix)
            } else if version.is_empty() {
                violation("", "apiVersion", "is missing", &format!("write `apiVersion: {API_VERSION}`"))
            } else {
                let fix = if group == FOREIGN_GROUP {
                    "convert the file with `resolver migrate`".to_owned()
                } else {
                    format!("write `apiVersion: {API_VERSION}`")
                };
                violation("", "apiVersion", format!("cannot be `{version}`"), &fix)
            };
            let line = node.line_of(&violation.path);
            return self.add_violation(file, line, &violation);
        }
        let name =
            node.get("metadata").and_then(|metadata| metadata.get("name")).and_then(YamlNode::text).unwrap_or("?");
        self.manifests
            .notes
            .push(format!("{}:{}: {kind} `{name}` is ignored: it is not a kind of Nightshift", file.name, node.line));
    }

    fn read_nightshift_object(&mut self, file: &InputFile, node: &YamlNode, kind: &str) {
        let name = object_label(node, kind);
        let [server, plugin] = schemas();
        let schema = if kind == "Plugin" { plugin } else { server };
        let violations = check_schema(file, node, &name, schema);
        if !violations.is_empty() {
            return self.manifests.violations.extend(violations);
        }
        let origin = (file.name.as_str(), node);
        let added = if kind == "Plugin" {
            deserialize::<Plugin>(node, origin)
                .map(|placed| add_unique(&mut self.manifests.plugins, placed, plugin_name))
        } else {
            deserialize::<PaperMCServer>(node, origin).map(|mut placed| {
                placed.object.status = node.get("status").map(|status| running::parse_status(status.to_json()));
                add_unique(&mut self.manifests.servers, placed, server_name)
            })
        };
        let violation = match added {
            Ok(None) => return,
            Ok(Some(first)) => {
                let problem = format!("exists twice, first at {first}");
                violation(&name, "metadata.name", problem, "remove one, or give it another name")
            }
            // The schema is stricter than the types, so this is a gap between the two. It is reported and not hidden.
            Err(error) => violation(&name, "spec", format!("cannot be read: {error}"), "see `kubectl explain`"),
        };
        let line = node.line_of(&violation.path);
        self.add_violation(file, line, &violation);
    }
}

/// `PaperMCServer games/lobby`, as far as the object has a name.
pub(crate) fn object_label(node: &YamlNode, kind: &str) -> String {
    let metadata = |key: &str| node.get("metadata").and_then(|metadata| metadata.get(key)).and_then(YamlNode::text);
    match (metadata("namespace"), metadata("name")) {
        (Some(namespace), Some(name)) => format!("{kind} {namespace}/{name}"),
        (None, Some(name)) => format!("{kind} {name}"),
        (_, None) => kind.to_owned(),
    }
}

/// The violations of a schema in an object of a file.
pub(crate) fn check_schema(file: &InputFile, node: &YamlNode, name: &str, schema: &Value) -> Vec<InputViolation> {
    let violations = schema_check::check(node, schema, &file.text).into_iter();
    let with_position = |found: SchemaViolation| {
        let SchemaViolation { line, path, problem, fix } = found;
        InputViolation::new(Some((file.name.clone(), line)), &violation(name, &path, problem, &fix))
    };
    violations.map(with_position).collect()
}

/// Parses an object. Its later violations have the position of the same field in `origin`, which is a file and an
/// object in it.
fn deserialize<T: DeserializeOwned>(
    node: &YamlNode,
    (file, origin): (&str, &YamlNode),
) -> Result<WithPosition<T>, serde_json::Error> {
    let mut value = node.to_json();
    if let Some(fields) = value.as_object_mut() {
        // The operator that wrote the status may be newer than this command. The status is read separately.
        fields.remove("status");
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|key, _| matches!(key.as_str(), "name" | "namespace" | "labels" | "annotations"));
        }
    }
    Ok(WithPosition { object: serde_json::from_value(value)?, position: Some((file.to_owned(), origin.clone())) })
}

/// Adds the object. If one of this name exists, it is not added, and the position of the first one is returned.
fn add_unique<T>(all: &mut Vec<WithPosition<T>>, placed: WithPosition<T>, name: fn(&T) -> String) -> Option<String> {
    let first = all.iter().find(|other| name(&other.object) == name(&placed.object));
    let position = first.and_then(|first| first.position.as_ref());
    let position = position.map(|(file, node)| format!("{file}:{}", node.line_of("metadata.name")));
    if position.is_none() {
        all.push(placed);
    }
    position
}
