//! Pure. Parses scenario files: a head in YAML, and a timeline of the actions of users, players, upstreams and faults.
//!
//! `operator/scenarios/README.md` explains the language.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::expect::Expect;
use crate::server::observe::pending::Lack;
use crate::simulation::objects::Key;
use crate::simulation::scenario::{Ping, SetBehaviour};

/// The start of every scenario: a Sunday, later than all files on the disk of any machine that plays it.
pub(super) const START_TIME: &str = "2030-01-06T00:00:00Z";

/// A parsed scenario file.
#[derive(Debug)]
pub(super) struct Script {
    /// The day whose releases upstreams list at the start.
    pub(super) upstream: String,
    pub(super) servers: Vec<ServerScript>,
    /// The spec of each Plugin, by its project.
    pub(super) plugins: BTreeMap<String, Value>,
    /// The behaviour of every version set except the first.
    pub(super) behaviour: SetBehaviour,
    /// The behaviour of version sets with this JAR or this Minecraft. All others work.
    pub(super) behaviours: Vec<(String, SetBehaviour)>,
    /// Flags of the operator: `--start-seconds=600`.
    pub(super) flags: Vec<String>,
    pub(super) max_updates: u16,
    pub(super) max_updates_per_node: u16,
    /// Whether the invariants of the random runs are checked here too. They support the default windows only.
    pub(super) checks_invariants: bool,
    pub(super) steps: Vec<Step>,
}

/// A server of the scenario.
#[derive(Debug)]
pub(super) struct ServerScript {
    pub(super) name: String,
    /// Merged into the default spec.
    pub(super) spec: Value,
    pub(super) node: u32,
    pub(super) ping: Ping,
    /// The behaviour of version sets on this server, if it differs from the head.
    pub(super) behaviours: Vec<(String, SetBehaviour)>,
}

/// One line of the timeline.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) line: usize,
    pub(super) at: Timestamp,
    /// The text of the line.
    pub(super) text: String,
    /// The index of its server, or 0 if the line names none.
    pub(super) server: usize,
    /// If set, the step waits for a new line of the transcript with this text, and happens once.
    pub(super) trigger: Option<String>,
    pub(super) action: ScriptAction,
}

/// An action.
#[derive(Debug)]
pub(super) enum ScriptAction {
    /// From now on upstreams list the releases of this day.
    Upstream(String),
    /// Upstreams publish the releases of this day at this time. No operator has read them yet.
    Publish(String),
    /// Operators read what was published.
    ReadUpstreams,
    Join(u32),
    Leave(Option<u32>),
    /// A user changes the spec.
    Spec(Value),
    /// A user writes an annotation, or removes it.
    Annotate(String, Option<String>),
    Plugin(String, Value),
    DeletePlugin(String),
    DeleteServer,
    /// The cause of failures is fixed, and the template changes.
    FixCause,
    /// A file on the volume: a JAR may need another plugin. Any other file may have a text.
    PutFile {
        path: String,
        needs: Option<String>,
        text: Option<String>,
    },
    /// The worlds on the volume were opened by this Minecraft elsewhere.
    OpenElsewhere(String),
    /// From now on each start opens a world and enables a datapack of the admin.
    OpenWorld,
    /// New images cannot be pulled, or can again.
    NoImage(bool),
    /// The cluster cannot run new pods, or can again.
    Lack(Option<Lack>),
    DeletePod,
    ForceDeletePod,
    DeleteStatefulSet,
    Drain,
    Uncordon,
    OperatorCrashes,
    AnotherOperator,
    /// The same, and the Lease then has this number of takeovers.
    RestartWithFence(u64),
    /// A process with these flags replaces the running one.
    UpgradeOperator(Vec<String>),
    AgentCrashes,
    AgentUnreachable(SignedDuration),
    AgentHangs(SignedDuration),
    Crash,
    CrashLoop(SignedDuration),
    Hang(SignedDuration),
    RefuseCommands(SignedDuration),
    NodeLost,
    NodeReturns,
    /// `/stop` in the game.
    StopInGame,
    /// Each process dies after running for the first time, until the second time has passed.
    CrashAfter(SignedDuration, SignedDuration),
    NoPing(SignedDuration),
    VolumeFull(bool),
    /// The bytes that a backup may use. `None`: enough.
    BackupRoom(Option<u64>),
    NodeClock(SignedDuration),
    Damage(String),
    /// A byte is added to a file on the volume.
    ChangeFile(String),
    DeleteFile(String),
    /// Somebody who may write `ConfigMap`s replaces the lock of the running pod.
    ReplaceLock,
    /// Another team creates an object, by its plural and its name.
    CreateObject(Key, Value),
    DeleteObject(Key),
    /// Its team writes `labels` or `annotations` of an object.
    Mark {
        key: Key,
        field: &'static str,
        name: String,
        value: String,
    },
    /// A path on the volume becomes a link to another one.
    LinkFile(String, String),
    Expect(Expect),
    End,
}

impl Script {
    /// Reads a scenario file.
    ///
    /// # Errors
    /// The line, its error, and the accepted forms.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let is_time = |line: &&str| line.as_bytes().first().is_some_and(u8::is_ascii_digit);
        let head_lines = text.lines().take_while(|line| !is_time(line)).count();
        let head = text.lines().take(head_lines).collect::<Vec<_>>().join("\n");
        let mut script = Self::parse_head(&head)?;
        let names: Vec<String> = script.servers.iter().map(|server| server.name.clone()).collect();
        let mut at: Timestamp = START_TIME.parse().map_err(|error| format!("{error}"))?;
        for (number, line) in text.lines().enumerate().skip(head_lines) {
            let content = line.split(" # ").next().unwrap_or_default().trim();
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let line_error = |error: String| format!("line {}: `{content}`: {error}", number + 1);
            let rest = if is_time(&line) {
                let (time, rest) = content.split_once(' ').unwrap_or((content, ""));
                at = next_time(at, time).map_err(line_error)?;
                rest.trim()
            } else {
                content
            };
            let addressed = rest
                .split_once(": ")
                .and_then(|(name, rest)| Some((names.iter().position(|server_name| server_name == name)?, rest)));
            let (server, text) = addressed.unwrap_or((0, rest));
            let (trigger, text) = match text.strip_prefix("when \"").and_then(|rest| rest.split_once("\": ")) {
                Some((trigger, text)) => (Some(trigger.to_owned()), text),
                None => (None, text),
            };
            let action = ScriptAction::parse(text).map_err(line_error)?;
            script.steps.push(Step { line: number + 1, at, text: text.to_owned(), server, trigger, action });
        }
        if !script.steps.last().is_some_and(|step| matches!(step.action, ScriptAction::End)) {
            return Err(
                "the timeline has no `end`: write the time at which the scenario is over, as `05:00 end`".to_owned()
            );
        }
        Ok(script)
    }

    fn parse_head(head: &str) -> Result<Self, String> {
        let fields: Map<String, Value> =
            serde_saphyr::from_str(head).map_err(|error| format!("the head is no YAML mapping: {error}"))?;
        let mut script = Self {
            upstream: String::new(),
            servers: Vec::new(),
            plugins: BTreeMap::new(),
            behaviour: SetBehaviour::Good,
            behaviours: Vec::new(),
            flags: Vec::new(),
            max_updates: 0,
            max_updates_per_node: 0,
            checks_invariants: true,
            steps: Vec::new(),
        };
        for (field, value) in fields {
            script.set_field(&field, value).map_err(|error| format!("head: `{field}`: {error}"))?;
        }
        if script.servers.is_empty() {
            return Err("the head has no server: write `server lobby: {}`".to_owned());
        }
        if script.upstream.is_empty() {
            return Err("the head does not say what upstreams list: write `upstream: 2026-01-10`".to_owned());
        }
        Ok(script)
    }

    fn set_field(&mut self, field: &str, value: Value) -> Result<(), String> {
        let text = || value.as_str().map(str::to_owned).ok_or("is no text");
        let number = || value.as_u64().and_then(|number| u16::try_from(number).ok()).ok_or("is no small number");
        match field.split_once(' ') {
            Some(("server", name)) => self.servers.push(ServerScript::new(name, value)?),
            Some(("update", part)) => {
                self.behaviours.push((part.trim_start_matches("to ").to_owned(), parse_behaviour(&text()?)?));
            }
            Some(("operator", "flags")) => self.flags = parse_flags(&text()?),
            Some(("plugin", project)) => drop(self.plugins.insert(project.to_owned(), or_empty(value))),
            _ => match field {
                "upstream" => self.upstream = text()?,
                "update" => self.behaviour = parse_behaviour(&text()?)?,
                "rules" => self.checks_invariants = value != json!(false) && value != "off",
                "updates at once" => self.max_updates = number()?,
                "updates at once on a node" => self.max_updates_per_node = number()?,
                _ => {
                    return Err(
                        "is no field of the head: server NAME, plugin PROJECT, upstream, update, update to PART, \
                                rules, operator flags, updates at once, updates at once on a node"
                            .to_owned(),
                    );
                }
            },
        }
        Ok(())
    }
}

impl ServerScript {
    fn new(name: &str, value: Value) -> Result<Self, String> {
        let mut spec = or_empty(value);
        let fields = spec.as_object_mut().ok_or("is no mapping of spec fields")?;
        let node = fields.remove("on node").and_then(|node| node.as_u64()).unwrap_or(0);
        let ping = match fields.remove("ping").as_ref().and_then(Value::as_str) {
            None | Some("counts players") => Ping::ReportsCount,
            Some("hides players") => Ping::HidesCount,
            Some("says nobody") => Ping::ReportsZero,
            Some(other) => {
                return Err(format!("`ping: {other}` is not one of: counts players, hides players, says nobody"));
            }
        };
        // The two replacements of a lost node have the numbers between.
        let node = u32::try_from(node).map_err(|_| "`on node` is no small number")? * 10;
        let mut behaviours = Vec::new();
        for field in update_fields(&spec) {
            let value = spec.as_object_mut().and_then(|fields| fields.remove(&field)).unwrap_or_default();
            let part = field.trim_start_matches("update to ").to_owned();
            behaviours.push((part, parse_behaviour(value.as_str().unwrap_or_default())?));
        }
        Ok(Self { name: name.to_owned(), spec, node, ping, behaviours })
    }
}

fn update_fields(spec: &Value) -> Vec<String> {
    let fields = spec.as_object().into_iter().flatten().map(|(field, _)| field.clone());
    fields.filter(|field| field.starts_with("update to ")).collect()
}

fn or_empty(value: Value) -> Value {
    if value.is_null() { json!({}) } else { value }
}

fn parse_behaviour(text: &str) -> Result<SetBehaviour, String> {
    Ok(match text {
        "works" => SetBehaviour::Good,
        "crashes while it starts" => SetBehaviour::CrashesAtStart,
        "never finishes its start" => SetBehaviour::NeverReady,
        "does not enable ViaVersion" => SetBehaviour::PluginDisabled,
        "crashes after minutes" => SetBehaviour::CrashesLater,
        "does not open world creative and datapack file/skylands" => SetBehaviour::LosesWorld,
        _ => {
            let duration = text.strip_prefix("moves the worlds for ").ok_or(
                "is not one of: works, crashes while it starts, never finishes its start, does not enable ViaVersion, \
                 crashes after minutes, moves the worlds for 2h, does not open world creative and datapack file/skylands",
            )?;
            SetBehaviour::MigratesFor(parse_duration(duration)?)
        }
    })
}

/// `03:00` or `03:00:30`: the next such time, which is on the next day if it has passed. `+1d 03:00` is not supported.
/// Write `00:00` lines between instead.
fn next_time(after: Timestamp, text: &str) -> Result<Timestamp, String> {
    let mut parts = text.split(':').map(str::parse::<i64>);
    let (Some(Ok(hours)), Some(Ok(minutes)), seconds) = (parts.next(), parts.next(), parts.next()) else {
        return Err(format!("`{text}` is no time as 03:00 or 03:00:30"));
    };
    let seconds = seconds.transpose().map_err(|_| format!("`{text}` is no time as 03:00 or 03:00:30"))?.unwrap_or(0);
    let midnight = after.as_second().div_euclid(86_400) * 86_400;
    let mut second = midnight + hours * 3_600 + minutes * 60 + seconds;
    if second < after.as_second() {
        second += 86_400;
    }
    Timestamp::from_second(second).map_err(|error| error.to_string())
}

fn parse_duration(text: &str) -> Result<SignedDuration, String> {
    text.trim().parse().map_err(|_| format!("`{text}` is no length of time as 90s, 10m or 2h"))
}

fn parse_flags(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn parse_yaml(text: &str) -> Result<Value, String> {
    serde_saphyr::from_str(text).map_err(|error| format!("`{text}` is no YAML: {error}"))
}

impl ScriptAction {
    /// Whether it is the same for all servers.
    pub(super) const fn is_global(&self) -> bool {
        matches!(
            self,
            Self::Upstream(_)
                | Self::Publish(_)
                | Self::ReadUpstreams
                | Self::Plugin(..)
                | Self::DeletePlugin(_)
                | Self::OperatorCrashes
                | Self::AnotherOperator
                | Self::RestartWithFence(_)
                | Self::UpgradeOperator(_)
                | Self::NoImage(_)
                | Self::End
        )
    }

    fn parse(text: &str) -> Result<Self, String> {
        if let Some(rest) = text.strip_prefix("expect ") {
            return Expect::parse(rest).map(Self::Expect);
        }
        if let Some(day) = text.strip_prefix("upstream lists ") {
            return Ok(Self::Upstream(day.to_owned()));
        }
        if let Some(day) = text.strip_prefix("upstream publishes ") {
            return Ok(Self::Publish(day.to_owned()));
        }
        if let Some(fence) = text.strip_prefix("operator restarts with fence ") {
            let fence = fence.parse().map_err(|_| format!("`{fence}` is no fence: write a number"))?;
            return Ok(Self::RestartWithFence(fence));
        }
        if let Some(flags) = text.strip_prefix("operator is upgraded to ") {
            return Ok(Self::UpgradeOperator(parse_flags(flags)));
        }
        if let Some(rest) = text.strip_prefix("admin ") {
            return Self::parse_admin(rest);
        }
        if let Some(rest) = text.strip_prefix("team ") {
            return Self::parse_team(rest);
        }
        if let Some(players) = text.strip_suffix(" join").or_else(|| text.strip_suffix(" joins")) {
            return parse_player_count(players).map(Self::Join);
        }
        if let Some(players) = text.strip_suffix(" leave").or_else(|| text.strip_suffix(" leaves")) {
            return Ok(Self::Leave(if players == "all players" { None } else { Some(parse_player_count(players)?) }));
        }
        let lasting = [
            ("agent is unreachable for ", Self::AgentUnreachable as fn(SignedDuration) -> Self),
            ("agent does not answer for ", Self::AgentHangs),
            ("server crashes again and again for ", Self::CrashLoop),
            ("server hangs for ", Self::Hang),
            ("server refuses commands for ", Self::RefuseCommands),
            ("server answers no ping for ", Self::NoPing),
            ("node's clock is ahead by ", Self::NodeClock),
        ];
        for (prefix, action) in lasting {
            if let Some(rest) = text.strip_prefix(prefix) {
                return parse_duration(rest).map(action);
            }
        }
        if let Some((lifetime, duration)) =
            text.strip_prefix("server crashes ").and_then(|rest| rest.split_once(" after each start, for "))
        {
            return Ok(Self::CrashAfter(parse_duration(lifetime)?, parse_duration(duration)?));
        }
        if let Some(megabytes) = text.strip_prefix("backups have room for ").and_then(|room| room.strip_suffix(" MB")) {
            let megabytes: u64 = megabytes.parse().map_err(|_| format!("`{megabytes}` is no number"))?;
            return Ok(Self::BackupRoom(Some(megabytes * 1_000_000)));
        }
        if let Some(line) = text.strip_prefix("server logs: ") {
            return Ok(Self::Damage(line.to_owned()));
        }
        Ok(match text {
            "node's clock is right" => Self::NodeClock(SignedDuration::ZERO),
            "registry has no new image" => Self::NoImage(true),
            "registry has all images" => Self::NoImage(false),
            "cluster has no node for new pods" => Self::Lack(Some(Lack::Node)),
            "cluster mounts no volumes" => Self::Lack(Some(Lack::Volumes)),
            "cluster pulls no image of the server" => Self::Lack(Some(Lack::Image)),
            "cluster runs all pods" => Self::Lack(None),
            "backups have room" => Self::BackupRoom(None),
            "volume is full" => Self::VolumeFull(true),
            "volume has room" => Self::VolumeFull(false),
            "tenant replaces the lock" => Self::ReplaceLock,
            "a player runs /stop" => Self::StopInGame,
            "operators read the upstreams" => Self::ReadUpstreams,
            "operator is killed" => Self::OperatorCrashes,
            "another operator takes the lead" => Self::AnotherOperator,
            "agent is killed" => Self::AgentCrashes,
            "server crashes" => Self::Crash,
            "node is lost" => Self::NodeLost,
            "node returns" => Self::NodeReturns,
            "end" => Self::End,
            _ => {
                return Err(
                    "nothing of that kind can happen here: operator/scenarios/README.md lists what can".to_owned()
                );
            }
        })
    }

    fn parse_team(text: &str) -> Result<Self, String> {
        if let Some(rest) = text.strip_prefix("creates ") {
            let (key, object) = rest.split_once(' ').ok_or("write `creates services/lobby {…}`")?;
            return Ok(Self::CreateObject(parse_key(key)?, parse_yaml(object)?));
        }
        if let Some(key) = text.strip_prefix("deletes ") {
            return parse_key(key).map(Self::DeleteObject);
        }
        for (verb, field) in [("labels ", "labels"), ("annotates ", "annotations")] {
            if let Some(rest) = text.strip_prefix(verb) {
                let parts = rest.split_once(' ').and_then(|(key, mark)| Some((key, mark.split_once('=')?)));
                let (key, (name, value)) = parts.ok_or("write `labels services/lobby NAME=VALUE`")?;
                return Ok(Self::Mark { key: parse_key(key)?, field, name: name.to_owned(), value: value.to_owned() });
            }
        }
        Err("a team does nothing of that kind here: operator/scenarios/README.md lists what can happen".to_owned())
    }

    fn parse_admin(text: &str) -> Result<Self, String> {
        if let Some(rest) = text.strip_prefix("sets Plugin ") {
            let (project, spec) = rest.split_once(' ').ok_or("write `sets Plugin PROJECT {…}`")?;
            return Ok(Self::Plugin(project.to_owned(), parse_yaml(spec)?));
        }
        if let Some(project) = text.strip_prefix("deletes Plugin ") {
            return Ok(Self::DeletePlugin(project.to_owned()));
        }
        if let Some(spec) = text.strip_prefix("sets ") {
            return parse_yaml(spec).map(Self::Spec);
        }
        if let Some(annotation) = text.strip_prefix("annotates ") {
            if let Some(name) = annotation.strip_suffix('-') {
                return Ok(Self::Annotate(name.to_owned(), None));
            }
            let (name, value) =
                annotation.split_once('=').ok_or("write `annotates NAME=VALUE` or `annotates NAME-`")?;
            return Ok(Self::Annotate(name.to_owned(), Some(value.to_owned())));
        }
        if let Some(path) = text.strip_prefix("copies to the volume: ") {
            let (path, needs) =
                path.split_once(", which needs ").map_or((path, None), |(path, needs)| (path, Some(needs)));
            let (path, text) = path.split_once(" with ").map_or((path, None), |(path, text)| (path, Some(text)));
            let owned = |text: &str| text.to_owned();
            return Ok(Self::PutFile { path: path.to_owned(), needs: needs.map(owned), text: text.map(owned) });
        }
        if let Some(path) = text.strip_prefix("changes on the volume: ") {
            return Ok(Self::ChangeFile(path.to_owned()));
        }
        if let Some(path) = text.strip_prefix("deletes from the volume: ") {
            return Ok(Self::DeleteFile(path.to_owned()));
        }
        if let Some(link) = text.strip_prefix("replaces on the volume: ") {
            let (path, target) = link.split_once(" by a link to ").ok_or("write `… PATH by a link to TARGET`")?;
            return Ok(Self::LinkFile(path.to_owned(), target.to_owned()));
        }
        if let Some(minecraft) = text.strip_prefix("copies to the volume worlds of Minecraft ") {
            return Ok(Self::OpenElsewhere(minecraft.to_owned()));
        }
        Ok(match text {
            "adds world creative and datapack file/skylands" => Self::OpenWorld,
            "deletes the server" => Self::DeleteServer,
            "fixes the cause" => Self::FixCause,
            "deletes the pod" => Self::DeletePod,
            "force-deletes the pod" => Self::ForceDeletePod,
            "deletes the StatefulSet" => Self::DeleteStatefulSet,
            "drains the node" => Self::Drain,
            "uncordons the node" => Self::Uncordon,
            _ => {
                return Err(
                    "an admin does nothing of that kind here: operator/scenarios/README.md lists what can happen"
                        .to_owned(),
                );
            }
        })
    }
}

/// `services/lobby`.
pub(super) fn parse_key(text: &str) -> Result<Key, String> {
    let (plural, name) = text.split_once('/').ok_or("write the object as `services/lobby`")?;
    Ok(Key::new(plural, name))
}

fn parse_player_count(text: &str) -> Result<u32, String> {
    let (number, _) = text.split_once(' ').unwrap_or((text, ""));
    number.parse().map_err(|_| format!("`{text}` is no number of players as `3 players`"))
}
