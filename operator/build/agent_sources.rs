//! Pure. Selects what an agent is made of: the code of its crates, and the packages that they depend on. Comments and tests do not count, and neither does
//! the version of the workspace. The build script of the operator uses this file, and the tests of the operator too.

/// The crates that are compiled into the agent, as folders of the workspace.
pub(crate) const AGENT_CRATES: [&str; 4] =
    ["scheduler/agent", "scheduler/agent-api", "scheduler", "resolver/artifacts"];

/// FNV-1a with 64 bits. It only has to tell releases apart, and is the same with every version of Rust.
pub(crate) struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Adds a text, and marks its end.
    pub(crate) fn add(&mut self, text: &str) {
        for byte in text.bytes().chain([0]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// 16 hex digits.
    pub(crate) fn to_hex(&self) -> String {
        format!("{:016x}", self.0)
    }
}

/// The code of a file, without its comment lines and the tests at its end.
pub(crate) fn code_of(text: &str) -> String {
    let code = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let is_code = |line: &&str| !line.is_empty() && !line.starts_with("//");
    code.lines().map(str::trim).filter(is_code).collect::<Vec<_>>().join("\n")
}

/// The names below `[dependencies]` of a manifest.
pub(crate) fn declared_dependencies(manifest: &str) -> Vec<String> {
    let section = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    section.take_while(|line| !line.starts_with('[')).filter_map(declared_name).map(str::to_owned).collect()
}

/// The lines of the workspace's manifest that declare these dependencies, with versions and features.
pub(crate) fn declared_lines(workspace: &str, names: &[String]) -> String {
    let section = workspace.lines().skip_while(|line| *line != "[workspace.dependencies]").skip(1);
    let is_declared = |line: &&str| declared_name(line).is_some_and(|name| names.iter().any(|wanted| wanted == name));
    let lines = section.take_while(|line| !line.starts_with('[')).filter(is_declared);
    lines.map(|line| line.split(" #").next().unwrap_or(line).trim_end()).collect::<Vec<_>>().join("\n")
}

fn declared_name(line: &str) -> Option<&str> {
    let name = line.split(['.', ' ', '=']).next()?;
    (!name.is_empty() && !name.starts_with('#')).then_some(name)
}

/// Name, version and checksum of these packages and of all that they depend on, sorted. Crates of the workspace are left out: their code is read.
pub(crate) fn locked_packages(lock: &str, names: &[String]) -> Vec<String> {
    let packages: Vec<Package<'_>> = lock.split("[[package]]").filter_map(Package::parse).collect();
    let mut open: Vec<String> = names.to_vec();
    let mut found: Vec<String> = Vec::new();
    while let Some(wanted) = open.pop() {
        for package in packages.iter().filter(|package| package.is(&wanted)) {
            if !found.contains(&package.identity) {
                found.push(package.identity.clone());
                open.extend(package.dependencies.iter().map(|name| (*name).to_owned()));
            }
        }
    }
    found.sort();
    found
}

/// A package of `Cargo.lock` that comes from a registry.
struct Package<'l> {
    name: &'l str,
    version: &'l str,
    identity: String,
    dependencies: Vec<&'l str>,
}

impl<'l> Package<'l> {
    fn parse(entry: &'l str) -> Option<Self> {
        let field = |name: &str| {
            let value = entry.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""))?;
            value.strip_suffix('"')
        };
        let (name, version, checksum) = (field("name")?, field("version")?, field("checksum")?);
        let listed = entry.lines().filter_map(|line| line.strip_prefix(" \"")?.strip_suffix("\","));
        Some(Self { name, version, identity: format!("{name} {version} {checksum}"), dependencies: listed.collect() })
    }

    /// A dependency is written as `name`, or as `name version` if there are several.
    fn is(&self, dependency: &str) -> bool {
        match dependency.split_once(' ') {
            Some((name, version)) => self.name == name && version.split(' ').next() == Some(self.version),
            None => self.name == dependency,
        }
    }
}
