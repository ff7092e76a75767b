//! Pure. Models the `api-version` of a plugin descriptor: which Paper versions load a JAR that states it.
//!
//! Sources: `CraftMagicNumbers.checkSupported` and `ApiVersion` of Paper for `plugin.yml`, `PaperPluginMeta` and
//! `PluginConfigConstraints` for `paper-plugin.yml`. Purpur and Folia contain the same classes.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::version::Minecraft;

/// Begins the stored form of a value that is in `paper-plugin.yml`, in catalogs and statuses.
const PAPER_MARK: &str = "paper-plugin.yml ";

/// Paper 1.13 is the first that reads `api-version`.
const FIRST: [i32; 3] = [1, 13, 0];

/// The first Paper that compares versions with their patch. Older ones have a list: `1.13`, `1.14`, and so on to their
/// own minor version.
const FIRST_WITH_PATCHES: [i32; 3] = [1, 20, 5];

/// The oldest version that a `paper-plugin.yml` may state (`PaperPluginMeta.MINIMUM`).
const OLDEST_IN_PAPER_PLUGIN: [i32; 3] = [1, 19, 0];

/// The `api-version` of one JAR, as the server reads it. It is stored as one text: [`fmt::Display`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct ApiVersion {
    text: Arc<str>,
    in_paper_plugin: bool,
}

/// The rule by which Paper refuses an `api-version` that is not simply newer than itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ApiVersionRule {
    /// Before 1.20.5, Paper accepts `1.13` to `1.20` and no other text.
    Listed,
    /// The same for `paper-plugin.yml`: `1.19` and `1.20`.
    ListedInPaperPlugin,
    /// It has neither two nor three numbers.
    Form,
    /// A `paper-plugin.yml` may not state a version below 1.19.
    TooOldInPaperPlugin,
}

/// The reason why a Paper version does not load a JAR because of its `api-version`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiVersionRefusal {
    /// It needs a newer server.
    Newer {
        /// The oldest Minecraft version that loads it.
        needs: Minecraft,
    },
    /// Another rule of that Paper version.
    Rule {
        /// The stated text.
        states: String,
        /// The rule.
        rule: ApiVersionRule,
    },
}

/// The meaning of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stated {
    /// Empty, or `none`: as if it were absent.
    Nothing,
    Version([i32; 3]),
    /// Not a version for `ApiVersion.getOrCreateVersion`.
    Malformed,
}

impl ApiVersion {
    /// The value that a `plugin.yml` or a `paper-plugin.yml` states.
    pub fn new(text: &str, in_paper_plugin: bool) -> Self {
        Self { text: text.into(), in_paper_plugin }
    }

    /// The stated text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The reason why a Paper version does not load the JAR.
    pub fn refusal(&self, paper: &Minecraft) -> Option<ApiVersionRefusal> {
        let stated = self.stated();
        let refused = |rule| Some(ApiVersionRefusal::Rule { states: self.text.to_string(), rule });
        if self.in_paper_plugin
            && match stated {
                Stated::Nothing => true,
                Stated::Version(version) => version < OLDEST_IN_PAPER_PLUGIN,
                Stated::Malformed => false,
            }
        {
            return refused(ApiVersionRule::TooOldInPaperPlugin);
        }
        // Paper before 1.13 does not read the field. A plugin that states a newer version than such a server is not for
        // it all the same.
        if let Stated::Version(version) = stated
            && is_newer_than(version, paper)
        {
            let is_listed = self.is_listed(version);
            let needs = if is_listed { version } else { version.max(FIRST_WITH_PATCHES) };
            return Some(ApiVersionRefusal::Newer { needs: minecraft(needs) });
        }
        if !self.in_paper_plugin && !is_at_least(paper, FIRST) {
            return None;
        }
        if is_at_least(paper, FIRST_WITH_PATCHES) {
            return if stated == Stated::Malformed { refused(ApiVersionRule::Form) } else { None };
        }
        match stated {
            Stated::Version(version) if self.is_listed(version) => None,
            Stated::Version(_) | Stated::Nothing | Stated::Malformed if self.in_paper_plugin => {
                refused(ApiVersionRule::ListedInPaperPlugin)
            }
            Stated::Version(_) | Stated::Nothing | Stated::Malformed => refused(ApiVersionRule::Listed),
        }
    }

    /// Whether a Paper version that loads the JAR treats it as one from before 1.13, with the old names of materials.
    pub fn is_legacy_on(&self, paper: &Minecraft) -> bool {
        let is_old = match self.stated() {
            Stated::Nothing => true,
            Stated::Version(version) => version < FIRST,
            Stated::Malformed => false,
        };
        !self.in_paper_plugin && is_old && is_at_least(paper, FIRST)
    }

    /// `ApiVersion.getOrCreateVersion`: `String.split` drops empty parts at the end, and `Integer.parseInt` accepts a
    /// sign but no spaces.
    fn stated(&self) -> Stated {
        if self.text.trim().is_empty() || self.text.eq_ignore_ascii_case("none") {
            return Stated::Nothing;
        }
        let parts: Option<Vec<i32>> =
            self.text.trim_end_matches('.').split('.').map(|part| part.parse().ok()).collect();
        match parts.as_deref() {
            Some(&[major, minor]) => Stated::Version([major, minor, 0]),
            Some(&[major, minor, patch]) => Stated::Version([major, minor, patch]),
            Some(_) | None => Stated::Malformed,
        }
    }

    /// Whether it is in the list of Paper before 1.20.5, up to the minor version of the server. The text is compared.
    fn is_listed(&self, [major, minor, _]: [i32; 3]) -> bool {
        let oldest = if self.in_paper_plugin { OLDEST_IN_PAPER_PLUGIN } else { FIRST };
        major == 1 && (oldest[1]..=20).contains(&minor) && *self.text == *format!("1.{minor}")
    }
}

/// Whether a JAR without an `api-version` runs in legacy mode on a Paper version.
pub(crate) fn is_legacy_without(paper: &Minecraft) -> bool {
    is_at_least(paper, FIRST)
}

/// The numbers of a version. A weekly snapshot has none, and is newer than every version that a descriptor states.
fn numbers(paper: &Minecraft) -> Option<[i32; 3]> {
    paper.parts().map(|parts| parts.map(i32::from))
}

fn is_at_least(paper: &Minecraft, version: [i32; 3]) -> bool {
    numbers(paper).is_none_or(|numbers| numbers >= version)
}

/// Whether a version is newer than the server. A preview of a version counts as older than the version.
fn is_newer_than(version: [i32; 3], paper: &Minecraft) -> bool {
    numbers(paper).is_some_and(|numbers| numbers < version || numbers == version && !paper.is_release())
}

fn minecraft([major, minor, patch]: [i32; 3]) -> Minecraft {
    let text = if patch == 0 { format!("{major}.{minor}") } else { format!("{major}.{minor}.{patch}") };
    text.parse().expect("numbers separated by dots are a version")
}

impl From<String> for ApiVersion {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<&str> for ApiVersion {
    fn from(text: &str) -> Self {
        let value = text.strip_prefix(PAPER_MARK);
        Self::new(value.unwrap_or(text), value.is_some())
    }
}

impl From<ApiVersion> for String {
    fn from(version: ApiVersion) -> Self {
        version.to_string()
    }
}

/// The form in which it is stored and reported.
impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.in_paper_plugin { PAPER_MARK } else { "" }, self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `loads`, `legacy`, the minimum version, or the rule.
    fn on(paper: &str, states: &str) -> String {
        let (paper, states): (Minecraft, ApiVersion) = (paper.parse().unwrap(), states.into());
        match states.refusal(&paper) {
            None if states.is_legacy_on(&paper) => "legacy".to_owned(),
            None => "loads".to_owned(),
            Some(ApiVersionRefusal::Newer { needs }) => format!(">={needs}"),
            Some(ApiVersionRefusal::Rule { rule, .. }) => format!("{rule:?}"),
        }
    }

    #[test]
    fn plugin_yml_api_version_is_judged_as_each_paper_does() {
        for (states, expected) in [
            // States, then the answers of Paper 1.12.2, 1.18.2, 1.20.1, 1.20.4, 1.20.6, 1.21.10 and 26.2.
            ("1.20", [">=1.20", ">=1.20", "loads", "loads", "loads", "loads", "loads"]),
            ("1.2", ["loads", "Listed", "Listed", "Listed", "legacy", "legacy", "legacy"]),
            ("1.13", [">=1.13", "loads", "loads", "loads", "loads", "loads", "loads"]),
            ("1.12", ["loads", "Listed", "Listed", "Listed", "legacy", "legacy", "legacy"]),
            ("1.18.2", [">=1.20.5", "Listed", "Listed", "Listed", "loads", "loads", "loads"]),
            ("1.20.4", [">=1.20.5", ">=1.20.5", ">=1.20.5", "Listed", "loads", "loads", "loads"]),
            ("1.21", [">=1.21", ">=1.21", ">=1.21", ">=1.21", ">=1.21", "loads", "loads"]),
            ("1.21.11", [">=1.21.11", ">=1.21.11", ">=1.21.11", ">=1.21.11", ">=1.21.11", ">=1.21.11", "loads"]),
            ("26.1", [">=26.1", ">=26.1", ">=26.1", ">=26.1", ">=26.1", ">=26.1", "loads"]),
            ("none", ["loads", "Listed", "Listed", "Listed", "legacy", "legacy", "legacy"]),
            (" ", ["loads", "Listed", "Listed", "Listed", "legacy", "legacy", "legacy"]),
            ("26", ["loads", "Listed", "Listed", "Listed", "Form", "Form", "Form"]),
            ("1.21+", ["loads", "Listed", "Listed", "Listed", "Form", "Form", "Form"]),
            ("v1.21", ["loads", "Listed", "Listed", "Listed", "Form", "Form", "Form"]),
            ("1.21.x", ["loads", "Listed", "Listed", "Listed", "Form", "Form", "Form"]),
            (" 1.21 ", ["loads", "Listed", "Listed", "Listed", "Form", "Form", "Form"]),
            ("1.21.11.0", ["loads", "Listed", "Listed", "Listed", "Form", "Form", "Form"]),
            ("26.1.2-R0.1-SNAPSHOT", ["loads", "Listed", "Listed", "Listed", "Form", "Form", "Form"]),
            ("26.1.2.build.72", ["loads", "Listed", "Listed", "Listed", "Form", "Form", "Form"]),
            ("1.99999999999", ["loads", "Listed", "Listed", "Listed", "Form", "Form", "Form"]),
            ("1.21.", [">=1.21", ">=1.21", ">=1.21", ">=1.21", ">=1.21", "loads", "loads"]),
            ("1.+21", [">=1.21", ">=1.21", ">=1.21", ">=1.21", ">=1.21", "loads", "loads"]),
        ] {
            let papers = ["1.12.2", "1.18.2", "1.20.1", "1.20.4", "1.20.6", "1.21.10", "26.2"];
            assert_eq!(papers.map(|paper| on(paper, states)), expected, "{states}");
        }
    }

    #[test]
    fn paper_plugin_yml_api_version_is_judged_as_each_paper_does() {
        for (states, expected) in [
            // States, then the answers of Paper 1.19.4, 1.20.4, 1.20.6 and 26.2.
            ("1.19", ["loads", "loads", "loads", "loads"]),
            ("1.20", [">=1.20", "loads", "loads", "loads"]),
            ("1.2", ["TooOldInPaperPlugin"; 4]),
            ("1.18", ["TooOldInPaperPlugin"; 4]),
            ("none", ["TooOldInPaperPlugin"; 4]),
            ("1.19.4", ["ListedInPaperPlugin", "ListedInPaperPlugin", "loads", "loads"]),
            ("1.21", [">=1.21", ">=1.21", ">=1.21", "loads"]),
            ("1.21.x", ["ListedInPaperPlugin", "ListedInPaperPlugin", "Form", "Form"]),
        ] {
            let states = format!("paper-plugin.yml {states}");
            assert_eq!(["1.19.4", "1.20.4", "1.20.6", "26.2"].map(|paper| on(paper, &states)), expected, "{states}");
        }
    }

    #[test]
    fn preview_of_stated_version_is_older_and_weekly_snapshot_is_newer() {
        assert_eq!((on("1.21.9-rc1", "1.21.9"), on("24w05b", "1.21.9")), (">=1.21.9".to_owned(), "loads".to_owned()));
    }

    #[test]
    fn stored_text_keeps_value_and_file() {
        for text in ["1.20", "paper-plugin.yml 1.20", "", "paper-plugin.yml ", " 1.21 "] {
            assert_eq!(ApiVersion::from(text).to_string(), text);
            let stored = serde_json::to_string(&ApiVersion::from(text)).unwrap();
            assert_eq!(serde_json::from_str::<ApiVersion>(&stored).unwrap(), ApiVersion::from(text));
        }
        assert_eq!(ApiVersion::from("paper-plugin.yml 1.20"), ApiVersion::new("1.20", true));
        assert_eq!(ApiVersion::from("1.20"), ApiVersion::new("1.20", false));
    }
}
