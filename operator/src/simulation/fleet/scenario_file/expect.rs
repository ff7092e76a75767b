//! Pure. Parses the expectations of a scenario file, and checks them against the cluster and the transcript so far.

use serde_json::Value;

use super::script::parse_key;
use crate::simulation::cluster::SimCluster;
use crate::simulation::objects::Key;

/// A line that begins with `expect`.
#[derive(Debug)]
pub(super) enum Expect {
    /// A line of the transcript has this text.
    Line(String),
    NoLine(String),
    /// Lines have these texts, in this order.
    Order(Vec<String>),
    /// This number of lines has this text.
    Times(usize, String),
    /// A condition: type, status, reason, a part of its message.
    Condition {
        name: String,
        status: String,
        reason: Option<String>,
        message: Option<String>,
    },
    NoCondition(String),
    /// The pod's files: Minecraft and JAR names.
    Runs(Vec<String>),
    NoPod,
    /// A path on the data volume.
    File(String),
    NoFile(String),
    /// A field of the status by its JSON pointer, as text.
    Status(String, String),
    /// The same of the server's Service, from its root.
    Service(String, String),
    /// The same of any object, by its plural and its name.
    Object(Key, String, String),
    NoObject(Key),
}

impl Expect {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if let Some(rest) = text.strip_prefix("line ") {
            return Ok(Self::Line(one_text(rest)?));
        }
        if let Some(rest) = text.strip_prefix("no line ") {
            return Ok(Self::NoLine(one_text(rest)?));
        }
        if let Some(rest) = text.strip_prefix("order ") {
            return texts(rest).map(Self::Order);
        }
        if let Some((times, rest)) = text.split_once(" lines ") {
            let times = times.parse().map_err(|_| format!("`{times}` is no number"))?;
            return Ok(Self::Times(times, one_text(rest)?));
        }
        if let Some((times, rest)) = text.split_once(" line ") {
            let times = times.parse().map_err(|_| format!("`{times}` is no number"))?;
            return Ok(Self::Times(times, one_text(rest)?));
        }
        if let Some(name) = text.strip_prefix("no condition ") {
            return Ok(Self::NoCondition(name.to_owned()));
        }
        if let Some(rest) = text.strip_prefix("condition ") {
            return Self::parse_condition(rest);
        }
        if let Some(rest) = text.strip_prefix("running ") {
            return Ok(Self::Runs(rest.split(", ").map(str::to_owned).collect()));
        }
        if let Some(path) = text.strip_prefix("file ") {
            return Ok(Self::File(path.to_owned()));
        }
        if let Some(path) = text.strip_prefix("no file ") {
            return Ok(Self::NoFile(path.to_owned()));
        }
        if let Some(rest) = text.strip_prefix("status ") {
            let (field, value) = rest.split_once(' ').ok_or("write `status /lastUpdate/successful true`")?;
            return Ok(Self::Status(field.to_owned(), value.to_owned()));
        }
        if let Some(rest) = text.strip_prefix("service ") {
            let (field, value) = rest.split_once(' ').ok_or("write `service /spec/type ClusterIP`")?;
            return Ok(Self::Service(field.to_owned(), value.to_owned()));
        }
        if let Some(rest) = text.strip_prefix("object ") {
            let parts: Vec<&str> = rest.splitn(3, ' ').collect();
            let &[key, field, value] = &parts[..] else {
                return Err("write `object services/lobby /spec/type ClusterIP`".to_owned());
            };
            return Ok(Self::Object(parse_key(key)?, field.to_owned(), value.to_owned()));
        }
        if let Some(key) = text.strip_prefix("no object ") {
            return parse_key(key).map(Self::NoObject);
        }
        if text == "no pod" {
            return Ok(Self::NoPod);
        }
        Err("nothing of that kind can be expected: operator/scenarios/README.md lists what can".to_owned())
    }

    fn parse_condition(text: &str) -> Result<Self, String> {
        let (head, message) = match text.split_once('"') {
            Some((head, rest)) => (head.trim(), Some(rest.trim_end_matches('"').to_owned())),
            None => (text, None),
        };
        let (condition, reason) = match head.split_once(' ') {
            Some((condition, reason)) => (condition, Some(reason.to_owned())),
            None => (head, None),
        };
        let (name, status) =
            condition.split_once('=').ok_or("write `condition Ready=True REASON \"part of its message\"`")?;
        Ok(Self::Condition { name: name.to_owned(), status: status.to_owned(), reason, message })
    }

    /// The difference from the expectation. `None` if there is none.
    pub(super) fn mismatch(&self, cluster: &SimCluster, lines: &[String]) -> Option<String> {
        let has = |text: &str| lines.iter().any(|line| line.contains(text));
        match self {
            Self::Line(text) => (!has(text)).then(|| format!("no line has {text:?}")),
            Self::NoLine(text) => {
                let line = lines.iter().find(|line| line.contains(text.as_str()))?;
                Some(format!("there is the line {line:?}"))
            }
            Self::Order(texts) => order_mismatch(texts, lines),
            Self::Times(times, text) => {
                let found = lines.iter().filter(|line| line.contains(text.as_str())).count();
                (found != *times).then(|| format!("{found} lines have {text:?}"))
            }
            Self::Condition { name, status, reason, message } => {
                let Some(condition) = condition(cluster, name) else {
                    return Some(format!("there is no condition {name}"));
                };
                let is_right = condition["status"] == status.as_str()
                    && reason.as_ref().is_none_or(|reason| condition["reason"] == reason.as_str())
                    && message
                        .as_ref()
                        .is_none_or(|part| condition["message"].as_str().unwrap_or_default().contains(part));
                (!is_right).then(|| {
                    format!("{name}={} {}: {}", condition["status"], condition["reason"], condition["message"])
                })
            }
            Self::NoCondition(name) => {
                condition(cluster, name).map(|condition| format!("there is one: {}", condition["message"]))
            }
            Self::Runs(parts) => {
                let Some(pod) = &cluster.pod else { return Some("there is no pod".to_owned()) };
                let files = pod.files.plugins.iter().map(|file| file.path.trim_start_matches("plugins/").to_owned());
                let all: Vec<String> =
                    [format!("Minecraft {}", pod.files.minecraft)].into_iter().chain(files).collect();
                let is_running = |part: &String| {
                    all.iter().any(|running| running == part || running.starts_with(&format!("{part}.jar")))
                };
                (!parts.iter().all(is_running)).then(|| format!("it runs {}", all.join(", ")))
            }
            Self::NoPod => cluster.pod.as_ref().map(|pod| format!("there is a pod, which is {:?}", pod.phase)),
            Self::File(path) => (!cluster.disks.data().join(path).exists()).then(|| "there is none".to_owned()),
            Self::NoFile(path) => cluster.disks.data().join(path).exists().then(|| "it is there".to_owned()),
            Self::Status(field, value) => {
                let server = cluster.objects.get(&cluster.server_key()).ok()?;
                value_mismatch(value, server["status"].pointer(field))
            }
            Self::Service(field, value) => {
                object_mismatch(cluster, &Key::new("services", cluster.scenario.server_index.name), field, value)
            }
            Self::Object(key, field, value) => object_mismatch(cluster, key, field, value),
            Self::NoObject(key) => cluster.objects.get(key).is_ok().then(|| "it exists".to_owned()),
        }
    }
}

fn object_mismatch(cluster: &SimCluster, key: &Key, field: &str, value: &str) -> Option<String> {
    match cluster.objects.get(key) {
        Ok(object) => value_mismatch(value, object.pointer(field)),
        Err(_) => Some("it does not exist".to_owned()),
    }
}

/// The value of a field, in words. `None` if it is this value.
fn value_mismatch(value: &str, found: Option<&Value>) -> Option<String> {
    let found = found.cloned().unwrap_or_default();
    let found = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
    (found != value).then(|| format!("it is {found}"))
}

fn condition<'w>(cluster: &'w SimCluster, name: &str) -> Option<&'w Value> {
    let server = cluster.objects.get(&cluster.server_key()).ok()?;
    server["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == name)
}

fn order_mismatch(texts: &[String], lines: &[String]) -> Option<String> {
    let mut from = 0;
    for text in texts {
        let Some(at) = lines[from..].iter().position(|line| line.contains(text.as_str())) else {
            return Some(format!("no line has {text:?} after line {from} of the transcript"));
        };
        from += at + 1;
    }
    None
}

fn texts(text: &str) -> Result<Vec<String>, String> {
    let found: Vec<String> = text.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    if found.is_empty() { Err("write the text between double quotes".to_owned()) } else { Ok(found) }
}

fn one_text(text: &str) -> Result<String, String> {
    texts(text)?.pop().ok_or_else(|| "write the text between double quotes".to_owned())
}
