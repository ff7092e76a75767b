//! Edge (reads). Reads the plugin in a JAR, if a server would load one from it.

use std::path::Path;

use artifacts::FactsError;
use artifacts::plugin_descriptor::{PluginFacts, facts_in};

use crate::plain_fs;

/// The plugin in this JAR. `None` if it contains none, or one that a server refuses for its descriptor, or one whose
/// descriptor is not readable here.
pub fn plugin(path: &Path) -> Result<Option<PluginFacts>, FactsError> {
    match facts_in(plain_fs::open(path).map_err(FactsError::Open)?) {
        Ok(facts) => Ok(Some(facts)),
        Err(
            FactsError::NoDescriptor
            | FactsError::OtherSoftware { .. }
            | FactsError::Refused { .. }
            | FactsError::UnreadableDescriptor { .. },
        ) => Ok(None),
        Err(
            error @ (FactsError::Open(_)
            | FactsError::NotAJar(_)
            | FactsError::TooManyEntries { .. }
            | FactsError::EntryTooLarge { .. }
            | FactsError::Unpack { .. }),
        ) => Err(error),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::{Cursor, Write};

    use super::*;

    /// A JAR with these entries.
    pub(crate) fn jar(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in entries {
            writer.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
            writer.write_all(content.as_bytes()).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn name_of(bytes: &[u8]) -> Result<Option<String>, FactsError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        Ok(plugin(file.path())?.map(|plugin| plugin.name))
    }

    #[test]
    fn jar_without_loadable_plugin_has_no_name() {
        let old = ("plugin.yml", "name: Old\nversion: 1\nmain: a.B\n");
        assert_eq!(name_of(&jar(&[old])).unwrap().as_deref(), Some("Old"));
        assert_eq!(name_of(&jar(&[("x.class", "")])).unwrap(), None);
        assert_eq!(name_of(&jar(&[("plugin.yml", "name: [")])).unwrap(), None);
        assert_eq!(name_of(&jar(&[("plugin.yml", "name: Old\nmain: a.B\n")])).unwrap(), None, "it has no version");
        assert_eq!(name_of(&jar(&[("velocity-plugin.json", "{}")])).unwrap(), None);
    }

    #[test]
    fn truncated_jar_and_web_page_are_no_jars() {
        let whole = jar(&[("plugin.yml", "name: A\nversion: 1\nmain: a.B\n")]);
        assert!(name_of(&whole[..whole.len() - 10]).is_err());
        assert!(name_of(b"<!DOCTYPE html>").is_err());
        assert!(name_of(b"").is_err());
    }
}
