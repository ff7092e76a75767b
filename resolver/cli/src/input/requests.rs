//! Pure. Converts objects to requests, or reports all violations in them.

use std::collections::{BTreeMap, BTreeSet};

use super::from_status::{self, Schedule};
use super::manifests::{InputViolation, Manifests, WithPosition};
use super::running::{self, RunningSet};
use crate::saved_query::SavedQuery;
use from_api::{ServerState, Violation, plugin_name, server_name};
use resolver::model::catalog::ProjectKey;
use resolver::model::request::{PaperRequest, Request, Running};
use resolver::model::software::Software;
use resolver::model::version::Minecraft;
use validate::admission;

/// Validated input of a query.
#[derive(Debug)]
pub(crate) struct Checked {
    /// One request for each server, in input order: the servers of the query, and those that are solved together with
    /// them.
    pub(crate) requests: Vec<Request>,
    /// The names of the servers of the query. `None` means all.
    queried: Option<BTreeSet<String>>,
    /// The running version set of each server, as far as its object contains it.
    pub(crate) running: BTreeMap<String, RunningSet>,
    /// When each server may be restarted, by name.
    pub(crate) schedules: BTreeMap<String, Schedule>,
    /// The plugins, for violations about their projects.
    plugins: Vec<WithPosition<crds::Plugin>>,
}

/// Validates the manifests. Adds notes to `notes`.
pub(crate) fn check(manifests: Manifests, notes: &mut Vec<String>) -> Result<Checked, Vec<InputViolation>> {
    let Manifests { servers, plugins, mut violations, notes: ignored } = manifests;
    notes.extend(ignored);
    let mut requests = Vec::new();
    let mut running = BTreeMap::new();
    let mut schedules = BTreeMap::new();
    let mut used = vec![false; plugins.len()];
    for plugin in &plugins {
        let name = object_name(&plugin.object);
        let problems = admission::check_plugin(&plugin.object);
        violations.extend(problems.iter().map(|problem| plugin.spec_violation(&name, problem)));
        let problems = from_api::check_plugin(&plugin.object);
        violations.extend(problems.iter().map(|problem| plugin.violation(problem)));
    }
    for placed in &servers {
        let server = &placed.object;
        let problems = admission::check_server(server);
        violations.extend(problems.iter().map(|problem| placed.spec_violation(&server_object_name(server), problem)));
        for (plugin, used) in plugins.iter().zip(&mut used) {
            *used |= !from_api::matching(server, [&plugin.object]).is_empty();
        }
        match ServerState::from_status(server).build_request(server, plugins.iter().map(|plugin| &plugin.object)) {
            Ok(request) => {
                running.insert(request.server.clone(), running::from_status(server.status.as_ref()));
                let plugins = plugins.iter().map(|plugin| &plugin.object);
                schedules.insert(request.server.clone(), from_status::from_objects(server, plugins));
                requests.push(request);
            }
            Err(problems) => {
                for problem in problems {
                    let about = plugins.iter().find(|plugin| problem.object == object_name(&plugin.object));
                    let violation =
                        about.map_or_else(|| placed.violation(&problem), |plugin| plugin.violation(&problem));
                    // The violations of a plugin are already in the list.
                    if !violations.contains(&violation) {
                        violations.push(violation);
                    }
                }
            }
        }
    }
    if !violations.is_empty() {
        return Err(violations);
    }
    for (plugin, used) in plugins.iter().zip(used) {
        if !used && !servers.is_empty() {
            let name = plugin_name(&plugin.object);
            notes.push(format!("Plugin {name} matches no server here: see its `instanceSelector` and both namespaces"));
        }
    }
    Ok(Checked { requests, queried: None, running, schedules, plugins })
}

/// Validates objects of a cluster, as the operator does.
pub(crate) fn check_cluster_objects(
    found: crate::cluster::ClusterObjects,
    notes: &mut Vec<String>,
) -> Result<Checked, Vec<InputViolation>> {
    let crate::cluster::ClusterObjects { servers, plugins, queried, notes: unreadable } = found;
    notes.extend(unreadable);
    let (mut requests, mut running, mut schedules) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    let mut violations = Vec::new();
    for server in servers {
        let name = from_api::server_name(&server);
        let is_named = queried.as_ref().is_some_and(|names| names.contains(&name));
        if !is_named && !from_api::takes_part_in_group(&server) {
            if queried.is_none() {
                notes.push(format!("{name} is ignored: its `spec.eula` is not `Accepted`, or it is being deleted"));
            }
            continue;
        }
        let placed = WithPosition::in_cluster(server);
        let server = &placed.object;
        let object = server_object_name(server);
        let mut problems: Vec<InputViolation> =
            admission::check_for_answer(server).iter().map(|problem| placed.spec_violation(&object, problem)).collect();
        match ServerState::from_status(server).build_request(server, &plugins) {
            Ok(request) if problems.is_empty() => {
                running.insert(name.clone(), running::from_status(server.status.as_ref()));
                schedules.insert(name.clone(), from_status::from_objects(server, &plugins));
                requests.push(request);
            }
            Ok(_) => {}
            Err(more) => problems.extend(more.iter().map(|problem| placed.violation(problem))),
        }
        if is_named || queried.is_none() {
            violations.append(&mut problems);
        } else if !problems.is_empty() {
            let why: Vec<String> = problems.iter().map(ToString::to_string).collect();
            notes.push(format!("{name} is ignored: {}", why.join("; ")));
        }
    }
    if !violations.is_empty() {
        return Err(violations);
    }
    if let Some(names) = &queried {
        let matters = |group: &&Vec<usize>| group.iter().any(|&index| names.contains(&requests[index].server));
        let retained: BTreeSet<usize> = resolver::groups(&requests).iter().filter(matters).flatten().copied().collect();
        let mut index = 0..;
        requests.retain(|_| index.next().is_some_and(|index| retained.contains(&index)));
    }
    requests.sort_by(|a, b| a.server.cmp(&b.server));
    let plugins = plugins.into_iter().map(WithPosition::in_cluster).collect();
    Ok(Checked { requests, queried, running, schedules, plugins })
}

impl Checked {
    /// The input of a saved query.
    pub(crate) fn from_saved_query(problem: &SavedQuery) -> Self {
        let SavedQuery { question, requests, running, schedules, .. } = problem;
        let queried = (!question.servers.is_empty()).then(|| question.servers.iter().cloned().collect());
        let (running, schedules) = (running.clone(), schedules.clone());
        Self { requests: requests.clone(), queried, running, schedules, plugins: Vec::new() }
    }

    /// Removes the servers that run a proxy, because a query about a Minecraft version does not apply to them.
    pub(crate) fn remove_proxies(&mut self, notes: &mut Vec<String>) {
        for proxy in self.requests.extract_if(.., |request| !request.software.is_minecraft()) {
            notes.push(format!("{} is ignored: {} has other versions", proxy.server, proxy.software));
        }
    }

    /// The names of the servers of the query, sorted.
    pub(crate) fn servers(&self) -> Vec<String> {
        let mut names: Vec<String> = self.requests.iter().map(|request| request.server.clone()).collect();
        names.retain(|name| self.is_queried(name));
        names.sort();
        names
    }

    /// Sets the running version set of a server, regardless of its status.
    pub(crate) fn set_running(&mut self, server: &str, running: &Running) {
        self.running.remove(server);
        for request in self.requests.iter_mut().filter(|request| request.server == server) {
            let opened = running.software.is_minecraft().then(|| running.minecraft.clone());
            // A world with a newer Minecraft version keeps its floor.
            request.floor = request.floor.take().max(opened);
            request.running = Some(running.clone());
        }
    }

    /// Whether all servers are part of the query.
    pub(crate) fn queries_all(&self) -> bool {
        self.requests.iter().all(|request| self.is_queried(&request.server))
    }

    /// Whether this server is part of the query, and not only solved together with one that is.
    pub(crate) fn is_queried(&self, server: &str) -> bool {
        self.queried.as_ref().is_none_or(|names| names.contains(server))
    }

    /// All requested projects, sorted.
    pub(crate) fn projects(&self) -> Vec<ProjectKey> {
        let mut keys: Vec<ProjectKey> =
            self.requests.iter().flat_map(|request| &request.plugins).map(|plugin| plugin.key.clone()).collect();
        keys.sort();
        keys.dedup();
        keys
    }

    /// The oldest Minecraft version that any server can run or is pinned to, if each has a bound. A pin alone is no
    /// bound, because a hint may propose to remove it.
    pub(crate) fn oldest_minecraft(&self) -> Option<Minecraft> {
        // A proxy has its own versions, which are unrelated.
        let servers = self.requests.iter().filter(|request| request.software.is_minecraft());
        let bounds = servers.map(|request| match &request.paper {
            PaperRequest::Pin { version } | PaperRequest::BuildPin { version, .. } => {
                request.floor.as_ref().map(|floor| floor.min(version))
            }
            PaperRequest::Latest | PaperRequest::Auto => request.floor.as_ref(),
        });
        bounds.collect::<Option<Vec<_>>>()?.into_iter().min().cloned()
    }

    /// The software whose builds are needed to resolve the requests, Paper first. Lists for Purpur and Folia are interpreted by the versions that
    /// Paper has built, and the Java version of Purpur is Paper's.
    pub(crate) fn software(&self) -> Vec<Software> {
        let runs = |software: &Software| self.requests.iter().any(|request| request.software == *software);
        let needed = |software: &Software| match software {
            Software::Paper => runs(&Software::Paper) || runs(&Software::Purpur) || runs(&Software::Folia),
            Software::Purpur | Software::Folia | Software::Velocity => runs(software),
        };
        Software::ALL.into_iter().filter(needed).collect()
    }

    /// Whether the resolver chooses the image of any server.
    pub(crate) fn chooses_image(&self) -> bool {
        self.requests.iter().any(|request| request.software.is_minecraft() && request.image.is_none())
    }

    /// A violation at this field for each Plugin that requests the project, for example because it does not exist.
    pub(crate) fn project_violations(
        &self,
        key: &ProjectKey,
        path: &str,
        problem: &str,
        fix: &str,
    ) -> Vec<InputViolation> {
        let requests_project = |plugin: &&WithPosition<crds::Plugin>| {
            from_api::project_key(&plugin.object.spec.source).is_some_and(|requested| requested == *key)
        };
        let violation = |plugin: &WithPosition<crds::Plugin>| {
            plugin.violation(&Violation {
                object: object_name(&plugin.object),
                path: path.to_owned(),
                problem: problem.to_owned(),
                fix: fix.to_owned(),
            })
        };
        self.plugins.iter().filter(requests_project).map(violation).collect()
    }
}

fn server_object_name(server: &crds::PaperMCServer) -> String {
    format!("PaperMCServer {}", server_name(server))
}

fn object_name(plugin: &crds::Plugin) -> String {
    format!("Plugin {}", plugin_name(plugin))
}
