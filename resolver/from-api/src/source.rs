//! Pure. Reads the source of a Plugin: a project of a site, or a file by its URL and hash.

use crds::paper_mc_server::UpdateStrategy;
use crds::plugin::{PluginSource, SourceKind};

use super::ManifestViolations;
use resolver::model::catalog::{ProjectKey, Source};
use resolver::model::jar_pattern;
use resolver::model::request::VersionRequest;
use resolver::model::untrusted_text::hide_url_secrets;

/// The maximum URL length, equal to the schema.
const MAX_URL_LENGTH: usize = 2048;

/// The format of a checksum.
pub const CHECKSUM_FORMAT: &str = "`sha256:` and 64 hex digits, or the digits alone, as `sha256sum` prints them";

/// The project of a valid source. `None` if [`super::check_plugin`] reports an error for it.
pub fn project_key(source: &PluginSource) -> Option<ProjectKey> {
    let site = |site: Source| {
        let project = source.project.clone().filter(|project| !project.is_empty())?;
        Some(ProjectKey { source: site, project })
    };
    match source.kind {
        SourceKind::Hangar => site(Source::Hangar),
        SourceKind::Modrinth => site(Source::Modrinth),
        SourceKind::Url => {
            let url = source.url.as_deref().filter(|url| url_error(url).is_none())?;
            Some(ProjectKey::from_file(url, digits(source.checksum.as_deref()?)?))
        }
    }
}

/// The 64 hex digits of `sha256:<hex>`, or of the digits alone, as `lexfrei/minecraft-operator`
/// writes them, another operator for Paper.
fn digits(checksum: &str) -> Option<&str> {
    let digits = checksum.strip_prefix("sha256:").unwrap_or(checksum);
    (digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit())).then_some(digits)
}

/// The kinds of projects in addresses of Modrinth.
const PROJECT_KINDS: [&str; 7] = ["plugin", "mod", "project", "datapack", "modpack", "resourcepack", "shader"];

/// What other tools write before or after a project and a colon.
const PREFIXES: [&str; 15] = [
    "bukkit",
    "datapack",
    "fabric",
    "folia",
    "forge",
    "hangar",
    "modrinth",
    "neoforge",
    "paper",
    "plugin",
    "purpur",
    "quilt",
    "spigot",
    "velocity",
    "waterfall",
];

/// The slug in a pasted address, whatever page it leads to, or in the notation of another tool, such as
/// `paper:luckperms` or `luckperms:beta`. `None` if there is none, or the text is a slug already.
pub fn pasted_slug(text: &str) -> Option<String> {
    // Full-width letters, as some keyboards write them.
    let narrow = |c: char| match u32::from(c) {
        wide @ 0xff01..=0xff5e => char::from_u32(wide - 0xfee0).unwrap_or(c),
        _ => c,
    };
    let plain: String = text.chars().map(narrow).collect();
    let address = plain.trim().split(['?', '#']).next().unwrap_or_default();
    let path = address.split_once("://").map_or(address, |(_, path)| path);
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let slug = match parts.as_slice() {
        [] => return None,
        [_host] if path.len() < address.len() => return None,
        [name] => after_prefix(name),
        parts => in_path(parts, path.len() < address.len())?,
    };
    let slug = slug.trim_start_matches('@').trim();
    let is_slug = |c: char| c.is_ascii_alphanumeric() || "_.!$()`+,-".contains(c);
    let is_valid = !slug.is_empty() && slug.chars().all(is_slug) && !slug.chars().all(|c| c == '.');
    (is_valid && slug != text).then(|| slug.to_owned())
}

/// The slug in `paper:luckperms`, `luckperms:beta` or `luckperms`.
fn after_prefix(name: &str) -> &str {
    match name.split_once(':') {
        Some((prefix, rest)) if PREFIXES.iter().any(|known| prefix.eq_ignore_ascii_case(known)) => {
            rest.split(':').next().unwrap_or_default()
        }
        Some((slug, _)) => slug,
        None => name,
    }
}

/// The slug in a path of two parts or more. `is_url` means that its first part is a host.
fn in_path<'t>(parts: &[&'t str], is_url: bool) -> Option<&'t str> {
    let host = parts[0].strip_prefix("www.").unwrap_or(parts[0]).to_ascii_lowercase();
    let after = |name: &str| {
        let at = parts.iter().position(|part| *part == name)?;
        Some(&parts[at + 1..])
    };
    match (host.as_str(), &parts[1..]) {
        ("modrinth.com", [kind, slug, ..]) if PROJECT_KINDS.contains(kind) => Some(*slug),
        ("api.modrinth.com" | "staging-api.modrinth.com", _) => after("project")?.first().copied(),
        ("cdn.modrinth.com", _) => after("data")?.first().copied(),
        ("hangar.papermc.io", ["api", ..]) => match after("projects")? {
            [_, slug, ..] if !matches!(*slug, "versions" | "latest" | "latestrelease") => Some(*slug),
            [slug, ..] => Some(*slug),
            [] => None,
        },
        ("hangar.papermc.io", [_owner, slug, ..]) => Some(*slug),
        ("hangarcdn.papermc.io", _) => after("plugins")?.get(1).copied(),
        // An owner and a slug, or a kind and a slug, without a host.
        (first, [slug]) if !is_url && !first.contains('.') => Some(after_prefix(slug)),
        _ => None,
    }
}

/// The error in a URL, and how to fix it. `None` if the URL is valid.
pub fn url_error(url: &str) -> Option<(String, &'static str)> {
    const FIX: &str = "write the https address of the JAR, such as `https://example.org/MyPlugin-2.1.jar`";
    if url.len() > MAX_URL_LENGTH {
        return Some((format!("has {} characters", url.len()), "write at most 2048"));
    }
    let is = |problem: &str| format!("is `{}`, {problem}", hide_url_secrets(url));
    let Some((scheme, rest)) = url.split_once("://") else { return Some((is("which is not a URL"), FIX)) };
    if scheme.eq_ignore_ascii_case("http") {
        return Some((is("which is plain http and cannot be trusted"), "write the `https` address"));
    }
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if !scheme.eq_ignore_ascii_case("https") {
        return Some((is("which is not https"), FIX));
    }
    if host.is_empty() {
        return Some((is("which has no host"), FIX));
    }
    if host.contains('@') {
        let fix = "remove the part before the `@`: everyone who may read the Plugin can read a password in its spec";
        return Some((is("which contains a user name"), fix));
    }
    if url.contains('#') {
        return Some((is("and the part after `#` is not sent to the server"), "end it before the `#`"));
    }
    if url.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Some((is("which contains a space"), "write `%20` for a space"));
    }
    None
}

impl ManifestViolations {
    /// The project. Reports errors in the fields that identify it.
    pub(super) fn source(&mut self, source: &PluginSource) -> Option<ProjectKey> {
        let before = self.violations.len();
        match source.kind {
            SourceKind::Hangar | SourceKind::Modrinth => self.site(source),
            SourceKind::Url => self.file(source),
        }
        self.jars(source);
        if self.violations.len() > before { None } else { project_key(source) }
    }

    fn jars(&mut self, source: &PluginSource) {
        let jars = &source.jars;
        let modrinth_only = match source.kind {
            SourceKind::Modrinth => None,
            SourceKind::Hangar => Some("a version on Hangar has one file for Paper"),
            SourceKind::Url => Some("the address names the one file itself"),
        };
        if let Some(modrinth_only) = modrinth_only.filter(|_| !jars.is_empty()) {
            let fix = "remove it, and create another Plugin for another file, such as one of `type: url`";
            return self.report("spec.source.jars", format!("is for `type: modrinth`: {modrinth_only}"), fix);
        }
        if jars.len() > jar_pattern::MAX_PATTERNS {
            let problem = format!("names {} files", jars.len());
            self.report("spec.source.jars", problem, "write at most 16, or a pattern with `*` for each");
        }
        for (at, jar) in jars.iter().enumerate() {
            let path = format!("spec.source.jars[{at}]");
            if let Some((problem, fix)) = jar_pattern::pattern_error(jar) {
                self.report(&path, format!("is `{}`, which {problem}", jar.escape_debug()), fix);
            }
            if jars[..at].iter().any(|other| other.to_lowercase() == jar.to_lowercase()) {
                self.report(&path, format!("is `{}` again", jar.escape_debug()), "remove one of the two");
            }
        }
    }

    fn site(&mut self, source: &PluginSource) {
        if source.project.as_deref().is_none_or(str::is_empty) {
            let fix = "write the slug, the last part of the project page's address";
            self.report("spec.source.project", "is missing", fix);
        }
        if source.url.is_some() {
            let fix = "remove it, or write `type: url` and no project";
            self.report(
                "spec.source.url",
                "is for `type: url`, and Hangar and Modrinth know where their files are",
                fix,
            );
        }
        if source.checksum.is_some() {
            let problem = "is for `type: url`, and Hangar and Modrinth publish a checksum for each release";
            self.report("spec.source.checksum", problem, "remove it");
        }
    }

    fn file(&mut self, source: &PluginSource) {
        if source.project.is_some() {
            let fix = "remove it: the address names the file itself";
            self.report("spec.source.project", "is for `type: hangar` and `type: modrinth`", fix);
        }
        match source.url.as_deref().filter(|url| !url.is_empty()) {
            None => {
                let fix = "write the https address of the JAR, such as `url: \"https://example.org/MyPlugin-2.1.jar\"`";
                self.report("spec.source.url", "is missing, and `type: url` needs it", fix);
            }
            Some(url) => {
                if let Some((problem, fix)) = url_error(url) {
                    self.report("spec.source.url", problem, fix);
                }
            }
        }
        match source.checksum.as_deref().filter(|checksum| !checksum.is_empty()) {
            None => {
                let problem = "is missing, and `type: url` needs it: the address alone does not identify the file";
                let fix = "write what `sha256sum` prints for the JAR, such as `checksum: \"sha256:9f86d0…\"`";
                self.report("spec.source.checksum", problem, fix);
            }
            Some(checksum) if digits(checksum).is_none() => {
                let problem = format!("is `{checksum}`, which is not a sha256");
                self.report("spec.source.checksum", problem, format!("write {CHECKSUM_FORMAT}"));
            }
            Some(_) => {}
        }
    }

    /// The request for the single release of a file.
    pub(super) fn only_release(&mut self, spec: &crds::PluginSpec) -> Option<VersionRequest> {
        let before = self.violations.len();
        let strategy = match spec.update_strategy {
            UpdateStrategy::Latest => Some(VersionRequest::Latest),
            UpdateStrategy::Auto => Some(VersionRequest::Auto),
            UpdateStrategy::Pin | UpdateStrategy::BuildPin => {
                let problem = "is a pin, and a file by its URL is one release: its checksum pins it already";
                self.report("spec.updateStrategy", problem, "remove it");
                None
            }
        };
        if let Some(version) = &spec.version {
            let problem = format!("is `{version}`, and a file by its URL is one release, whose JAR states the version");
            self.report("spec.version", problem, "remove it: another release has another url and checksum");
        }
        if self.violations.len() > before { None } else { strategy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pasted_address_or_notation_gives_slug() {
        for text in [
            "https://modrinth.com/plugin/luckperms",
            "https://modrinth.com/plugin/luckperms/versions",
            "https://www.modrinth.com/mod/luckperms/version/v5.5.17-bukkit?loader=paper#changelog",
            "modrinth.com/project/luckperms/gallery/",
            "https://api.modrinth.com/v2/project/luckperms/version",
            "https://cdn.modrinth.com/data/luckperms/versions/abc/LuckPerms.jar",
            "https://hangar.papermc.io/Lucko/luckperms",
            "https://hangar.papermc.io/Lucko/luckperms/versions/5.5",
            "hangar.papermc.io/Lucko/luckperms/pages/Home",
            "https://hangar.papermc.io/api/v1/projects/luckperms/versions",
            "https://hangar.papermc.io/api/v1/projects/Lucko/luckperms/versions",
            "https://hangarcdn.papermc.io/plugins/Lucko/luckperms/versions/5.5/PAPER/x.jar",
            "plugin/luckperms",
            "Lucko/luckperms",
            "luckperms:beta",
            "luckperms:v5.5.17-bukkit",
            "paper:luckperms",
            "paper:luckperms:v5",
            "luckperms ",
            "@luckperms",
            "luckperms?version=5",
            "\u{ff4c}uckperms",
        ] {
            assert_eq!(pasted_slug(text).as_deref(), Some("luckperms"), "{text}");
        }
        for text in [
            "luckperms",
            "",
            "/",
            "..",
            "../tag/loader",
            "luck perms",
            "https://modrinth.com/user/lucko",
            "https://modrinth.com",
            "https://www.spigotmc.org/resources/luckperms.28140/",
            "https://example.org/plugin/luckperms",
        ] {
            assert_eq!(pasted_slug(text), None, "{text}");
        }
    }
}
