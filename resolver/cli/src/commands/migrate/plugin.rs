//! Pure. Converts a Plugin of minecraft-operator to ours, field by field.

use super::foreign_values::{convert_duration, find, text_at};
use super::remarks::Remarks;
use super::yaml_block::YamlBlock;
use crate::input::yaml::YamlNode;

/// The spec of the Plugin, and whether it lacks a value that only the user knows. Its schema has been checked.
pub(super) fn convert_plugin(plugin: &YamlNode, remarks: &mut Remarks) -> (YamlBlock, bool) {
    let mut spec = YamlBlock::default();
    let is_incomplete = write_source(plugin, &mut spec, remarks);
    write_release(plugin, &mut spec, remarks);
    if let Some(delay) = text_at(plugin, "spec.updateDelay") {
        spec.text("updateDelay", &convert_duration(delay));
    }
    if let Some(port) = find(plugin, "spec.port") {
        let why = "Nightshift opens no port for a plugin. Write a Service of your own for it, which selects the label \
                   `nightshift.dev/server` of the pod";
        remarks.no_counterpart(&mut spec, "spec.port", port, why);
    }
    // Without a mode, the list replaces that of the page, as in minecraft-operator.
    spec.copy("compatibilityOverride", find(plugin, "spec.compatibilityOverride"));
    spec.copy("instanceSelector", find(plugin, "spec.instanceSelector"));
    (spec, is_incomplete)
}

/// Adds the source. Returns whether it is incomplete.
fn write_source(plugin: &YamlNode, spec: &mut YamlBlock, remarks: &mut Remarks) -> bool {
    const CHECKSUM: &str = "spec.source.checksum";
    let is_url = is_url(plugin);
    let mut source = YamlBlock::default();
    source.copy("type", find(plugin, "spec.source.type"));
    let mut is_incomplete = false;
    if is_url {
        source.copy("url", find(plugin, "spec.source.url"));
        if let Some(checksum) = text_at(plugin, CHECKSUM) {
            source.text("checksum", checksum);
        } else {
            let text = "is required here: write what `sha256sum` prints for the JAR that runs. Until then, this \
                        Plugin is a comment";
            remarks.action_required(&mut source, CHECKSUM, text);
            source.text("checksum", "");
            is_incomplete = true;
        }
    } else if let Some(project) = text_at(plugin, "spec.source.project") {
        let name = project.rsplit('/').next().unwrap_or(project);
        if name != project {
            let text = format!("was `{project}`: Hangar finds the project by the part after the slash");
            remarks.note(&mut source, "spec.source.project", &text);
        }
        source.text("project", name);
    }
    spec.block("source", source);
    is_incomplete
}

fn write_release(plugin: &YamlNode, spec: &mut YamlBlock, remarks: &mut Remarks) {
    let strategy = text_at(plugin, "spec.updateStrategy").unwrap_or("latest");
    let is_pinned = matches!(strategy, "pin" | "build-pin");
    if is_url(plugin) && is_pinned {
        remarks.left_out(spec, "spec.updateStrategy", "a URL is one release, and its checksum pins it");
    } else {
        spec.copy("updateStrategy", find(plugin, "spec.updateStrategy"));
    }
    if let Some(version) = text_at(plugin, "spec.version") {
        if is_url(plugin) {
            remarks.left_out(spec, "spec.version", "it is read from the JAR");
        } else if is_pinned {
            spec.text("version", version);
        } else {
            remarks.left_out(spec, "spec.version", &format!("it has no effect with `{strategy}`"));
        }
    }
    if let Some(build) = find(plugin, "spec.build") {
        if strategy == "build-pin" && !is_url(plugin) {
            let why = "a release has no builds. `version` is the whole name of the release, as its page shows it";
            remarks.no_counterpart(spec, "spec.build", build, why);
        } else {
            remarks.left_out(spec, "spec.build", &format!("it has no effect with `{strategy}`"));
        }
    }
}

fn is_url(plugin: &YamlNode) -> bool {
    text_at(plugin, "spec.source.type") == Some("url")
}
