//! Pure. Renders YAML with comments beside the fields.

use crate::input::yaml::{YamlNode, YamlValue};
use crate::output::yaml_scalar::quoted;

/// A mapping with comments, in the order of the output.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct YamlBlock(Vec<Entry>);

#[derive(Debug, Clone, PartialEq)]
enum Entry {
    Field {
        key: String,
        value: YamlDraft,
    },
    /// One line without its `#`.
    Comment(String),
}

/// A value to render.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum YamlDraft {
    /// One line, as it is printed.
    Scalar(String),
    List(Vec<YamlDraft>),
    Block(YamlBlock),
}

impl YamlBlock {
    /// Adds a text, in quotes where YAML needs them.
    pub(super) fn text(&mut self, key: &str, text: &str) {
        self.field(key, YamlDraft::Scalar(quoted(text)));
    }

    /// Adds a value.
    pub(super) fn field(&mut self, key: &str, value: YamlDraft) {
        self.0.push(Entry::Field { key: key.to_owned(), value });
    }

    /// Adds a block, unless it is empty.
    pub(super) fn block(&mut self, key: &str, block: YamlBlock) {
        if !block.0.is_empty() {
            self.field(key, YamlDraft::Block(block));
        }
    }

    /// Adds the value as it was read, if there is one.
    pub(super) fn copy(&mut self, key: &str, value: Option<&YamlNode>) {
        if let Some(value) = value {
            self.field(key, YamlDraft::from(value));
        }
    }

    /// Adds a comment.
    pub(super) fn comment(&mut self, text: &str) {
        // The text may repeat what the user wrote, and a line break would end the comment.
        let line = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        self.0.push(Entry::Comment(line));
    }

    /// Adds a field as a comment.
    pub(super) fn commented_field(&mut self, key: &str, value: &YamlNode) {
        for line in field_lines(key, &YamlDraft::from(value)) {
            self.comment(&line);
        }
    }

    /// The lines of the block.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for entry in &self.0 {
            match entry {
                Entry::Comment(line) => lines.push(format!("# {line}")),
                Entry::Field { key, value } => lines.append(&mut field_lines(key, value)),
            }
        }
        lines
    }

    /// Whether the block renders to more than comments.
    fn has_fields(&self) -> bool {
        self.0.iter().any(|entry| match entry {
            Entry::Comment(_) => false,
            Entry::Field { value: YamlDraft::Block(block), .. } => block.0.is_empty() || block.has_fields(),
            Entry::Field { value: YamlDraft::Scalar(_) | YamlDraft::List(_), .. } => true,
        })
    }
}

impl From<&YamlNode> for YamlDraft {
    /// The value without its empty fields, which the API server drops too.
    fn from(node: &YamlNode) -> Self {
        match &node.tree {
            YamlValue::Null => Self::Scalar("null".to_owned()),
            YamlValue::Bool(value) => Self::Scalar(value.to_string()),
            YamlValue::Number(value) => Self::Scalar(value.to_string()),
            YamlValue::Text(text) => Self::Scalar(quoted(text)),
            YamlValue::List(items) => Self::List(items.iter().map(Self::from).collect()),
            YamlValue::Map(entries) => {
                let mut block = YamlBlock::default();
                for entry in entries.iter().filter(|entry| entry.value.tree != YamlValue::Null) {
                    block.field(&entry.key, Self::from(&entry.value));
                }
                Self::Block(block)
            }
        }
    }
}

fn field_lines(key: &str, value: &YamlDraft) -> Vec<String> {
    let key = key_text(key);
    let below = |inner: Vec<String>| {
        let mut lines = vec![format!("{key}:")];
        lines.extend(inner.iter().map(|line| format!("  {line}")));
        lines
    };
    match value {
        YamlDraft::Scalar(text) => vec![format!("{key}: {text}")],
        YamlDraft::List(items) if items.is_empty() => vec![format!("{key}: []")],
        YamlDraft::List(items) => below(items.iter().flat_map(item_lines).collect()),
        YamlDraft::Block(block) if block.0.is_empty() => vec![format!("{key}: {{}}")],
        YamlDraft::Block(block) if block.has_fields() => below(block.lines()),
        // Below its key, a comment alone would be a field without a value.
        YamlDraft::Block(block) => block.lines(),
    }
}

fn item_lines(item: &YamlDraft) -> Vec<String> {
    let lines = match item {
        YamlDraft::Scalar(text) => vec![text.clone()],
        YamlDraft::List(items) if items.is_empty() => vec!["[]".to_owned()],
        YamlDraft::List(items) => items.iter().flat_map(item_lines).collect(),
        YamlDraft::Block(block) if block.0.is_empty() => vec!["{}".to_owned()],
        YamlDraft::Block(block) => block.lines(),
    };
    lines.iter().enumerate().map(|(at, line)| format!("{}{line}", if at == 0 { "- " } else { "  " })).collect()
}

/// A key, in quotes where YAML needs them. Labels such as `app.kubernetes.io/name` need none.
fn key_text(key: &str) -> String {
    let bare = key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.contains(['.', '/'])
        && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | '-' | '_'));
    if bare { key.to_owned() } else { quoted(key) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::yaml;

    fn parse(text: &str) -> YamlNode {
        yaml::read(text).unwrap().remove(0)
    }

    #[test]
    fn rendered_block_reads_back_as_same_value() {
        let text = "a: {b: [], c: {}, d: [x, [1, 2], {e: 'no', f: [{g: '1'}]}], h: null}\n\
                    app.kubernetes.io/name: \"1.20\"\n'y': true\n'': 0.5\ni: \"two\\nlines # \\u0007\"\n";
        let node = parse(text);
        let YamlDraft::Block(block) = YamlDraft::from(&node) else { panic!("the text is a mapping") };
        let rendered = block.lines().join("\n");
        assert_eq!(parse(&rendered).to_json(), node.to_json(), "{rendered}");
    }

    #[test]
    fn comment_stays_one_line_and_leaves_no_empty_field() {
        let mut inner = YamlBlock::default();
        inner.comment("one\ntwo");
        inner.commented_field("cidr", &parse("[10.0.0.0/8, {port: 8080}]"));
        let mut block = YamlBlock::default();
        block.block("network", inner);
        block.block("nothing", YamlBlock::default());
        block.text("type", "ClusterIP");
        let expected = ["# one\u{fffd}two", "# cidr:", "#   - \"10.0.0.0/8\"", "#   - port: 8080", "type: ClusterIP"];
        assert_eq!(block.lines(), expected);
    }
}
