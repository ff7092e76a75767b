//! Pure. Converts the pod template of a server of minecraft-operator.

use super::foreign_values::{find, items, text_at};
use super::remarks::Remarks;
use super::yaml_block::{YamlBlock, YamlDraft};
use crate::input::yaml::{YamlNode, YamlValue};
use validate::image_contract::{RESERVED_VARIABLES, SERVER_CONTAINER};

const SPEC: &str = "spec.podTemplate.spec";

/// Variables that minecraft-operator sets itself, from fields of the server.
const SET_BY_OPERATOR: [&str; 5] = ["EULA", "PAPER_VERSION", "PAPER_BUILD", "RCON_PORT", "RCON_PASSWORD"];

/// The variable with the options of Java, in the image of minecraft-operator.
const JAVA_OPTIONS: &str = "JAVA_OPTS";

/// The same in the image that Nightshift chooses.
const JVM_OPTIONS: &str = "JVM_OPTS";

/// Whether the environment of the server's container accepts the EULA.
pub(super) fn accepts_eula(server: &YamlNode) -> bool {
    let container = find(server, &format!("{SPEC}.containers")).and_then(|containers| items(containers).first());
    let variables = container.and_then(|container| find(container, "env")).map_or(&[][..], items);
    variables.iter().any(|variable| {
        text_at(variable, "name") == Some("EULA")
            && text_at(variable, "value").is_some_and(|value| value.eq_ignore_ascii_case("true"))
    })
}

/// Adds `podTemplate` to the spec.
pub(super) fn convert_pod_template(server: &YamlNode, spec: &mut YamlBlock, remarks: &mut Remarks) {
    let Some(template) = find(server, "spec.podTemplate") else { return };
    let mut converted = YamlBlock::default();
    let mut metadata = YamlBlock::default();
    metadata.copy("labels", find(template, "metadata.labels"));
    metadata.copy("annotations", find(template, "metadata.annotations"));
    converted.block("metadata", metadata);
    let mut pod = YamlBlock::default();
    for entry in find(template, "spec").map_or(&[][..], YamlNode::entries) {
        write_pod_field(&entry.key, &entry.value, &mut pod, remarks);
    }
    converted.block("spec", pod);
    spec.block("podTemplate", converted);
}

fn write_pod_field(key: &str, value: &YamlNode, pod: &mut YamlBlock, remarks: &mut Remarks) {
    let path = format!("{SPEC}.{key}");
    match (key, &value.tree) {
        (_, YamlValue::Null) | ("hostNetwork", YamlValue::Bool(false)) => {}
        ("hostNetwork", _) => {
            remarks.no_counterpart(pod, &path, value, "RCON would listen on the loopback address of the node");
        }
        ("terminationGracePeriodSeconds", _) => remarks.left_out(pod, &path, "`gracefulShutdown.timeout` decides"),
        ("restartPolicy", _) => remarks.left_out(pod, &path, "it is always `Always`"),
        ("containers", YamlValue::List(containers)) => {
            let mut list = Vec::new();
            for (at, container) in containers.iter().enumerate() {
                list.push(if at == 0 {
                    YamlDraft::Block(convert_container(container, pod, remarks))
                } else {
                    YamlDraft::from(container)
                });
            }
            pod.field(key, YamlDraft::List(list));
        }
        ("volumes", YamlValue::List(volumes)) => {
            let is_data = |volume: &&YamlNode| text_at(volume, "name") == Some("data");
            if volumes.iter().any(|volume| is_data(&volume)) {
                remarks.left_out(pod, &format!("{path}[data]"), "the volume of the server is `spec.storage`");
            }
            write_list(key, volumes.iter().filter(|volume| !is_data(volume)), pod);
        }
        _ => pod.copy(key, Some(value)),
    }
}

/// Adds the items, if there are any.
fn write_list<'n>(key: &str, items: impl Iterator<Item = &'n YamlNode>, block: &mut YamlBlock) {
    let items: Vec<YamlDraft> = items.map(YamlDraft::from).collect();
    if !items.is_empty() {
        block.field(key, YamlDraft::List(items));
    }
}

/// The first container, which runs the server. Remarks about its name are above the list.
fn convert_container(container: &YamlNode, pod: &mut YamlBlock, remarks: &mut Remarks) -> YamlBlock {
    let name = text_at(container, "name").unwrap_or_default();
    let path = format!("{SPEC}.containers[{name}]");
    if name != SERVER_CONTAINER {
        remarks.note(pod, &path, &format!("is called `{SERVER_CONTAINER}` here"));
    }
    let mut converted = YamlBlock::default();
    converted.text("name", SERVER_CONTAINER);
    for entry in container.entries().iter().filter(|entry| entry.value.tree != YamlValue::Null) {
        let (key, value) = (entry.key.as_str(), &entry.value);
        let path = format!("{path}.{key}");
        match (key, &value.tree) {
            ("name", _) => {}
            ("image", _) => {
                let why = "Nightshift chooses an image of itzg/minecraft-server with the Java that Paper needs";
                remarks.left_out(&mut converted, &path, why);
            }
            ("command" | "args" | "envFrom" | "lifecycle" | "startupProbe" | "readinessProbe" | "livenessProbe", _) => {
                remarks.no_counterpart(
                    &mut converted,
                    &path,
                    value,
                    "Nightshift sets it itself, or relies on the image",
                );
            }
            ("env", YamlValue::List(variables)) => write_environment(variables, &path, &mut converted, remarks),
            ("volumeMounts", YamlValue::List(mounts)) => {
                let is_data = |mount: &&YamlNode| {
                    text_at(mount, "mountPath").is_some_and(|at| at.trim_end_matches('/') == "/data")
                };
                if mounts.iter().any(|mount| is_data(&mount)) {
                    remarks.left_out(
                        &mut converted,
                        &format!("{path}[/data]"),
                        "Nightshift mounts `spec.storage` there",
                    );
                }
                write_list(key, mounts.iter().filter(|mount| !is_data(mount)), &mut converted);
            }
            _ => converted.copy(key, Some(value)),
        }
    }
    converted
}

fn write_environment(variables: &[YamlNode], path: &str, container: &mut YamlBlock, remarks: &mut Remarks) {
    let name_of = |variable: &YamlNode| text_at(variable, "name").unwrap_or_default().to_owned();
    let has_jvm_options = variables.iter().any(|variable| name_of(variable) == JVM_OPTIONS);
    let mut kept = Vec::new();
    // Both operators set these, from fields of the server.
    for variable in variables.iter().filter(|variable| !SET_BY_OPERATOR.contains(&name_of(variable).as_str())) {
        let name = name_of(variable);
        let path = format!("{path}[{name}]");
        let reserved = RESERVED_VARIABLES.into_iter().find(|(reserved, _)| *reserved == name);
        if let Some((_, fix)) = reserved {
            remarks.no_counterpart(container, &path, variable, fix);
        } else if name == JAVA_OPTIONS && !has_jvm_options {
            remarks.note(container, &path, &format!("is called `{JVM_OPTIONS}` here"));
            let mut renamed = YamlBlock::default();
            for entry in variable.entries() {
                if entry.key == "name" {
                    renamed.text("name", JVM_OPTIONS);
                } else {
                    renamed.copy(&entry.key, Some(&entry.value));
                }
            }
            kept.push(YamlDraft::Block(renamed));
        } else {
            kept.push(YamlDraft::from(variable));
        }
    }
    if !kept.is_empty() {
        container.field("env", YamlDraft::List(kept));
    }
}
