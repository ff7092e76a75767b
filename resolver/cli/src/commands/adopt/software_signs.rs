//! Pure. Finds out which server software a directory runs: Paper, or one of its forks.
//!
//! | sign | names the software | source |
//! |---|---|---|
//! | `version_history.json` up to 1.20.4 | `git-Purpur-2416 (MC: 1.20.4)`. Later ones have Paper's form in every fork | Paper's `VersionHistoryManager` |
//! | a JAR | its file name, the name in Paperclip's `META-INF/versions.list`, or `Brand-Name` of the JAR that Paperclip unpacked | Paperclip, Paper's `ServerBuildInfoImpl` |
//! | `.papermc-manifest.json` | `project` | mc-image-helper |
//! | configuration | `purpur.yml`, `config/leaf-global.yml`. It stays when the software changes, so it counts only without the others | the documentation of each fork |

use super::server_dir::one_line;

/// Maximum length of a displayed software name. Real ones have a dozen letters.
const MAX_NAME_LENGTH: usize = 64;

/// Forks of Paper: the letters with which their file names begin, and the fork's own spelling. A fork precedes those
/// whose configuration it also writes: Leaf that of Gale, Purpur and Pufferfish, and Purpur that of Pufferfish.
const FORKS: [(&str, &str); 16] = [
    ("divinemc", "DivineMC"),
    ("leaf", "Leaf"),
    ("leaves", "Leaves"),
    ("luminol", "Luminol"),
    ("lightingluminol", "LightingLuminol"),
    ("kaiiju", "Kaiiju"),
    ("canvas", "Canvas"),
    ("plazma", "Plazma"),
    ("folia", "Folia"),
    ("gale", "Gale"),
    ("purpur", "Purpur"),
    ("purpurclip", "Purpur"),
    ("airplane", "Airplane"),
    ("yatopia", "Yatopia"),
    ("tuinity", "Tuinity"),
    ("pufferfish", "Pufferfish"),
];

/// Other server software, in the same form.
const OTHERS: [(&str, &str); 11] = [
    ("paper", PAPER),
    ("spigot", "Spigot"),
    ("craftbukkit", "CraftBukkit"),
    ("mohist", "Mohist"),
    ("arclight", "Arclight"),
    ("magma", "Magma"),
    ("fabric", "Fabric"),
    ("forge", "Forge"),
    ("neoforge", "NeoForge"),
    ("quilt", "Quilt"),
    ("velocity", "Velocity"),
];

const PAPER: &str = "Paper";

/// How much a sign says about the software that runs, the most trustworthy first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Evidence {
    /// The software that started last wrote it.
    LastStart,
    /// The file starts that software.
    Installed,
    /// The software ran here once.
    Configuration,
}

/// A file that names a server software.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SoftwareSign {
    pub(super) evidence: Evidence,
    /// `Purpur`, safe to display.
    pub(super) software: String,
    /// The file.
    pub(super) file: String,
}

/// The software of a directory that does not run Paper, or may not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnsupportedSoftware {
    /// `Purpur`
    pub(super) software: String,
    /// The file that names it.
    pub(super) file: String,
    /// A file that is as trustworthy and names Paper.
    pub(super) paper: Option<String>,
}

impl SoftwareSign {
    /// A sign for the software with this name, in any spelling.
    pub(super) fn new(evidence: Evidence, software: &str, file: &str) -> Self {
        let plain: String = software.chars().take(MAX_NAME_LENGTH).collect();
        let software = known_name(&plain).map_or_else(|| one_line(&plain), str::to_owned);
        Self { evidence, software, file: file.to_owned() }
    }

    fn is_paper(&self) -> bool {
        is_paper(&self.software)
    }
}

pub(super) fn is_paper(software: &str) -> bool {
    software.eq_ignore_ascii_case(PAPER)
}

/// The own spelling of a known software.
fn known_name(letters: &str) -> Option<&'static str> {
    FORKS.iter().chain(&OTHERS).find(|(name, _)| letters.eq_ignore_ascii_case(name)).map(|(_, own)| *own)
}

/// The letters with which a file name begins.
fn letters(file: &str) -> &str {
    file.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default()
}

/// The known software with which a file name begins: `Leaf` for `leaf-1.21.10-130.jar`.
pub(super) fn named_by_file(file: &str) -> Option<&'static str> {
    known_name(letters(file))
}

/// The software in a file name of Paperclip's list: `purpur` for `purpur-1.21.10.jar`, and `spigot` for
/// `spigot-1.21.1-R0.1-SNAPSHOT.jar`.
pub(super) fn named_by_bundle(file: &str) -> Option<&str> {
    let end = file.match_indices('-').find(|(at, _)| file[at + 1..].starts_with(|c: char| c.is_ascii_digit()))?.0;
    match &file[..end] {
        "" => None,
        // Mojang's own bundle.
        "server" => Some("Minecraft's own server"),
        software => Some(software),
    }
}

/// The signs of configuration files, the most specific fork first: `purpur.yml`, `config/leaf-global.yml`. `files` are
/// paths in the server directory.
pub(super) fn configuration(files: &[String]) -> Vec<SoftwareSign> {
    let mut signs = Vec::new();
    for (fork, own) in FORKS {
        for file in files {
            let name = file.rsplit('/').next().unwrap_or_default();
            if name.strip_suffix(".yml").is_some_and(|name| letters(name).eq_ignore_ascii_case(fork)) {
                signs.push(SoftwareSign::new(Evidence::Configuration, own, file));
            }
        }
    }
    signs
}

/// The first sign of other software, unless a more trustworthy one names Paper.
pub(super) fn other_software(signs: &[SoftwareSign]) -> Option<UnsupportedSoftware> {
    let best = signs.iter().map(|sign| sign.evidence).min()?;
    let trusted = || signs.iter().filter(move |sign| sign.evidence == best);
    let SoftwareSign { software, file, .. } = trusted().find(|sign| !sign.is_paper())?;
    let paper = trusted().find(|sign| sign.is_paper()).map(|sign| sign.file.clone());
    Some(UnsupportedSoftware { software: software.clone(), file: file.clone(), paper })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(signs: &[(Evidence, &str, &str)]) -> Option<(String, String, Option<String>)> {
        let signs: Vec<SoftwareSign> =
            signs.iter().map(|(evidence, software, file)| SoftwareSign::new(*evidence, software, file)).collect();
        other_software(&signs).map(|UnsupportedSoftware { software, file, paper }| (software, file, paper))
    }

    #[test]
    fn fork_is_recognised_by_its_file_names() {
        for (file, software) in [
            ("purpur-1.21.10-2535.jar", "Purpur"),
            ("purpurclip.jar", "Purpur"),
            ("folia-1.21.8-6.jar", "Folia"),
            ("leaf-1.21.10-130.jar", "Leaf"),
            ("pufferfish-paperclip-1.20.4-R0.1-SNAPSHOT-reobf.jar", "Pufferfish"),
            ("Paper-1.21.10-130.jar", "Paper"),
        ] {
            assert_eq!(named_by_file(file), Some(software), "{file}");
        }
        for file in ["server.jar", "paperclip.jar", "leafy.jar", "", "1.jar"] {
            assert_eq!(named_by_file(file), None, "{file}");
        }
        for (file, software) in [
            ("purpur-1.21.10.jar", Some("purpur")),
            ("spigot-1.21.1-R0.1-SNAPSHOT.jar", Some("spigot")),
            ("server-1.21.10.jar", Some("Minecraft's own server")),
            ("x-server-26.1.jar", Some("x-server")),
            ("paper.jar", None),
            ("-1.jar", None),
        ] {
            assert_eq!(named_by_bundle(file), software, "{file}");
        }
    }

    #[test]
    fn configuration_names_most_specific_fork_first() {
        let software = |files: &[&str]| {
            let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
            configuration(&files).into_iter().map(|sign| (sign.software, sign.file)).next()
        };
        let some = |software: &str, file: &str| Some((software.to_owned(), file.to_owned()));
        let of_paper = ["bukkit.yml", "spigot.yml", "paper.yml", "config/paper-global.yml", "purpur.txt", "plugins"];
        assert_eq!(software(&of_paper), None);
        assert_eq!(software(&["pufferfish.yml", "purpur.yml"]), some("Purpur", "purpur.yml"));
        let of_leaf = ["config/gale-world-defaults.yml", "config/leaf-global.yml", "pufferfish.yml", "purpur.yml"];
        assert_eq!(software(&of_leaf), some("Leaf", "config/leaf-global.yml"));
        assert_eq!(software(&["config/gale-global.yml"]), some("Gale", "config/gale-global.yml"));
    }

    #[test]
    fn configuration_of_fork_counts_only_without_better_sign() {
        use Evidence::{Configuration, Installed, LastStart};
        let some = |software: &str, file: &str| Some((software.to_owned(), file.to_owned(), None));
        let purpur = (Configuration, "Purpur", "purpur.yml");
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[purpur]), some("Purpur", "purpur.yml"));
        // Purpur ran here once, and Paper is installed now.
        assert_eq!(found(&[(Installed, "paper", "paper.jar"), purpur]), None);
        assert_eq!(found(&[(Installed, "LEAF", "leaf.jar"), purpur]), some("Leaf", "leaf.jar"));
        let both = [(Installed, "paper", "paper.jar"), (Installed, "Folia", "folia.jar")];
        assert_eq!(found(&both), Some(("Folia".to_owned(), "folia.jar".to_owned(), Some("paper.jar".to_owned()))));
        // The last start decides between two JARs.
        assert_eq!(found(&[(LastStart, "Paper", "version_history.json"), both[0], both[1]]), None);
    }
}
