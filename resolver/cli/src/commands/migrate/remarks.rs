//! Pure. Collects what a converted object does differently. Each remark is a comment in the output. One that needs an
//! action is a line on stderr too.

use super::yaml_block::YamlBlock;
use crate::input::yaml::YamlNode;

/// Whether a remark needs an action of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RemarkKind {
    /// The server works as before, by other means.
    Note,
    /// Without an action, something is missing or behaves differently.
    ActionRequired,
}

/// A remark about one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Remark {
    pub(super) kind: RemarkKind,
    /// The field as minecraft-operator names it: `spec.gateway`.
    pub(super) path: String,
    /// The whole text, beginning with the field.
    pub(super) text: String,
}

/// The remarks about one object, in the order of the output.
#[derive(Debug, Default)]
pub(super) struct Remarks(pub(super) Vec<Remark>);

impl Remarks {
    /// A field without a counterpart. The output contains it as a comment.
    pub(super) fn no_counterpart(&mut self, block: &mut YamlBlock, path: &str, value: &YamlNode, why: &str) {
        self.action_required(block, path, &format!("has no counterpart: {why}"));
        block.commented_field(last_segment(path), value);
    }

    /// A field that is not needed.
    pub(super) fn left_out(&mut self, block: &mut YamlBlock, path: &str, why: &str) {
        self.note(block, path, &format!("is left out: {why}"));
    }

    /// Another difference that needs an action. `text` follows the name of the field.
    pub(super) fn action_required(&mut self, block: &mut YamlBlock, path: &str, text: &str) {
        self.add(block, RemarkKind::ActionRequired, path, text);
    }

    /// Another difference. `text` follows the name of the field.
    pub(super) fn note(&mut self, block: &mut YamlBlock, path: &str, text: &str) {
        self.add(block, RemarkKind::Note, path, text);
    }

    fn add(&mut self, block: &mut YamlBlock, kind: RemarkKind, path: &str, text: &str) {
        let text = format!("`{path}` {text}");
        block.comment(&text);
        self.0.push(Remark { kind, path: path.to_owned(), text });
    }
}

/// The name of a field: `gateway` of `spec.gateway`, and `OPS` of `spec.podTemplate.spec.containers[mc].env[OPS]`.
fn last_segment(path: &str) -> &str {
    let last = path.rsplit('.').next().unwrap_or(path);
    last.strip_suffix(']').and_then(|last| last.split_once('[')).map_or(last, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_segment_of_path_is_name_of_field_or_item() {
        for (path, name) in [("spec.gateway", "gateway"), ("port", "port"), ("spec.containers[mc].env[OPS]", "OPS")] {
            assert_eq!(last_segment(path), name);
        }
    }
}
