//! Pure. Tells the JARs of a release that a server could load from its other files, by their names and types.

use std::collections::BTreeSet;

use super::project_page::Name;
use resolver::model::catalog::{Artifact, FurtherJar};
use resolver::model::jar_pattern::{is_jar, stem};

/// A file as its site lists it.
pub(super) struct ListedFile {
    pub(super) file: Artifact,
    /// Whether it is marked as the main file. Authors mark archives and sources, too.
    pub(super) primary: bool,
    /// Whether its type says that no server loads it.
    pub(super) attached: bool,
}

/// The words by which build tools name JARs that belong to another one.
const ATTACHED: [&str; 6] = ["sources", "source", "javadoc", "javadocs", "dev", "api"];

/// The characters between the words of a file name.
const SEPARATORS: [char; 5] = ['-', '_', '.', '+', ' '];

/// The main JAR of a release, and the other JARs that a server could load, by name.
///
/// The marked one of these is the main one, or the first one where none is marked. JARs with sources, documentation or
/// an API are left out beside another JAR. Without any JAR, the main file is returned, so that the reason can name it.
pub(super) fn pick_jars(files: Vec<ListedFile>, project: &Name) -> (Option<Artifact>, Vec<FurtherJar>) {
    let (mut jars, mut others): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|listed: &ListedFile| is_jar(&listed.file.name));
    if jars.is_empty() {
        return (take_main(&mut others), Vec::new());
    }
    let stems: BTreeSet<String> = jars.iter().map(|listed| stem(&listed.file.name).to_ascii_lowercase()).collect();
    let is_attached = |listed: &ListedFile| listed.attached || is_named_as_attached(&listed.file.name, &stems, project);
    if !jars.iter().all(is_attached) {
        jars.retain(|listed| !is_attached(listed));
    }
    let main = take_main(&mut jars);
    let mut further: Vec<_> = jars.into_iter().map(|listed| FurtherJar::unread(listed.file)).collect();
    further.sort_by(|a, b| (&a.file.name, &a.file.url).cmp(&(&b.file.name, &b.file.url)));
    further.dedup();
    (main, further)
}

fn take_main(files: &mut Vec<ListedFile>) -> Option<Artifact> {
    let main = files.iter().position(|listed| listed.primary).unwrap_or(0);
    (main < files.len()).then(|| files.remove(main).file)
}

/// Whether the name of a JAR says that it belongs to another one, as `claims-1.0-sources.jar`, `claims-api-1.0.jar` and
/// `ClaimsAPI-1.0.jar` beside `Claims-1.0.jar`. A JAR with the name of the project is the plugin itself.
fn is_named_as_attached(file_name: &str, stems: &BTreeSet<String>, project: &Name) -> bool {
    let stem = stem(file_name).to_ascii_lowercase();
    let name = file_name.to_ascii_lowercase();
    let name = name.strip_suffix(".jar").unwrap_or(&name);
    let after_version = name.strip_prefix(stem.as_str()).and_then(|rest| rest.rsplit(SEPARATORS).next());
    if after_version.is_some_and(|word| ATTACHED.contains(&word)) {
        return true;
    }
    if [&project.slug, &project.title].iter().any(|of_project| plain(of_project) == plain(&stem)) {
        return false;
    }
    ATTACHED
        .iter()
        .filter_map(|word| stem.strip_suffix(*word))
        .any(|before| before.is_empty() || before.ends_with(SEPARATORS) || stems.contains(before))
}

/// Letters and digits, in lower case.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}
