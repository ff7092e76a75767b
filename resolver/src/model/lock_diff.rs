//! Pure. Compares two locks and lists the changes of the running versions.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::catalog::ProjectKey;
use super::ignore_unknown_fields::passing_over;
use super::lock::{Lock, LockDigest, LockReason, LockedFile, LockedPlugin};
use super::software::PaperName;
use super::version::{Minecraft, lenient};

/// The changes from one lock to another: exactly the parts that the digest covers. Dates, URLs, reasons, JVM flags and
/// the server's name are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// The old lock.
    pub old: LockName,
    /// The new lock.
    pub new: LockName,
    /// Whether the locks do not differ: both have the same digest.
    pub equal: bool,
    /// The change of Paper, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<PaperChange>,
    /// The change of the minimum Java version, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub java: Option<ValueChange<u32>>,
    /// The change of the server image, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ValueChange<Option<String>>>,
    /// The changed plugins, by name.
    pub plugins: Vec<PluginChange>,
}

/// Identifies a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LockName {
    /// The server it was solved for.
    pub server: String,
    /// Its digest.
    pub digest: LockDigest,
    /// Its Paper version.
    pub paper: PaperName,
}

/// A changed value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ValueChange<T> {
    /// In the old lock.
    pub from: T,
    /// In the new lock.
    pub to: T,
}

/// Another Paper version, or another file of the same version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PaperChange {
    /// In the old lock.
    pub from: PaperName,
    /// In the new lock.
    pub to: PaperName,
    /// Whether the update is irreversible: the world cannot return from a newer Minecraft version, and other software
    /// leaves data in it that only that software reads.
    pub one_way: bool,
    /// Whether the Minecraft version is older: it does not open a world that the newer one has opened.
    pub backwards: bool,
    /// Set if the file differs although the build is the same.
    #[serde(default, deserialize_with = "passing_over", skip_serializing_if = "Option::is_none")]
    pub file: Option<ValueChange<LockedFile>>,
}

/// The change of one plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PluginChange {
    /// The display name.
    pub name: String,
    /// The kind of change.
    pub change: ChangeKind,
    /// In the old lock. Absent if the plugin is added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<ReleaseName>,
    /// In the new lock. Absent if the plugin is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<ReleaseName>,
}

/// Kinds of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ChangeKind {
    /// The plugin is added.
    Added,
    /// The plugin is removed.
    Removed,
    /// A newer version.
    Updated,
    /// An older version.
    Downgraded,
    /// The same version, but another release or file.
    Replaced,
}

/// One release of a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReleaseName {
    /// The version as its authors write it.
    pub version: String,
    /// The project.
    pub key: ProjectKey,
    /// The id of the release at its source.
    pub release_id: String,
    /// Its file.
    #[serde(deserialize_with = "passing_over")]
    pub file: LockedFile,
    /// Its further files.
    #[serde(default, deserialize_with = "passing_over", skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<LockedFile>,
    /// Names of the plugins that need it, if no Plugin object requests it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needed_by: Vec<String>,
}

impl Lock {
    /// The changes if `new` runs instead of this lock.
    pub fn difference(&self, new: &Self) -> Difference {
        let name =
            |lock: &Self| LockName { server: lock.server.clone(), digest: lock.digest(), paper: lock.paper_name() };
        let (name_of_old, name_of_new) = (name(self), name(new));
        let equal = name_of_old.digest == name_of_new.digest;
        Difference {
            equal,
            old: name_of_old,
            new: name_of_new,
            paper: paper_change(self, new),
            java: change(&self.java, &new.java),
            image: change(&self.image, &new.image),
            plugins: plugin_changes(self, new),
        }
    }
}

fn change<T: Clone + PartialEq>(from: &T, to: &T) -> Option<ValueChange<T>> {
    (from != to).then(|| ValueChange { from: from.clone(), to: to.clone() })
}

/// Compares what the digest covers of a file: a file from another URL is still the same.
fn same_file(a: &LockedFile, b: &LockedFile) -> bool {
    a.name == b.name && a.hash == b.hash
}

fn same_files(a: &LockedPlugin, b: &LockedPlugin) -> bool {
    // In any order, like the digest.
    let sorted = |plugin: &LockedPlugin| {
        let mut files: Vec<_> = plugin.files().map(|file| (file.name.clone(), file.hash.clone())).collect();
        files.sort();
        files
    };
    sorted(a) == sorted(b)
}

fn paper_change(old: &Lock, new: &Lock) -> Option<PaperChange> {
    let text = |lock: &Lock| (lock.software, lock.minecraft.as_str().to_owned(), lock.build);
    let (same_build, same_file) = (text(old) == text(new), same_file(&old.paper, &new.paper));
    if same_build && same_file {
        return None;
    }
    // A proxy opens no world. For other software, no order between worlds is known.
    let moves = old.software != new.software;
    let order =
        |is: Ordering| !moves && new.software.is_minecraft() && Minecraft::cmp(&new.minecraft, &old.minecraft) == is;
    let file = same_build.then(|| ValueChange { from: old.paper.clone(), to: new.paper.clone() });
    Some(PaperChange {
        from: old.paper_name(),
        to: new.paper_name(),
        one_way: moves || order(Ordering::Greater),
        backwards: order(Ordering::Less),
        file,
    })
}

fn plugin_changes(old: &Lock, new: &Lock) -> Vec<PluginChange> {
    let mut removed: Vec<&LockedPlugin> = old.plugins.iter().collect();
    // By project first. A plugin that moved to another source can only be recognized by its name.
    let by_project = new.plugins.iter().map(|plugin| {
        let same =
            |other: &&LockedPlugin| other.key.source == plugin.key.source && other.project_id == plugin.project_id;
        (plugin, take_matching(&mut removed, same))
    });
    let by_project: Vec<(&LockedPlugin, Option<&LockedPlugin>)> = by_project.collect();
    let pairs = by_project.into_iter().map(|(plugin, before)| {
        let before =
            before.or_else(|| take_matching(&mut removed, |other| other.name.eq_ignore_ascii_case(&plugin.name)));
        (plugin, before)
    });
    let mut changes: Vec<PluginChange> =
        pairs.filter_map(|(plugin, before)| plugin_change(before, Some(plugin))).collect();
    changes.extend(removed.into_iter().filter_map(|plugin| plugin_change(Some(plugin), None)));
    let by = |change: &PluginChange| (change.name.to_lowercase(), change.name.clone());
    changes.sort_by_key(by);
    changes
}

fn take_matching<'l>(
    from: &mut Vec<&'l LockedPlugin>,
    wanted: impl Fn(&&LockedPlugin) -> bool,
) -> Option<&'l LockedPlugin> {
    let position = from.iter().position(wanted)?;
    Some(from.remove(position))
}

fn plugin_change(old: Option<&LockedPlugin>, new: Option<&LockedPlugin>) -> Option<PluginChange> {
    let change = match (old, new) {
        (Some(old), Some(new)) => {
            let same = old.release_id == new.release_id && old.version == new.version;
            if same && same_files(old, new) {
                return None;
            }
            match lenient::compare(&new.version, &old.version) {
                Ordering::Greater => ChangeKind::Updated,
                Ordering::Less => ChangeKind::Downgraded,
                Ordering::Equal => ChangeKind::Replaced,
            }
        }
        (None, _) => ChangeKind::Added,
        (_, None) => ChangeKind::Removed,
    };
    let name = new.or(old)?.name.clone();
    Some(PluginChange { name, change, from: old.map(release_name), to: new.map(release_name) })
}

fn release_name(plugin: &LockedPlugin) -> ReleaseName {
    ReleaseName {
        version: plugin.version.clone(),
        key: plugin.key.clone(),
        release_id: plugin.release_id.clone(),
        file: plugin.file.clone(),
        more: plugin.more.clone(),
        needed_by: match &plugin.reason {
            LockReason::NeededBy(names) => names.clone(),
            LockReason::RequestedBy(_) => Vec::new(),
        },
    }
}
