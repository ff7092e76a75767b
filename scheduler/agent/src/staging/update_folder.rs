//! Edge (reads). Finds the folder from which a starting server updates plugins: `settings.update-folder` of `bukkit.yml`.

use std::path::{Component, Path, PathBuf};

use artifacts::update_folder_name;

use super::Volume;
use crate::plain_fs;

/// The largest file that is read, in bytes. Real ones have a few thousand.
const MAX_BYTES: u64 = 1 << 20;

/// The folder, whether it exists or not. A path is relative to `plugins/`. `None` in three cases:
///
/// - An empty name disables it.
/// - It is `plugins/` itself, which Bukkit ignores.
/// - It is outside of the server's directory, where Nightshift moves no files.
pub(super) fn update_folder(volume: &Volume) -> Option<PathBuf> {
    let text = read_text(&volume.root().join("bukkit.yml")).unwrap_or_default();
    let name = update_folder_name(&text);
    if name.trim().is_empty() {
        return None;
    }
    let path = normalize(&volume.plugins().join(&name))?;
    (path.starts_with(volume.root()) && path != volume.plugins()).then_some(path)
}

fn read_text(path: &Path) -> Option<String> {
    let bytes = plain_fs::read(path, MAX_BYTES).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The path with each `..` resolved lexically. `None` if that leads above the root.
fn normalize(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !plain.pop() {
                    return None;
                }
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The folder that a `bukkit.yml` names, relative to the server's directory.
    fn configured_folder(text: &str) -> Option<String> {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("bukkit.yml"), text).unwrap();
        let folder = update_folder(&Volume::new(directory.path()))?;
        Some(folder.strip_prefix(directory.path()).unwrap().display().to_string())
    }

    #[test]
    fn update_folder_is_read_from_bukkit_yml_below_plugins() {
        let full = "# Bukkit\nsettings:\n  allow-end: true\n  update-folder: waiting # by hand\nspawn-limits:\n  monsters: 70\n";
        assert_eq!(configured_folder(full).as_deref(), Some("plugins/waiting"));
        assert_eq!(
            configured_folder("settings:\n  update-folder: update\n  update-folder: later\n").as_deref(),
            Some("plugins/later")
        );
        assert_eq!(configured_folder("settings: {update-folder: 2024}").as_deref(), Some("plugins/2024"));
        assert_eq!(configured_folder("settings:\n  update-folder: ../new/./jars\n").as_deref(), Some("new/jars"));
    }

    #[test]
    fn update_folder_defaults_if_unset_or_unreadable() {
        for text in [
            "",
            "settings:\n  allow-end: true\n",
            "update-folder: elsewhere\n",
            "settings: [",
            "aliases: now-in-commands.yml\n",
        ] {
            assert_eq!(configured_folder(text).as_deref(), Some("plugins/update"), "{text:?}");
        }
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(update_folder(&Volume::new(directory.path())), Some(directory.path().join("plugins/update")));
    }

    #[test]
    fn update_folder_is_absent_if_empty_or_outside_plugins() {
        for name in ["''", "' '", ".", "../plugins", "/srv/jars", "../../jars"] {
            assert_eq!(configured_folder(&format!("settings:\n  update-folder: {name}\n")), None, "{name}");
        }
    }
}
