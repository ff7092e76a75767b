//! Pure. Selects what an agent is made of: the code of its crates, and the packages that they depend on. Comments and tests do not count, and neither does
//! the version of the workspace. The build script of the operator uses this file, and the tests of the operator too.

use std::collections::BTreeSet;

use toml::{Table, Value};

/// The crates that are compiled into the agent, as folders of the workspace.
pub(crate) const AGENT_CRATES: [&str; 4] =
    ["scheduler/agent", "scheduler/agent-api", "scheduler", "resolver/artifacts"];

/// The code of a file, without its comment lines and the tests at its end.
pub(crate) fn code_of(text: &str) -> String {
    let code = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let is_code = |line: &&str| !line.is_empty() && !line.starts_with("//");
    code.lines().map(str::trim).filter(is_code).collect::<Vec<_>>().join("\n")
}

/// The names in `[dependencies]` of a manifest.
pub(crate) fn declared_dependencies(manifest: &Table) -> Vec<String> {
    let dependencies = manifest.get("dependencies").and_then(Value::as_table);
    dependencies.into_iter().flat_map(Table::keys).cloned().collect()
}

/// How the workspace's manifest declares these dependencies: versions and features, a line each.
pub(crate) fn declared_lines(workspace: &Table, names: &BTreeSet<String>) -> String {
    let declared = workspace.get("workspace").and_then(|workspace| workspace.get("dependencies")?.as_table());
    let is_wanted = |(name, _): &(&String, &Value)| names.contains(*name);
    let lines = declared.into_iter().flatten().filter(is_wanted).map(|(name, value)| format!("{name} = {value}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Name, version and checksum of these packages and of all that they depend on, sorted. Crates of the workspace are left out: their code is read.
pub(crate) fn locked_packages(lock: &Table, names: &BTreeSet<String>) -> BTreeSet<String> {
    let listed = lock.get("package").and_then(Value::as_array);
    let packages: Vec<Package<'_>> = listed.into_iter().flatten().filter_map(Package::of_registry).collect();
    let mut open: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut found = BTreeSet::new();
    while let Some(wanted) = open.pop() {
        for package in packages.iter().filter(|package| package.is(wanted)) {
            if found.insert(package.identity()) {
                open.extend(&package.dependencies);
            }
        }
    }
    found
}

/// A package of `Cargo.lock` that comes from a registry.
struct Package<'l> {
    name: &'l str,
    version: &'l str,
    checksum: &'l str,
    dependencies: Vec<&'l str>,
}

impl<'l> Package<'l> {
    fn of_registry(entry: &'l Value) -> Option<Self> {
        let field = |name: &str| entry.get(name).and_then(Value::as_str);
        let dependencies = entry.get("dependencies").and_then(Value::as_array);
        Some(Self {
            name: field("name")?,
            version: field("version")?,
            checksum: field("checksum")?,
            dependencies: dependencies.into_iter().flatten().filter_map(Value::as_str).collect(),
        })
    }

    fn identity(&self) -> String {
        format!("{} {} {}", self.name, self.version, self.checksum)
    }

    /// A dependency is written as `name`, or as `name version` if there are several.
    fn is(&self, dependency: &str) -> bool {
        match dependency.split_once(' ') {
            Some((name, version)) => self.name == name && version.split(' ').next() == Some(self.version),
            None => self.name == dependency,
        }
    }
}
