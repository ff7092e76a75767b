//! Edge (reads files, writes). Plays scenario files: readable scripts of a server's events, run with real passes of the
//! operator in virtual time.
//!
//! The result is compared with the transcript beside the file.
//!
//! The files are `operator/scenarios/*.scenario`, their transcripts `operator/scenarios/transcripts/*.snap`.
//! `NIGHTSHIFT_SCENARIO=name` plays one file and prints its transcript.

mod expect;
mod script;
mod transcript;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fixtures::rng::Rng;
use jiff::Timestamp;
use kube::runtime::watcher::Event;
use resolver::model::catalog::Catalog;
use serde_json::{Value, json};

use self::script::{START_TIME, Script, ScriptAction, Step};
use self::transcript::{Names, format_line};
use super::Fleet;
use super::scenario::FleetScenario;
use crate::catalog::Snapshot;
use crate::clock::now;
use crate::clock::simulated;
use crate::k8s::labels::APPLY_NOW;
use crate::simulation::catalog::Releases;
use crate::simulation::cluster::SimCluster;
use crate::simulation::faults::{Fault, InjectedCrash};
use crate::simulation::operator_process::{Bounds, Operator, new_plugin};
use crate::simulation::scenario::{Extra, Scenario, ServerIndex};
use crate::simulation::user_actions::{REQUEST_VALID_FOR, UserAction};
use crate::simulation::world_layout::write_level_dats;
use crate::simulation::{next_address, run_on_this_thread};

/// Upper limit of the events between two steps of a script.
const MAX_EVENTS: u32 = 100_000;
/// Always read: other plugins depend on the first, and the second depends on it.
const DEFAULT_PROJECTS: [&str; 2] = ["viabackwards", "viaversion"];

/// The result of a scenario file.
struct ScenarioResult {
    transcript: String,
    /// Failed expectations.
    failures: Vec<String>,
}

struct Player<'s> {
    fleet: Fleet,
    /// Steps that wait for a line of the transcript, each with the number of lines at the time it was read.
    waiting: Vec<(&'s Step, usize)>,
    script_name: String,
    projects: Vec<String>,
    names: Names,
    lines: Vec<String>,
    /// The lines of each server, without its name.
    lines_by_server: Vec<Vec<String>>,
    failures: Vec<String>,
    /// What upstreams have published, and no operator has read.
    unread: Option<Arc<Snapshot>>,
}

fn play(name: &str, text: &str) -> ScenarioResult {
    let script = match Script::parse(text) {
        Ok(script) => script,
        Err(error) => return ScenarioResult { transcript: String::new(), failures: vec![error] },
    };
    let addresses: Vec<Ipv4Addr> = script.servers.iter().map(|_| next_address()).collect();
    run_on_this_thread(async {
        let begins: Timestamp = START_TIME.parse().expect("a time");
        let _clocks = simulated::start(begins);
        let mut player = Player::begin(name, &script, &addresses).await;
        for step in &script.steps {
            player.advance(step.at).await;
            if step.trigger.is_some() {
                player.waiting.push((step, player.lines_by_server[step.server].len()));
            } else {
                player.run_step(step);
            }
        }
        player.finish()
    })
}

impl<'s> Player<'s> {
    async fn begin(name: &str, script: &'s Script, addresses: &[Ipv4Addr]) -> Self {
        let mut projects: Vec<String> = DEFAULT_PROJECTS.map(str::to_owned).into();
        projects.extend(script.plugins.keys().cloned());
        projects.sort();
        projects.dedup();
        let releases = Releases::get().snapshot_of_day(&script.upstream, &projects, now());
        let scenarios = script.servers.iter().zip(addresses).enumerate().map(|(at, (server, address))| {
            let server_index = ServerIndex {
                name: server.name.clone().leak(),
                number: u32::try_from(at).expect("a small number"),
                node: server.node,
                follows: None,
            };
            Scenario {
                server_index,
                behaviour: script.behaviour,
                behaviours: if server.behaviours.is_empty() {
                    script.behaviours.clone()
                } else {
                    server.behaviours.clone()
                },
                ping: server.ping,
                extras: extras(&server.spec),
                checks_invariants: script.checks_invariants,
                script: Some(server.spec.clone()),
                ..Scenario::plain(&releases, *address)
            }
        });
        let bounds = Bounds { total: script.max_updates, per_node: script.max_updates_per_node };
        let fleet_scenario =
            FleetScenario { scenarios: scenarios.collect(), bounds, faults: Vec::new(), released_at: Timestamp::MAX };
        let servers = script.servers.len();
        let mut fleet = Fleet::begin(fleet_scenario, Rng::new(1)).await;
        fleet.flags.clone_from(&script.flags);
        fleet.plugins = script.plugins.iter().map(|(project, spec)| new_plugin(project, spec)).collect();
        Self {
            fleet,
            waiting: Vec::new(),
            script_name: name.to_owned(),
            projects,
            names: Names::new(),
            lines: Vec::new(),
            lines_by_server: vec![Vec::new(); servers],
            failures: Vec::new(),
            unread: None,
        }
    }

    /// Lets time pass until then.
    async fn advance(&mut self, until: Timestamp) {
        let mut events = 0;
        while events < MAX_EVENTS {
            let next = self.fleet.next_event_at();
            if next > until {
                simulated::advance_to(until);
                return;
            }
            events += 1;
            simulated::advance_to(next);
            self.fleet.run_next_event().await;
            self.serve_refreshes();
            self.fleet.notify_watches();
            self.fleet.record_state();
            self.collect_lines();
            self.run_triggered_steps();
        }
        self.failures.push(format!("nothing comes to rest before {until}: {MAX_EVENTS} events"));
    }

    /// Carries out the steps whose line has appeared.
    fn run_triggered_steps(&mut self) {
        let lines_by_server = &self.lines_by_server;
        let is_due = |(step, from): &mut (&Step, usize)| {
            let trigger = step.trigger.as_deref().unwrap_or_default();
            lines_by_server[step.server][*from..].iter().any(|line| line.contains(trigger))
        };
        let due: Vec<_> = self.waiting.extract_if(.., is_due).collect();
        for (step, _) in due {
            self.run_step(step);
        }
    }

    /// Adds the events since the last call to the transcript.
    fn collect_lines(&mut self) {
        let trace = std::mem::take(&mut self.fleet.trace);
        let many = self.fleet.servers.len() > 1;
        for entry in trace {
            let Some((server, rest)) = entry.split_once(": ") else { continue };
            let Some(at) = self.fleet.servers.iter().position(|candidate| candidate.name == server) else { continue };
            let Some((time, text)) = rest.split_once(' ') else { continue };
            let time: Timestamp = time.parse().expect("a trace line begins with its time");
            let text = self.names.replace_names(text, &self.fleet.servers[at].handle.cluster());
            let is_repeated = |lines: &Vec<String>, line: &String| lines.last() == Some(line);
            let of_server = format_line(time, None, &text);
            if !is_repeated(&self.lines_by_server[at], &of_server) {
                self.lines.push(if many { format_line(time, Some(server), &text) } else { of_server.clone() });
                self.lines_by_server[at].push(of_server);
            }
        }
    }

    fn run_step(&mut self, step: &Step) {
        if let ScriptAction::Expect(expect) = &step.action {
            let found = {
                let cluster = self.fleet.servers[step.server].handle.cluster();
                expect.mismatch(&cluster, &self.lines_by_server[step.server])
            };
            if let Some(found) = found {
                self.failures.push(format!("line {} (`{}`): {found}", step.line, step.text));
            }
            return;
        }
        let has_no_server = self.fleet.servers.len() == 1 || step.action.is_global();
        let server = if has_no_server { None } else { Some(self.fleet.servers[step.server].name) };
        let at = now().to_zoned(jiff::tz::TimeZone::UTC).strftime("%a %H:%M:%S").to_string();
        let named = server.map(|server| format!("{server}: ")).unwrap_or_default();
        self.lines.push(format!("{at}  > {named}{}", step.text));
        self.lines_by_server[step.server].push(format!("{at}  > {}", step.text));
        self.apply_step(step);
        self.fleet.notify_watches();
        self.fleet.record_state();
        self.collect_lines();
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "all other actions affect one server: `SimCluster::play_step` lists each"
    )]
    fn apply_step(&mut self, step: &Step) {
        let server = step.server;
        let injected = |crash| Fault::Injected(crash);
        match &step.action {
            ScriptAction::Expect(_) | ScriptAction::End => {}
            ScriptAction::Upstream(day) => self.release(&self.releases_of(day)),
            ScriptAction::Publish(day) => self.publish_unread(day),
            ScriptAction::ReadUpstreams => self.read_published(),
            ScriptAction::Plugin(project, spec) => self.change_plugin(project, spec),
            ScriptAction::DeletePlugin(project) => self.delete_plugin(project),
            ScriptAction::OperatorCrashes => self.fleet.inject(server, Fault::OperatorCrashes),
            ScriptAction::AnotherOperator => self.fleet.inject(server, Fault::SecondLeader),
            ScriptAction::RestartWithFence(fence) => {
                self.fleet.fence = fence.saturating_sub(1);
                self.fleet.inject(server, Fault::OperatorCrashes);
            }
            ScriptAction::UpgradeOperator(flags) => {
                self.fleet.flags.clone_from(flags);
                self.fleet.inject(server, Fault::OperatorCrashes);
            }
            ScriptAction::Drain => self.fleet.inject(server, injected(InjectedCrash::NodeDrained)),
            ScriptAction::Uncordon => self.fleet.inject(server, injected(InjectedCrash::NodeUncordoned)),
            ScriptAction::NodeLost => self.fleet.inject(server, injected(InjectedCrash::NodeLost)),
            ScriptAction::NodeReturns => self.fleet.inject(server, injected(InjectedCrash::NodeReturns)),
            _ => {
                let mut cluster = self.fleet.servers[server].handle.cluster();
                cluster.play_step(&step.action);
                cluster.has_changes = true;
            }
        }
        // The watch notifies every operator of the change.
        for operator in self.fleet.processes.iter_mut().flat_map(|process| &mut process.operators) {
            operator.requeue_at(now() + jiff::SignedDuration::from_secs(1));
        }
    }

    fn releases_of(&self, day: &str) -> Arc<Snapshot> {
        Releases::get().snapshot_of_day(day, &self.projects, now())
    }

    /// Upstreams publish the releases of this day that they did not list before.
    fn publish_unread(&mut self, day: &str) {
        let mut catalog = self.releases_of(day).catalog.clone();
        date_new_releases(&mut catalog, &self.fleet.snapshot().catalog);
        self.unread = Some(Arc::new(Snapshot::new(catalog, BTreeMap::new())));
    }

    fn read_published(&mut self) {
        if let Some(releases) = self.unread.take() {
            self.release(&releases);
        }
    }

    /// Operators read the upstreams as soon as a server requests it.
    fn serve_refreshes(&mut self) {
        let mut operators = self.fleet.processes.iter().flat_map(|process| &process.operators);
        if !operators.any(Operator::has_open_refresh) {
            return;
        }
        self.read_published();
        for process in &mut self.fleet.processes {
            for operator in &mut process.operators {
                operator.serve_refreshes();
                operator.requeue_at(now() + jiff::SignedDuration::from_secs(1));
            }
        }
    }

    fn release(&mut self, releases: &Arc<Snapshot>) {
        for server in &self.fleet.servers {
            let mut cluster = server.handle.cluster();
            cluster.scenario.new_catalog = Arc::clone(releases);
            cluster.invariants.started_with_newest = cluster.scenario.first_lock.get().is_none();
        }
        self.fleet.released = true;
        self.fleet.publish();
    }

    fn change_plugin(&mut self, project: &str, spec: &Value) {
        let is_project = |plugin: &crds::Plugin| plugin.metadata.name.as_deref() == Some(project);
        let position = self.fleet.plugins.iter().position(is_project);
        let mut all = json!({});
        if let Some(at) = position {
            let plugin = self.fleet.plugins.remove(at);
            all = serde_json::to_value(plugin.spec).expect("a spec");
        }
        json_patch::merge(&mut all, spec);
        let plugin = new_plugin(project, &all);
        self.fleet.plugins.push(plugin.clone());
        self.notify_plugin_watch(&Event::Apply(plugin));
    }

    fn delete_plugin(&mut self, project: &str) {
        let is_project = |plugin: &crds::Plugin| plugin.metadata.name.as_deref() == Some(project);
        if let Some(at) = self.fleet.plugins.iter().position(is_project) {
            let plugin = self.fleet.plugins.remove(at);
            self.notify_plugin_watch(&Event::Delete(plugin));
        }
    }

    fn notify_plugin_watch(&self, event: &Event<crds::Plugin>) {
        for operator in self.fleet.processes.iter().filter_map(|process| process.operators.first()) {
            operator.observe_plugin(event);
        }
    }

    fn finish(mut self) -> ScenarioResult {
        self.fleet.record_state();
        self.collect_lines();
        for server in &self.fleet.servers {
            let cluster = server.handle.cluster();
            let rule = |rule: &String| format!("{}: this must always hold, and does not: {rule}", server.name);
            self.failures.extend(cluster.violations.iter().map(rule));
        }
        let failures = self.failures.iter().map(|failure| format!("{}: {failure}", self.script_name)).collect();
        ScenarioResult { transcript: self.lines.join("\n"), failures }
    }
}

/// Dates all builds and releases that the other catalog does not have with the current time.
fn date_new_releases(catalog: &mut Catalog, known: &Catalog) {
    for version in &mut catalog.paper {
        let listed = known.paper.iter().find(|listed| listed.minecraft == version.minecraft);
        let is_listed = |number| listed.is_some_and(|listed| listed.builds.iter().any(|build| build.number == number));
        for build in version.builds.iter_mut().filter(|build| !is_listed(build.number)) {
            build.published = now();
        }
    }
    let listed: BTreeSet<&str> =
        known.projects.iter().flat_map(|project| &project.releases).map(|release| release.id.as_str()).collect();
    let releases = catalog.projects.iter_mut().flat_map(|project| &mut project.releases);
    for release in releases.filter(|release| !listed.contains(release.id.as_str())) {
        release.published = Some(now());
    }
}

/// The features of a spec that the invariants depend on.
fn extras(spec: &Value) -> BTreeSet<Extra> {
    let mut extras = BTreeSet::new();
    if !spec["updateSchedule"]["opportunistic"].is_null() {
        extras.insert(Extra::Opportunistic);
    }
    if spec["onCrashLoop"] == "Stop" {
        extras.insert(Extra::StopOnCrashLoop);
    }
    if spec["approval"] == "Required" {
        extras.insert(Extra::Approval);
    }
    extras
}

impl SimCluster {
    fn play_step(&mut self, action: &ScriptAction) {
        match action {
            ScriptAction::Join(players) => {
                self.players += players;
                (self.empty_since, self.played_since) = (None, Some(self.played_since.unwrap_or_else(now)));
                self.trace_if_scripted(format!("players: {} online", self.players));
                if self.pod.as_mut().is_some_and(|pod| pod.agent.cancel_for_players()) {
                    self.trace_if_scripted(
                        "players: are told that the restart is cancelled, since a player has joined",
                    );
                }
            }
            ScriptAction::Leave(players) => {
                self.players = players.map_or(0, |players| self.players.saturating_sub(players));
                if self.players == 0 {
                    self.clear_players();
                }
                self.trace_if_scripted(format!("players: {} online", self.players));
            }
            ScriptAction::Spec(spec) => self.change_spec(spec),
            ScriptAction::Annotate(name, value) => self.change_annotation(name, value.as_deref()),
            ScriptAction::DeleteServer => {
                let key = self.server_key();
                self.objects.remove(&key);
            }
            ScriptAction::FixCause => self.apply_user_action(UserAction::FixCause),
            ScriptAction::PutFile { path, needs, text } => self.put_file(path, needs.as_deref(), text.as_deref()),
            ScriptAction::OpenElsewhere(minecraft) => self.put_opened_worlds(minecraft),
            ScriptAction::OpenWorld => self.scripted.has_extra_world = true,
            ScriptAction::NoImage(is_missing) => self.scripted.is_image_missing = *is_missing,
            ScriptAction::Lack(lack) => self.set_lack(*lack),
            ScriptAction::DeletePod => self.inject(InjectedCrash::PodDeleted),
            ScriptAction::ForceDeletePod => self.inject(InjectedCrash::PodForceDeleted),
            ScriptAction::DeleteStatefulSet => self.inject(InjectedCrash::StatefulSetDeleted),
            ScriptAction::AgentCrashes => self.inject(InjectedCrash::AgentCrashes),
            ScriptAction::AgentUnreachable(duration) => self.silence_agent(*duration, false),
            ScriptAction::AgentHangs(duration) => self.silence_agent(*duration, true),
            ScriptAction::Crash => self.inject(InjectedCrash::ServerCrashes),
            ScriptAction::CrashLoop(duration) => self.crash_repeatedly(*duration),
            ScriptAction::Hang(duration) => self.hang(*duration),
            ScriptAction::StopInGame => self.stop_in_game(),
            ScriptAction::CrashAfter(lifetime, duration) => {
                self.scripted.crashes_after = Some((*lifetime, now() + *duration));
                self.inject(InjectedCrash::ServerCrashes);
            }
            ScriptAction::NoPing(duration) => {
                self.agent_observe();
                self.scripted.no_ping_until = Some(now() + *duration);
            }
            ScriptAction::VolumeFull(is_full) => self.scripted.is_volume_full = *is_full,
            ScriptAction::BackupRoom(room) => self.scripted.backup_room = *room,
            ScriptAction::NodeClock(clock_offset) => self.set_node_clock(*clock_offset),
            ScriptAction::Damage(line) => self.record_damage(line),
            ScriptAction::ChangeFile(path) => self.change_file(path),
            ScriptAction::DeleteFile(path) => {
                let _ = std::fs::remove_file(self.disks.data().join(path));
                self.scripted.jars.remove(path);
            }
            ScriptAction::ReplaceLock => self.replace_lock(),
            ScriptAction::LinkFile(path, target) => {
                let data = self.disks.data();
                let _ = std::fs::rename(data.join(path), data.join(format!("{path}.moved")));
                let path = data.join(path);
                std::os::unix::fs::symlink(target, &path).expect("a link on the volume");
            }
            ScriptAction::RefuseCommands(duration) => self.refuse_commands(*duration),
            ScriptAction::CreateObject(key, object) => {
                let mut object = object.clone();
                json_patch::merge(&mut object, &json!({"metadata": {"name": key.name}}));
                self.objects.create(&key.plural, object, now()).expect("the name is free");
            }
            ScriptAction::DeleteObject(key) => self.objects.remove(key),
            ScriptAction::Mark { key, field, name, value } => {
                let mark = json!({"metadata": {*field: {name: self.fill_in(value)}}});
                self.objects.change(key, now(), |object| json_patch::merge(object, &mark));
            }
            ScriptAction::Upstream(_)
            | ScriptAction::Publish(_)
            | ScriptAction::ReadUpstreams
            | ScriptAction::Plugin(..)
            | ScriptAction::DeletePlugin(_)
            | ScriptAction::OperatorCrashes
            | ScriptAction::AnotherOperator
            | ScriptAction::RestartWithFence(_)
            | ScriptAction::UpgradeOperator(_)
            | ScriptAction::Drain
            | ScriptAction::Uncordon
            | ScriptAction::NodeLost
            | ScriptAction::NodeReturns
            | ScriptAction::Expect(_)
            | ScriptAction::End => {}
        }
    }

    fn change_spec(&mut self, spec: &Value) {
        if let Some(suspend) = spec["suspend"].as_bool() {
            self.invariants.suspended_since = suspend.then(now);
        }
        let key = self.server_key();
        self.objects.change(&key, now(), |server| json_patch::merge(&mut server["spec"], spec));
    }

    /// Fills in values that a file cannot contain. `{now}` and `{now-10m}` are times in seconds. `{planned}`,
    /// `{planned:16}` and `{running}` are digests. `{uid}` is that of the server. `{backup 1}` is the name of the first backup.
    fn fill_in(&self, text: &str) -> String {
        let server = self.objects.get(&self.server_key()).cloned().unwrap_or_default();
        let planned = server["status"]["availableUpdate"]["digest"].as_str().unwrap_or_default().to_owned();
        let running = self.pod.as_ref().map(|pod| pod.files.lock.clone()).unwrap_or_default();
        let mut filled = String::new();
        for (at, part) in text.split(['{', '}']).enumerate() {
            if at % 2 == 0 {
                filled.push_str(part);
                continue;
            }
            let (name, rest) = part.split_at(part.find(['-', ':', ' ']).unwrap_or(part.len()));
            match (name, rest.get(1..).unwrap_or_default()) {
                ("now", "") => filled.push_str(&now().as_second().to_string()),
                ("now", ago) => {
                    let ago: jiff::SignedDuration =
                        ago.parse().unwrap_or_else(|_| panic!("`{ago}` is no length of time"));
                    filled.push_str(&(now() - ago).as_second().to_string());
                }
                ("planned", digits) => {
                    filled.push_str(&planned[..digits.parse().unwrap_or(planned.len()).min(planned.len())]);
                }
                ("running", _) => filled.push_str(&running),
                ("uid", _) => filled.push_str(server["metadata"]["uid"].as_str().unwrap_or_default()),
                ("backup", number) => filled.push_str(&self.backup_by_number(number.parse().unwrap_or(1))),
                _ => panic!(
                    "`{{{part}}}` is no placeholder: {{now}}, {{now-10m}}, {{planned}}, {{planned:16}}, {{running}}, {{uid}}, {{backup 1}}"
                ),
            }
        }
        filled
    }

    fn set_node_clock(&mut self, clock_offset: jiff::SignedDuration) {
        self.scenario.node_clock_offset = clock_offset;
        if let Some(pod) = &mut self.pod {
            pod.agent.set_clock_offset(clock_offset);
        }
    }

    fn change_file(&self, path: &str) {
        let file = self.disks.data().join(path);
        let mut content = std::fs::read(&file).unwrap_or_default();
        content.push(0);
        // Writes a new file, because the old one may be a hard link into the store.
        let _ = std::fs::remove_file(&file);
        std::fs::write(file, content).expect("a file on the volume");
    }

    /// [`Self::fill_in`] lists the placeholders that the value may contain.
    fn change_annotation(&mut self, name: &str, value: Option<&str>) {
        let name = format!("nightshift.dev/{name}");
        let value = value.map(|value| self.fill_in(value));
        if [APPLY_NOW, crds::annotations::APPLY, crds::annotations::ROLLBACK_TO].contains(&name.as_str()) {
            self.invariants.requested_until = Some(now() + REQUEST_VALID_FOR);
        }
        if name == crds::annotations::ROLLBACK_TO && value.is_some() {
            self.allow_repeated_updates();
        }
        if name == crds::annotations::APPROVE {
            self.invariants.approved.extend(value.clone());
        }
        if let Some((backup, "overwrite")) =
            value.as_deref().filter(|_| name == crds::annotations::RESTORE_FROM).and_then(|value| value.split_once(';'))
        {
            self.record_restore_request(backup);
        }
        let key = self.server_key();
        self.objects.change(&key, now(), |server| {
            let annotations = &mut server["metadata"]["annotations"];
            match value {
                Some(value) => annotations[&name] = json!(value),
                None => drop(annotations.as_object_mut().and_then(|annotations| annotations.remove(&name))),
            }
        });
    }

    /// Puts worlds on the volume that this Minecraft has opened on another machine.
    fn put_opened_worlds(&mut self, minecraft: &str) {
        let format = if minecraft == "1.21.11" { 4_671 } else { 4_556 };
        write_level_dats(&self.disks.data(), format, minecraft);
        self.record_last_worlds();
    }

    /// Writes a JAR if the path ends with `.jar`: its plugin has the name and the version of the file, as in
    /// `plugins/Shop-1.0.jar`.
    fn put_file(&mut self, path: &str, needs: Option<&str>, text: Option<&str>) {
        self.scripted.jars.insert(path.to_owned());
        let file = self.disks.data().join(path);
        let folder = file.parent().expect("a file is in a folder");
        std::fs::create_dir_all(folder).expect("a folder on the volume");
        let content = match file.file_stem().and_then(|stem| stem.to_str()?.split_once('-')) {
            Some((name, version)) if Path::new(path).extension().is_some_and(|extension| extension == "jar") => {
                let depend = needs.map(str::to_owned).into_iter().collect();
                let descriptor = fixtures::jar::PluginYml { depend, ..fixtures::jar::PluginYml::new(name, version) };
                fixtures::jar::plugin(&descriptor)
            }
            _ => text.map_or_else(|| b"by an admin\n".to_vec(), |text| text.replace("\\n", "\n").into_bytes()),
        };
        std::fs::write(file, content).expect("a file on the volume");
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

/// The files, by their names.
fn files() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder()).expect("the folder of scenario files") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "scenario") {
            let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a name").to_owned();
            found.insert(name, std::fs::read_to_string(&path).expect("a text"));
        }
    }
    found
}

/// Plays the selected files, on all cores.
fn play_all(filter: Option<&str>) -> Vec<(String, ScenarioResult)> {
    let all: Vec<_> =
        files().into_iter().filter(|(name, _)| filter.is_none_or(|filter| name.contains(filter))).collect();
    let (next, played) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((name, text)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = std::panic::catch_unwind(|| play(name, text)).unwrap_or_else(|_| ScenarioResult {
                transcript: String::new(),
                failures: vec![format!("{name}: it panicked, see above")],
            });
            played.lock().unwrap_or_else(PoisonError::into_inner).push((name.clone(), outcome));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut played = played.into_inner().unwrap_or_else(PoisonError::into_inner);
    played.sort_by(|(one, _), (other, _)| one.cmp(other));
    played
}

#[test]
fn scenario_files_match_their_transcripts() {
    let filter = std::env::var("NIGHTSHIFT_SCENARIO").ok();
    let played = play_all(filter.as_deref());
    assert!(!played.is_empty(), "there is no scenario file of that name");
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder().join("transcripts"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let mut failures = Vec::new();
    for (name, ScenarioResult { transcript, failures: unexpected }) in played {
        if filter.is_some() {
            println!("{transcript}\n");
        }
        failures.extend(unexpected);
        let compare = || settings.bind(|| insta::assert_snapshot!(name.as_str(), transcript));
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(compare)).is_err() {
            failures.push(format!("{name}: its transcript differs (above)"));
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn wrong_scenario_file_is_refused_with_its_line() {
    let head = "upstream: 2026-01-10\nserver lobby: {}\n";
    let error_of = |line: &str| Script::parse(&format!("{head}{line}\n")).map(|_| ()).unwrap_err();
    assert!(error_of("03:00 the sun rises").starts_with("line 3: `03:00 the sun rises`: nothing of that kind"));
    assert!(error_of("3 o'clock end").contains("is no time as 03:00"));
    assert!(error_of("03:00 server hangs for long").contains("is no length of time"));
    assert!(error_of("03:00 3 players join").contains("has no `end`"));
    assert!(Script::parse("upstream: 2026-01-10\n03:00 end\n").unwrap_err().contains("has no server"));
}
