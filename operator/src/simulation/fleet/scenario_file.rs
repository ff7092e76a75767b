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

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use fixtures::dice::Rng;
use jiff::Timestamp;
use kube::runtime::watcher::Event;
use serde_json::{Value, json};

use self::script::{BEGINS, Script, Step, What};
use self::transcript::{Names, line};
use super::Fleet;
use super::scenario::FleetScenario;
use crate::clock::now;
use crate::clock::simulated;
use crate::k8s::labels::APPLY_NOW;
use crate::simulation::catalog::Releases;
use crate::simulation::cluster::SimCluster;
use crate::simulation::faults::{Fault, InjectedCrash};
use crate::simulation::operator_process::{Bounds, plugin_of};
use crate::simulation::scenario::{Extra, Scenario, ServerIndex};
use crate::simulation::user_actions::{ASKED_FOR, UserAction};
use crate::simulation::world_layout::write_level_dats;
use crate::simulation::{address, on_this_thread};

/// Upper limit of the events between two steps of a script.
const MOST_EVENTS: u32 = 100_000;
/// Always read: other plugins depend on the first, and the second depends on it.
const USUAL_PROJECTS: [&str; 2] = ["viabackwards", "viaversion"];

/// The result of a scenario file.
struct Played {
    transcript: String,
    /// Failed expectations.
    wrong: Vec<String>,
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
    lines_of: Vec<Vec<String>>,
    wrong: Vec<String>,
}

fn play(name: &str, text: &str) -> Played {
    let script = match Script::parse(text) {
        Ok(script) => script,
        Err(why) => return Played { transcript: String::new(), wrong: vec![why] },
    };
    let addresses: Vec<Ipv4Addr> = script.servers.iter().map(|_| address()).collect();
    on_this_thread(async {
        let begins: Timestamp = BEGINS.parse().expect("a time");
        let _clocks = simulated::start(begins);
        let mut player = Player::begin(name, &script, &addresses).await;
        for step in &script.steps {
            player.advance(step.at).await;
            if step.when.is_some() {
                player.waiting.push((step, player.lines_of[step.server].len()));
            } else {
                player.take(step);
            }
        }
        player.end()
    })
}

impl<'s> Player<'s> {
    async fn begin(name: &str, script: &'s Script, addresses: &[Ipv4Addr]) -> Self {
        let mut projects: Vec<String> = USUAL_PROJECTS.map(str::to_owned).into();
        projects.extend(script.plugins.keys().cloned());
        projects.sort();
        projects.dedup();
        let releases = Releases::get().of_day(&script.upstream, &projects, now());
        let scenarios = script.servers.iter().zip(addresses).enumerate().map(|(at, (server, address))| {
            let seat = ServerIndex {
                name: server.name.clone().leak(),
                number: u32::try_from(at).expect("a few servers"),
                node: server.node,
                follows: None,
            };
            Scenario {
                seat,
                fate: script.fate,
                fates: if server.fates.is_empty() { script.fates.clone() } else { server.fates.clone() },
                ping: server.ping,
                extras: extras(&server.spec),
                has_rules: script.has_rules,
                script: Some(server.spec.clone()),
                ..Scenario::plain(&releases, *address)
            }
        });
        let bounds = Bounds { together: script.updates_at_once, on_a_node: script.updates_at_once_on_a_node };
        let scene =
            FleetScenario { scenarios: scenarios.collect(), bounds, faults: Vec::new(), released_at: Timestamp::MAX };
        let servers = script.servers.len();
        let mut fleet = Fleet::begin(scene, Rng::new(1)).await;
        fleet.flags.clone_from(&script.flags);
        fleet.plugins = script.plugins.iter().map(|(project, spec)| plugin_of(project, spec)).collect();
        Self {
            fleet,
            waiting: Vec::new(),
            script_name: name.to_owned(),
            projects,
            names: Names::new(),
            lines: Vec::new(),
            lines_of: vec![Vec::new(); servers],
            wrong: Vec::new(),
        }
    }

    /// Lets time pass until then.
    async fn advance(&mut self, until: Timestamp) {
        let mut events = 0;
        while events < MOST_EVENTS {
            let next = self.fleet.next();
            if next > until {
                simulated::pass_until(until);
                return;
            }
            events += 1;
            simulated::pass_until(next);
            self.fleet.happen().await;
            self.fleet.spread_news();
            self.fleet.note();
            self.collect();
            self.trigger();
        }
        self.wrong.push(format!("nothing comes to rest before {until}: {MOST_EVENTS} events"));
    }

    /// Carries out the steps whose line has appeared.
    fn trigger(&mut self) {
        let lines_of = &self.lines_of;
        let is_due = |(step, from): &mut (&Step, usize)| {
            let when = step.when.as_deref().unwrap_or_default();
            lines_of[step.server][*from..].iter().any(|line| line.contains(when))
        };
        let due: Vec<_> = self.waiting.extract_if(.., is_due).collect();
        for (step, _) in due {
            self.take(step);
        }
    }

    /// Adds the events since the last call to the transcript.
    fn collect(&mut self) {
        let story = std::mem::take(&mut self.fleet.story);
        let many = self.fleet.servers.len() > 1;
        for told in story {
            let Some((server, rest)) = told.split_once(": ") else { continue };
            let Some(at) = self.fleet.servers.iter().position(|of| of.name == server) else { continue };
            let Some((time, text)) = rest.split_once(' ') else { continue };
            let time: Timestamp = time.parse().expect("a line of the story begins with its time");
            let text = self.names.put_into(text, &self.fleet.servers[at].shared.world());
            let is_repeated = |lines: &Vec<String>, line: &String| lines.last() == Some(line);
            let of_server = line(time, None, &text);
            if !is_repeated(&self.lines_of[at], &of_server) {
                self.lines.push(if many { line(time, Some(server), &text) } else { of_server.clone() });
                self.lines_of[at].push(of_server);
            }
        }
    }

    fn take(&mut self, step: &Step) {
        if let What::Expect(expect) = &step.what {
            let found = {
                let world = self.fleet.servers[step.server].shared.world();
                expect.held_against(&world, &self.lines_of[step.server])
            };
            if let Some(found) = found {
                self.wrong.push(format!("line {} (`{}`): {found}", step.line, step.text));
            }
            return;
        }
        let of_nobody = self.fleet.servers.len() == 1 || step.what.is_of_no_server();
        let server = if of_nobody { None } else { Some(self.fleet.servers[step.server].name) };
        let at = now().to_zoned(jiff::tz::TimeZone::UTC).strftime("%a %H:%M:%S").to_string();
        let named = server.map(|server| format!("{server}: ")).unwrap_or_default();
        self.lines.push(format!("{at}  > {named}{}", step.text));
        self.lines_of[step.server].push(format!("{at}  > {}", step.text));
        self.act(step);
        self.fleet.spread_news();
        self.fleet.note();
        self.collect();
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "all else happens to the server itself: `SimCluster::play_step` names each"
    )]
    fn act(&mut self, step: &Step) {
        let server = step.server;
        let strike = |blow| Fault::World(blow);
        match &step.what {
            What::Expect(_) | What::End => {}
            What::Upstream(day) => self.release(day),
            What::Plugin(project, spec) => self.change_plugin(project, spec),
            What::DeletePlugin(project) => self.delete_plugin(project),
            What::OperatorDies => self.fleet.strike(server, Fault::OperatorDies),
            What::AnotherOperator => self.fleet.strike(server, Fault::AnotherLeads),
            What::Drain => self.fleet.strike(server, strike(InjectedCrash::NodeDrained)),
            What::Uncordon => self.fleet.strike(server, strike(InjectedCrash::NodeUncordoned)),
            What::NodeLost => self.fleet.strike(server, strike(InjectedCrash::NodeLost)),
            What::NodeReturns => self.fleet.strike(server, strike(InjectedCrash::NodeFound)),
            _ => {
                let mut world = self.fleet.servers[server].shared.world();
                world.play_step(&step.what);
                world.news = true;
            }
        }
        // The watch notifies every operator of the change.
        for operator in self.fleet.processes.iter_mut().flat_map(|process| &mut process.operators) {
            operator.hears(now() + jiff::SignedDuration::from_secs(1));
        }
    }

    fn release(&mut self, day: &str) {
        let releases = Releases::get().of_day(day, &self.projects, now());
        for server in &self.fleet.servers {
            let mut world = server.shared.world();
            world.scenario.after = releases.clone();
            world.ledger.began_with_the_newest = world.scenario.first.get().is_none();
        }
        self.fleet.released = true;
        self.fleet.publish();
    }

    fn change_plugin(&mut self, project: &str, spec: &Value) {
        let of = |plugin: &crds::Plugin| plugin.metadata.name.as_deref() == Some(project);
        let known = self.fleet.plugins.iter().position(of);
        let mut all = json!({});
        if let Some(at) = known {
            let plugin = self.fleet.plugins.remove(at);
            all = serde_json::to_value(plugin.spec).expect("a spec");
        }
        json_patch::merge(&mut all, spec);
        let plugin = plugin_of(project, &all);
        self.fleet.plugins.push(plugin.clone());
        self.see(&Event::Apply(plugin));
    }

    fn delete_plugin(&mut self, project: &str) {
        let of = |plugin: &crds::Plugin| plugin.metadata.name.as_deref() == Some(project);
        if let Some(at) = self.fleet.plugins.iter().position(of) {
            let plugin = self.fleet.plugins.remove(at);
            self.see(&Event::Delete(plugin));
        }
    }

    fn see(&self, event: &Event<crds::Plugin>) {
        for operator in self.fleet.processes.iter().filter_map(|process| process.operators.first()) {
            operator.sees_plugin(event);
        }
    }

    fn end(mut self) -> Played {
        self.fleet.note();
        self.collect();
        for server in &self.fleet.servers {
            let world = server.shared.world();
            let rule = |rule: &String| format!("{}: this must always hold, and does not: {rule}", server.name);
            self.wrong.extend(world.broken.iter().map(rule));
        }
        let wrong = self.wrong.iter().map(|wrong| format!("{}: {wrong}", self.script_name)).collect();
        Played { transcript: self.lines.join("\n"), wrong }
    }
}

/// The features of a spec that the invariants depend on.
fn extras(spec: &Value) -> std::collections::BTreeSet<Extra> {
    let mut extras = std::collections::BTreeSet::new();
    if !spec["updateSchedule"]["opportunistic"].is_null() {
        extras.insert(Extra::Opportunistic);
    }
    if spec["onCrashLoop"] == "Stop" {
        extras.insert(Extra::StopInALoop);
    }
    if spec["approval"] == "Required" {
        extras.insert(Extra::Approval);
    }
    extras
}

impl SimCluster {
    fn play_step(&mut self, what: &What) {
        match what {
            What::Join(players) => {
                self.players += players;
                (self.empty_since, self.played_since) = (None, Some(self.played_since.unwrap_or_else(now)));
                self.relate(format!("players: {} online", self.players));
                if self.pod.as_mut().is_some_and(|pod| pod.agent.cancels_for_players()) {
                    self.relate("players: are told that the restart is called off, since somebody has joined");
                }
            }
            What::Leave(players) => {
                self.players = players.map_or(0, |players| self.players.saturating_sub(players));
                if self.players == 0 {
                    self.nobody_is_on();
                }
                self.relate(format!("players: {} online", self.players));
            }
            What::Spec(spec) => self.change_spec(spec),
            What::Annotate(name, value) => self.change_annotation(name, value.as_deref()),
            What::DeleteServer => {
                let key = self.key_of_server();
                self.objects.remove(&key);
            }
            What::Mend => self.write(UserAction::Mend),
            What::PutFile { path, needs, text } => self.put_file(path, needs.as_deref(), text.as_deref()),
            What::OpenElsewhere(minecraft) => self.open_elsewhere(minecraft),
            What::OpenWorld => self.by_script.has_another_world = true,
            What::NoImage(is_missing) => self.by_script.is_image_missing = *is_missing,
            What::DeletePod => self.strike(InjectedCrash::PodDeleted),
            What::ForceDeletePod => self.strike(InjectedCrash::PodForced),
            What::DeleteSet => self.strike(InjectedCrash::SetDeleted),
            What::AgentDies => self.strike(InjectedCrash::AgentDies),
            What::AgentUnreachable(takes) => self.silence_agent(*takes, false),
            What::AgentHangs(takes) => self.silence_agent(*takes, true),
            What::Crash => self.strike(InjectedCrash::ServerCrashes),
            What::CrashOn(takes) => self.crash_on(*takes),
            What::Hang(takes) => self.hang(*takes),
            What::StopInGame => self.stop_in_game(),
            What::CrashAfter(lives, lasts) => {
                self.by_script.dies_after = Some((*lives, now() + *lasts));
                self.strike(InjectedCrash::ServerCrashes);
            }
            What::NoPing(lasts) => self.by_script.no_ping_until = Some(now() + *lasts),
            What::VolumeFull(is_full) => self.by_script.is_full = *is_full,
            What::NodeClock(ahead) => self.put_clock(*ahead),
            What::Damage(line) => self.tell_of_damage(line),
            What::ChangeFile(path) => self.change_file(path),
            What::DeleteFile(path) => {
                let _ = std::fs::remove_file(self.disks.data().join(path));
                self.by_script.jars.remove(path);
            }
            What::RefuseCommands(takes) => self.refuse_commands(*takes),
            What::Upstream(_)
            | What::Plugin(..)
            | What::DeletePlugin(_)
            | What::OperatorDies
            | What::AnotherOperator
            | What::Drain
            | What::Uncordon
            | What::NodeLost
            | What::NodeReturns
            | What::Expect(_)
            | What::End => {}
        }
    }

    fn change_spec(&mut self, spec: &Value) {
        if let Some(suspend) = spec["suspend"].as_bool() {
            self.ledger.suspended_since = suspend.then(now);
        }
        let key = self.key_of_server();
        self.objects.change(&key, now(), |server| json_patch::merge(&mut server["spec"], spec));
    }

    /// Fills in values that a file cannot contain. `{now}` and `{now-10m}` are times in seconds. `{planned}`,
    /// `{planned:16}` and `{running}` are digests. `{backup 1}` is the name of the first backup.
    fn fill_in(&self, text: &str) -> String {
        let server = self.objects.get(&self.key_of_server()).cloned().unwrap_or_default();
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
                ("backup", number) => filled.push_str(&self.backup_numbered(number.parse().unwrap_or(1))),
                _ => panic!(
                    "`{{{part}}}` stands for nothing: {{now}}, {{now-10m}}, {{planned}}, {{planned:16}}, {{running}}, {{backup 1}}"
                ),
            }
        }
        filled
    }

    fn put_clock(&mut self, ahead: jiff::SignedDuration) {
        self.scenario.node_ahead = ahead;
        if let Some(pod) = &mut self.pod {
            pod.agent.set_ahead(ahead);
        }
    }

    fn change_file(&self, path: &str) {
        let place = self.disks.data().join(path);
        let mut content = std::fs::read(&place).unwrap_or_default();
        content.push(0);
        // Writes a new file, because the old one may be a hard link into the store.
        let _ = std::fs::remove_file(&place);
        std::fs::write(place, content).expect("a file on the volume");
    }

    /// [`Self::fill_in`] lists the placeholders that the value may contain.
    fn change_annotation(&mut self, name: &str, value: Option<&str>) {
        let name = format!("nightshift.dev/{name}");
        let value = value.map(|value| self.fill_in(value));
        if [APPLY_NOW, crds::annotations::APPLY, crds::annotations::ROLLBACK_TO].contains(&name.as_str()) {
            self.ledger.asked_until = Some(now() + ASKED_FOR);
        }
        if name == crds::annotations::ROLLBACK_TO && value.is_some() {
            self.note_taken_back();
        }
        if name == crds::annotations::APPROVE {
            self.ledger.approved.extend(value.clone());
        }
        if let Some((backup, "overwrite")) =
            value.as_deref().filter(|_| name == crds::annotations::RESTORE_FROM).and_then(|value| value.split_once(';'))
        {
            self.note_asked(backup);
        }
        let key = self.key_of_server();
        self.objects.change(&key, now(), |server| {
            let annotations = &mut server["metadata"]["annotations"];
            match value {
                Some(value) => annotations[&name] = json!(value),
                None => drop(annotations.as_object_mut().and_then(|annotations| annotations.remove(&name))),
            }
        });
    }

    /// Puts worlds on the volume that this Minecraft has opened on another machine.
    fn open_elsewhere(&mut self, minecraft: &str) {
        let format = if minecraft == "1.21.11" { 4_671 } else { 4_556 };
        write_level_dats(&self.disks.data(), format, minecraft);
        self.note_left();
    }

    /// Writes a JAR if the path ends with `.jar`: its plugin has the name and the version of the file, as in
    /// `plugins/Shop-1.0.jar`.
    fn put_file(&mut self, path: &str, needs: Option<&str>, text: Option<&str>) {
        self.by_script.jars.insert(path.to_owned());
        let place = self.disks.data().join(path);
        let folder = place.parent().expect("a file is in a folder");
        std::fs::create_dir_all(folder).expect("a folder on the volume");
        let content = match place.file_stem().and_then(|stem| stem.to_str()?.split_once('-')) {
            Some((name, version)) if Path::new(path).extension().is_some_and(|extension| extension == "jar") => {
                let depend = needs.map(str::to_owned).into_iter().collect();
                let descriptor = fixtures::jar::PluginYml { depend, ..fixtures::jar::PluginYml::new(name, version) };
                fixtures::jar::plugin(&descriptor)
            }
            _ => text.map_or_else(|| b"by an admin\n".to_vec(), |text| text.replace("\\n", "\n").into_bytes()),
        };
        std::fs::write(place, content).expect("a file on the volume");
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
fn play_all(asked: Option<&str>) -> Vec<(String, Played)> {
    let all: Vec<_> = files().into_iter().filter(|(name, _)| asked.is_none_or(|asked| name.contains(asked))).collect();
    let (next, played) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((name, text)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = std::panic::catch_unwind(|| play(name, text)).unwrap_or_else(|_| Played {
                transcript: String::new(),
                wrong: vec![format!("{name}: it panicked, see above")],
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
    let asked = std::env::var("NIGHTSHIFT_SCENARIO").ok();
    let played = play_all(asked.as_deref());
    assert!(!played.is_empty(), "there is no scenario file of that name");
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder().join("transcripts"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let mut wrong = Vec::new();
    for (name, Played { transcript, wrong: unexpected }) in played {
        if asked.is_some() {
            println!("{transcript}\n");
        }
        wrong.extend(unexpected);
        let compare = || settings.bind(|| insta::assert_snapshot!(name.as_str(), transcript));
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(compare)).is_err() {
            wrong.push(format!("{name}: its transcript differs (above)"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn wrong_scenario_file_is_refused_with_its_line() {
    let head = "upstream: 2026-01-10\nserver lobby: {}\n";
    let of = |line: &str| Script::parse(&format!("{head}{line}\n")).map(|_| ()).unwrap_err();
    assert!(of("03:00 the sun rises").starts_with("line 3: `03:00 the sun rises`: nothing of that kind"));
    assert!(of("3 o'clock end").contains("is no time as 03:00"));
    assert!(of("03:00 server hangs for long").contains("is no length of time"));
    assert!(of("03:00 3 players join").contains("has no `end`"));
    assert!(Script::parse("upstream: 2026-01-10\n03:00 end\n").unwrap_err().contains("has no server"));
}
