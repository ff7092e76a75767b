//! Pure. Finds names that two files of one directory share: the server loads only one of the two, and it is not
//! predictable which.

use std::collections::{BTreeMap, BTreeSet};

/// A plugin name that several files declare or provide.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct JarNameConflict {
    /// The name, as the first of the files writes it.
    pub name: String,
    /// The files, by name.
    pub files: Vec<String>,
}

/// The conflicts among files that declare these names (`name`, `provides`), by name. Names are compared as Bukkit does:
/// case-insensitively, with a space equal to an underscore.
///
/// Source: Paper refuses the second of two plugins with one name ("Ambiguous plugin name"). A `depend` on a name that
/// two plugins provide is satisfied by either.
pub fn find_conflicts<'a>(files: impl IntoIterator<Item = (&'a str, Vec<&'a str>)>) -> Vec<JarNameConflict> {
    let mut files: Vec<_> = files.into_iter().collect();
    files.sort();
    let mut by_name: BTreeMap<String, (&str, BTreeSet<&str>)> = BTreeMap::new();
    for (file, names) in files {
        for name in names {
            by_name.entry(folded(name)).or_insert_with(|| (name, BTreeSet::new())).1.insert(file);
        }
    }
    let several = by_name.into_values().filter(|(_, files)| files.len() > 1);
    several
        .map(|(name, files)| JarNameConflict {
            name: name.to_owned(),
            files: files.into_iter().map(str::to_owned).collect(),
        })
        .collect()
}

/// The [`find_conflicts`] between unmanaged files (`unmanaged`) and the files of a version set: files with the names
/// that they declare or provide, the declared one first. An unmanaged file with the same declared name as a file of the
/// version set is left out, because it is displaced when that file is installed.
pub fn find_unmanaged_conflicts<'a>(
    managed: &[(&'a str, Vec<&'a str>)],
    unmanaged: &[(&'a str, Vec<&'a str>)],
) -> Vec<JarNameConflict> {
    let declared = |names: &[&str]| names.first().map(|name| folded(name));
    let taken: BTreeSet<Option<String>> = managed.iter().map(|(_, names)| declared(names)).collect();
    let unmanaged: Vec<_> = unmanaged.iter().filter(|(_, names)| !taken.contains(&declared(names))).cloned().collect();
    let mut found = find_conflicts(managed.iter().chain(&unmanaged).cloned());
    found.retain(|conflict| conflict.files.iter().any(|file| unmanaged.iter().any(|(unmanaged, _)| unmanaged == file)));
    found
}

/// Normalizes a name for comparison as Bukkit does.
pub(crate) fn folded(name: &str) -> String {
    name.replace(' ', "_").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_conflict_ignores_case_of_declared_and_provided_names() {
        let found = find_conflicts([
            ("FAWE.jar", vec!["FastAsyncWorldEdit", "WorldEdit"]),
            ("worldedit-7.3.jar", vec!["worldedit"]),
            ("LuckPerms.jar", vec!["Luck Perms", "luck_perms"]),
        ]);
        let files = vec!["FAWE.jar".to_owned(), "worldedit-7.3.jar".to_owned()];
        assert_eq!(found, [JarNameConflict { name: "WorldEdit".to_owned(), files }]);
    }
}
