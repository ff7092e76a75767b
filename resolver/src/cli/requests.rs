//! Pure. Converts objects to requests, or reports all violations in them.

use std::collections::{BTreeMap, BTreeSet};

use super::cel_rules;
use super::from_status::{self, Schedule};
use super::manifests::{InputViolation, Manifests, WithPosition};
use super::running::{self, RunningSet};
use super::saved_query::SavedQuery;
use crate::catalog::ProjectKey;
use crate::from_api::{self, Complaint, ServerState, plugin_name};
use crate::request::{PaperRequest, Request, Running};
use crate::software::Software;
use crate::version::Minecraft;

/// Validated input of a query.
#[derive(Debug)]
pub(super) struct Checked {
    /// One request for each server, in input order: the servers of the query, and those that are solved together with
    /// them.
    pub(super) requests: Vec<Request>,
    /// The names of the servers of the query. `None` means all.
    asked_about: Option<BTreeSet<String>>,
    /// The running version set of each server, as far as its object contains it.
    pub(super) running: BTreeMap<String, RunningSet>,
    /// When each server may be restarted, by name.
    pub(super) schedules: BTreeMap<String, Schedule>,
    /// The plugins, for violations about their projects.
    plugins: Vec<WithPosition<crds::Plugin>>,
}

/// Validates the manifests. Adds notes to `notes`.
pub(super) fn check(manifests: Manifests, notes: &mut Vec<String>) -> Result<Checked, Vec<InputViolation>> {
    let Manifests { servers, plugins, mut mistakes, notes: left_aside } = manifests;
    notes.extend(left_aside);
    let mut requests = Vec::new();
    let mut running = BTreeMap::new();
    let mut schedules = BTreeMap::new();
    let mut used = vec![false; plugins.len()];
    for plugin in &plugins {
        let complaints =
            cel_rules::check_plugin(&plugin.object).into_iter().chain(from_api::check_plugin(&plugin.object));
        mistakes.extend(complaints.map(|complaint| plugin.mistake(complaint)));
    }
    for placed in &servers {
        let server = &placed.object;
        mistakes.extend(cel_rules::check_server(server).into_iter().map(|complaint| placed.mistake(complaint)));
        for (plugin, used) in plugins.iter().zip(&mut used) {
            *used |= !from_api::matching(server, [&plugin.object]).is_empty();
        }
        match ServerState::of(server).ask(server, plugins.iter().map(|plugin| &plugin.object)) {
            Ok(request) => {
                running.insert(request.server.clone(), running::of(server.status.as_ref()));
                let plugins = plugins.iter().map(|plugin| &plugin.object);
                schedules.insert(request.server.clone(), from_status::of(server, plugins));
                requests.push(request);
            }
            Err(complaints) => {
                for complaint in complaints {
                    let about = plugins.iter().find(|plugin| complaint.object == object_name(&plugin.object));
                    let mistake = about
                        .map_or_else(|| placed.mistake(complaint.clone()), |plugin| plugin.mistake(complaint.clone()));
                    // The violations of a plugin are already in the list.
                    if !mistakes.contains(&mistake) {
                        mistakes.push(mistake);
                    }
                }
            }
        }
    }
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    for (plugin, used) in plugins.iter().zip(used) {
        if !used && !servers.is_empty() {
            let name = plugin_name(&plugin.object);
            notes.push(format!("Plugin {name} matches no server here: see its `instanceSelector` and both namespaces"));
        }
    }
    Ok(Checked { requests, asked_about: None, running, schedules, plugins })
}

/// Validates objects of a cluster. The API server has already checked the rules in [`cel_rules`].
#[cfg(feature = "cluster")]
pub(super) fn check_found(
    found: super::cluster::ClusterObjects,
    notes: &mut Vec<String>,
) -> Result<Checked, Vec<InputViolation>> {
    let super::cluster::ClusterObjects { servers, plugins, asked_about, notes: unread } = found;
    notes.extend(unread);
    let (mut requests, mut running, mut schedules) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    let mut mistakes = Vec::new();
    for server in servers {
        let name = from_api::server_name(&server);
        let is_named = asked_about.as_ref().is_some_and(|names| names.contains(&name));
        if !is_named && !from_api::has_a_say(&server) {
            if asked_about.is_none() {
                notes.push(format!("{name} is left aside: its `spec.eula` is not `Accepted`, or it is being deleted"));
            }
            continue;
        }
        match ServerState::of(&server).ask(&server, &plugins) {
            Ok(request) => {
                running.insert(name.clone(), running::of(server.status.as_ref()));
                schedules.insert(name, from_status::of(&server, &plugins));
                requests.push(request);
            }
            Err(complaints) if is_named || asked_about.is_none() => {
                let server = WithPosition::in_cluster(server);
                mistakes.extend(complaints.into_iter().map(|complaint| server.mistake(complaint)));
            }
            Err(complaints) => {
                let why: Vec<String> = complaints.iter().map(ToString::to_string).collect();
                notes.push(format!("{name} is left aside: {}", why.join("; ")));
            }
        }
    }
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    if let Some(names) = &asked_about {
        let matters = |group: &&Vec<usize>| group.iter().any(|&place| names.contains(&requests[place].server));
        let kept: BTreeSet<usize> = crate::groups(&requests).iter().filter(matters).flatten().copied().collect();
        let mut place = 0..;
        requests.retain(|_| place.next().is_some_and(|place| kept.contains(&place)));
    }
    requests.sort_by(|a, b| a.server.cmp(&b.server));
    let plugins = plugins.into_iter().map(WithPosition::in_cluster).collect();
    Ok(Checked { requests, asked_about, running, schedules, plugins })
}

impl Checked {
    /// The input of a saved query.
    pub(super) fn of_problem(problem: &SavedQuery) -> Self {
        let SavedQuery { question, requests, running, schedules, .. } = problem;
        let asked_about = (!question.servers.is_empty()).then(|| question.servers.iter().cloned().collect());
        let (running, schedules) = (running.clone(), schedules.clone());
        Self { requests: requests.clone(), asked_about, running, schedules, plugins: Vec::new() }
    }

    /// Removes the servers that run a proxy, because a query about a Minecraft version does not apply to them.
    pub(super) fn leaves_proxies_aside(&mut self, notes: &mut Vec<String>) {
        for proxy in self.requests.extract_if(.., |request| !request.software.is_minecraft()) {
            notes.push(format!("{} is left aside: {} has versions of its own", proxy.server, proxy.software));
        }
    }

    /// The names of the servers of the query, sorted.
    pub(super) fn servers(&self) -> Vec<String> {
        let mut names: Vec<String> = self.requests.iter().map(|request| request.server.clone()).collect();
        names.retain(|name| self.is_asked_about(name));
        names.sort();
        names
    }

    /// Sets the running version set of a server, regardless of its status.
    pub(super) fn takes_for_running(&mut self, server: &str, running: &Running) {
        self.running.remove(server);
        for request in self.requests.iter_mut().filter(|request| request.server == server) {
            let opened = running.software.is_minecraft().then(|| running.minecraft.clone());
            // A world with a newer Minecraft version keeps its floor.
            request.floor = request.floor.take().max(opened);
            request.running = Some(running.clone());
        }
    }

    /// Whether all servers are part of the query.
    pub(super) fn is_about_all(&self) -> bool {
        self.requests.iter().all(|request| self.is_asked_about(&request.server))
    }

    /// Whether this server is part of the query, and not only solved together with one that is.
    pub(super) fn is_asked_about(&self, server: &str) -> bool {
        self.asked_about.as_ref().is_none_or(|names| names.contains(server))
    }

    /// All requested projects, sorted.
    pub(super) fn projects(&self) -> Vec<ProjectKey> {
        let mut keys: Vec<ProjectKey> =
            self.requests.iter().flat_map(|request| &request.plugins).map(|wish| wish.key.clone()).collect();
        keys.sort();
        keys.dedup();
        keys
    }

    /// The oldest Minecraft version that any server can run or is pinned to, if each has a bound. A pin alone is no
    /// bound, because a hint may propose to remove it.
    pub(super) fn oldest(&self) -> Option<Minecraft> {
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

    /// The software of the servers, and the software that must be known for them.
    pub(super) fn software(&self) -> Vec<Software> {
        Software::all_of(&self.requests)
    }

    /// Whether the resolver chooses the image of any server.
    pub(super) fn chooses_an_image(&self) -> bool {
        self.requests.iter().any(|request| request.software.is_minecraft() && request.image.is_none())
    }

    /// A violation at this field for each Plugin that requests the project, for example because it does not exist.
    pub(super) fn mistaken(&self, key: &ProjectKey, path: &str, problem: &str, fix: &str) -> Vec<InputViolation> {
        let asks = |plugin: &&WithPosition<crds::Plugin>| {
            from_api::project_key(&plugin.object.spec.source).is_some_and(|asked| asked == *key)
        };
        let mistake = |plugin: &WithPosition<crds::Plugin>| {
            plugin.mistake(Complaint {
                object: object_name(&plugin.object),
                path: path.to_owned(),
                problem: problem.to_owned(),
                fix: fix.to_owned(),
            })
        };
        self.plugins.iter().filter(asks).map(mistake).collect()
    }
}

fn object_name(plugin: &crds::Plugin) -> String {
    format!("Plugin {}", plugin_name(plugin))
}
