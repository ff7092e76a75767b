//! Pure. Lists the plugins that server software contains. The server does not load such a plugin from `plugins`, and
//! other plugins find it.

use jiff::civil::{Date, date};

use super::software::Software;
use super::version::Minecraft;

/// A plugin that server software contains.
#[derive(Debug)]
pub struct BundledPlugin {
    /// The name under which other plugins find it.
    pub name: &'static str,
    /// The main class of the plugin that is not loaded. A plugin of the same name with another class is loaded.
    pub main: &'static str,
    /// The software that contains it.
    software: &'static [Software],
    /// The numbers of the first Minecraft version whose builds contain it.
    since: [u16; 3],
    /// The origin of the fact.
    pub source: &'static str,
    /// The date when it was read.
    pub date: Date,
}

/// All facts. Folia is not in them, because no source was read for it.
static BUNDLED: [BundledPlugin; 1] = [BundledPlugin {
    name: "spark",
    main: "me.lucko.spark.bukkit.BukkitSparkPlugin",
    software: &[Software::Paper, Software::Purpur],
    since: [1, 21, 0],
    source: "github.com/PaperMC/Paper/issues/11093 and 11416",
    date: date(2026, 11, 28),
}];

impl BundledPlugin {
    /// The first Minecraft version whose builds contain it: `1.21`.
    pub fn since(&self) -> String {
        let [major, minor, patch] = self.since;
        if patch == 0 { format!("{major}.{minor}") } else { format!("{major}.{minor}.{patch}") }
    }
}

/// The plugins that some version of the software contains.
pub(crate) fn bundled_in_any(software: Software) -> impl Iterator<Item = &'static BundledPlugin> {
    BUNDLED.iter().filter(move |plugin| plugin.software.contains(&software))
}

/// The plugins that this version of the software contains.
pub fn bundled_in(software: Software, minecraft: &Minecraft) -> impl Iterator<Item = &'static BundledPlugin> {
    let numbers = minecraft.parts();
    bundled_in_any(software).filter(move |plugin| numbers.is_some_and(|numbers| plugin.since <= numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spark_is_in_paper_from_its_version_on() {
        for (software, minecraft, expected) in [
            (Software::Paper, "1.20.6", None),
            (Software::Paper, "1.21", Some("spark")),
            (Software::Purpur, "26.2", Some("spark")),
            (Software::Folia, "26.2", None),
            (Software::Velocity, "3.4.0", None),
        ] {
            let found = bundled_in(software, &minecraft.parse().unwrap()).map(|plugin| plugin.name).next();
            assert_eq!(found, expected, "{software} {minecraft}");
        }
        assert_eq!(BUNDLED[0].since(), "1.21");
    }
}
