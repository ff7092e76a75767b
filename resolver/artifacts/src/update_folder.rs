//! Pure. Reads from `bukkit.yml` the folder from which a starting server updates plugins.

use serde::Deserialize;

/// Bukkit's default.
const DEFAULT: &str = "update";

#[derive(Deserialize, Default)]
struct BukkitYml {
    #[serde(default)]
    settings: Settings,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
struct Settings {
    update_folder: Option<String>,
}

/// The name in `settings.update-folder`, relative to `plugins/`. An empty name disables the folder. An unreadable file
/// means the default, and of two equal keys the last one counts, as for Bukkit.
pub fn update_folder_name(bukkit_yml: &str) -> String {
    let options = serde_saphyr::options! { duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins };
    let config = serde_saphyr::from_str_with_options::<BukkitYml>(bukkit_yml, options).unwrap_or_default();
    config.settings.update_folder.unwrap_or_else(|| DEFAULT.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn update_folder_comes_from_bukkit_yml_or_default() {
        for (text, name) in [
            ("", "update"),
            ("settings:\n  update-folder: waiting\n", "waiting"),
            ("settings:\n  update-folder: a\n  update-folder: b\n", "b"),
            ("settings:\n  update-folder: ''\n", ""),
            ("settings: [", "update"),
        ] {
            assert_eq!(update_folder_name(text), name, "{text:?}");
        }
    }
}
