//! Pure. Defines phrases that all texts share: dates, lists, counts, reasons.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::explanation::Span;
use crate::model::api_version::ApiVersionRule;
use crate::model::catalog::{BuildChannel, Channel, ProjectKey, Source};
use crate::model::compatibility_facts::{FactSource, UsedFact};
use crate::model::request::{Hold, ImagePolicy};
use crate::model::software::{PaperName, Software};
use crate::model::untrusted_text::sanitize_line;
use crate::model::unusable::{FileConflict, Unusable};
use crate::model::version::Minecraft;
use crate::model::version::hotfix::siblings;
use crate::model::version::range::Range;

/// The reason why a chosen build cannot be in a lock yet.
pub(super) const UNVERIFIED: &str = "its source gives only an md5, and its bytes were not downloaded yet";

/// `6 October 2025`
pub fn date(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).strftime("%-d %B %Y").to_string()
}

/// `October 2025`: for dates that are known to the month only.
pub(super) fn month(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).strftime("%B %Y").to_string()
}

/// `8 January 2025 14:03 UTC`
pub(super) fn instant(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).strftime("%-d %B %Y %H:%M UTC").to_string()
}

/// `read today 09:12 UTC`, `read on 20 January 2026`
pub(super) fn read_time(at: Timestamp, now: Timestamp) -> String {
    let (day, today) = (at.to_zoned(TimeZone::UTC), now.to_zoned(TimeZone::UTC));
    if day.date() == today.date() {
        format!("read today {}", day.strftime("%H:%M UTC"))
    } else {
        format!("read on {}", date(at))
    }
}

/// `of 6 October 2025`. A file that is given by URL has no publication date.
pub(super) fn of_date(published: Option<Timestamp>) -> String {
    published.map_or_else(|| "a file by its URL".to_owned(), |at| format!("of {}", date(at)))
}

/// States that the list of a release counts for a Minecraft version that it does not name: it names `of`.
pub fn listed_for_sibling(of: &Minecraft, minecraft: &Minecraft) -> String {
    if siblings(of).any(|sibling| sibling == minecraft) {
        format!("listed for {of}, which speaks the same network protocol")
    } else {
        format!("listed for {of}, which Paper never built")
    }
}

/// `silent since 6 October 2025`
pub fn last_release_at(at: Timestamp) -> String {
    format!("silent since {}", date(at))
}

/// `7 days`, `36 hours`
pub(super) fn duration(length: SignedDuration) -> String {
    let (days, hours, minutes) = (length.as_hours() / 24, length.as_hours(), length.as_mins());
    let plural = |n: i64, unit: &str| format!("{n} {unit}{}", if n == 1 { "" } else { "s" });
    if hours % 24 == 0 && days > 0 {
        plural(days, "day")
    } else if minutes % 60 == 0 && hours > 0 {
        plural(hours, "hour")
    } else {
        plural(minutes, "minute")
    }
}

/// `A`, `A and B`, `A, B and C`. At most `most` names are shown.
pub fn list<S: AsRef<str>>(names: &[S], most: usize) -> String {
    let mut shown: Vec<String> = names.iter().take(most).map(|name| name.as_ref().to_owned()).collect();
    if names.len() > most {
        shown.push(format!("{} more", names.len() - most));
    }
    match shown.as_slice() {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// `1.21.4`, `1.7.10 to 1.8.8 and 26.1.1`
pub(super) fn spans(spans: &[Span]) -> String {
    // The newest versions matter most and come last. If there are too many, the oldest are left out.
    const MAX_SPANS: usize = 4;
    let omitted = spans.len().saturating_sub(MAX_SPANS);
    let mut shown: Vec<String> = spans[omitted..]
        .iter()
        .map(|span| if span.from == span.to { span.from.to_string() } else { format!("{} to {}", span.from, span.to) })
        .collect();
    if omitted > 0 {
        shown.insert(0, format!("{omitted} older ranges"));
    }
    list(&shown, usize::MAX)
}

/// A number in letters up to twelve, in digits above.
pub(crate) fn count(n: usize) -> String {
    const NUMBER_WORDS: [&str; 13] =
        ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    NUMBER_WORDS.get(n).map_or_else(|| n.to_string(), |&word| word.to_owned())
}

/// `, nearest: A`, `, nearest: A and B`. Empty without any name.
pub(super) fn nearest_are<S: AsRef<str>>(names: &[S]) -> String {
    if names.is_empty() { String::new() } else { format!(", nearest: {}", list(names, 3)) }
}

/// Capitalizes the first letter.
pub fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// `Modrinth`
pub(super) fn source(source: Source) -> &'static str {
    match source {
        Source::Hangar => "Hangar",
        Source::Modrinth => "Modrinth",
        Source::Url => "URL",
    }
}

/// The value in `spec.channel` of a Plugin.
pub(super) fn channel(channel: Channel) -> &'static str {
    match channel {
        Channel::Alpha => "Alpha",
        Channel::Beta => "Beta",
        Channel::Release => "Release",
    }
}

/// The value in `spec.channel` of a server. `RECOMMENDED` builds are above stable.
pub(super) fn build_channel(channel: BuildChannel) -> &'static str {
    match channel {
        BuildChannel::Alpha => "Alpha",
        BuildChannel::Beta => "Beta",
        BuildChannel::Stable | BuildChannel::Recommended => "Stable",
    }
}

/// Quotes a word for a shell if necessary.
pub fn shell_quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._+-/:@%=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Where a hold is set.
fn hold_field(object: &str, by: Hold) -> String {
    match by {
        Hold::Plugin => format!("`spec.hold` of Plugin {object}"),
        Hold::Server => format!("{object} in `spec.hold` of the server"),
    }
}

/// The value in `spec.imagePolicy`.
pub(super) fn image_policy(policy: ImagePolicy) -> &'static str {
    match policy {
        ImagePolicy::Follow => "Follow",
        ImagePolicy::SameJava => "SameJava",
        ImagePolicy::Keep => "Keep",
    }
}

/// `5.7.1 or newer`, otherwise the range as written.
pub fn range(range: &Range) -> String {
    match range.as_str().strip_prefix(">=") {
        Some(least) if !least.contains(',') => format!("{} or newer", least.trim()),
        _ => range.to_string(),
    }
}

/// The requirement of a fact and its source: `needs WorldEdit 7.2.x (stated by your Plugin worldguard)`.
pub(super) fn fact(fact: &UsedFact) -> String {
    format!("needs {} {} ({})", fact.needs, range(&fact.range), source_of_fact(&fact.says))
}

/// The facts why releases are incompatible, to append to a clause about it. Empty without any fact.
pub(super) fn facts_clause(facts: &[UsedFact]) -> String {
    facts.iter().fold(String::new(), |text, used| format!("{text}, as {} {} {}", used.plugin, used.version, fact(used)))
}

/// The names of proposed projects.
pub(super) fn names(projects: &[(String, ProjectKey)]) -> Vec<&str> {
    projects.iter().map(|(name, _)| name.as_str()).collect()
}

/// The source of a fact about compatible releases, and its date: `says your Plugin worldguard`.
pub(crate) fn source_of_fact(says: &FactSource) -> String {
    match says {
        FactSource::BuiltIn { source, date: day } => format!("recorded {day} from {source}"),
        FactSource::Cluster { source, date: day } => format!("a fact of your cluster, recorded {day} from {source}"),
        FactSource::Plugin { object } => format!("stated by your Plugin {object}"),
    }
}

/// States that unmanaged JARs are not known to run on a version: a clause as below.
fn unmanaged_clause(files: &[String]) -> String {
    let (are, they, run) = match files {
        [_] => ("is", "it", "runs"),
        _ => ("are", "they", "run"),
    };
    format!(
        "waits for {}, which {are} unmanaged: whether {they} {run} on it is not known (`spec.unmanagedPlugins`)",
        list(files, 4)
    )
}

/// States why a release is incompatible with an unmanaged JAR, as a clause to append to the release. The file is this
/// version of this project.
fn file_conflict_clause(file: &str, (project, version): (&str, &str), split: &FileConflict) -> String {
    let is = format!("{project} {version}");
    let not_with = |which: &str| format!("conflicts with the unmanaged {file}: that is {is}, {which}");
    let but_is = |needs: &str| format!("{needs}, and the unmanaged {file} is {is}");
    match split {
        FileConflict::FileExcludes => not_with("whose page excludes it"),
        FileConflict::FileNames => not_with("whose page names another release of it"),
        FileConflict::FileNeeds { fact: used } => not_with(&format!("which {}", fact(used))),
        FileConflict::FileGuessed { needs, at_least } => {
            not_with(&format!("which is assumed to need {needs} {at_least} or newer (guessed from their dates)"))
        }
        FileConflict::Excludes => but_is(&format!("excludes {is} on its page")),
        FileConflict::Names => but_is(&format!("names another release of {project} on its page")),
        FileConflict::Needs { fact: used } => but_is(&fact(used)),
        FileConflict::Guessed { at_least } => {
            but_is(&format!("is assumed to need {project} {at_least} or newer (guessed from their dates)"))
        }
    }
}

/// The reason why a release may not be used, as a clause to append to its name.
pub fn unusable(reason: &Unusable) -> String {
    match reason {
        Unusable::Channel { is, allowed } => {
            format!("is published as {}, and you allow {} (`spec.channel`)", channel(*is), channel(*allowed))
        }
        Unusable::Delayed { eligible_at, delay } => {
            let (delay, from) = (duration(*delay), instant(*eligible_at));
            format!("is younger than your `updateDelay` of {delay}: eligible from {from}")
        }
        Unusable::DelayedWithCompanion { eligible_at, delay, with, version, object: _ } => {
            let (delay, from) = (duration(*delay), instant(*eligible_at));
            format!(
                "was released with {with} {version}, which is younger than your `updateDelay` of {delay}: both are eligible from {from}"
            )
        }
        Unusable::Older { than } => {
            format!(
                "is older than {than}, which runs, and may be unable to read the data of {than} (`spec.allowDowngrade`)"
            )
        }
        Unusable::OtherProject { project, runs, is } => other_project_clause(&project.to_display(), runs, is),
        Unusable::Held { at, object, by } => {
            format!("is not {at}, the running version that you hold ({})", hold_field(object, *by))
        }
        Unusable::NeedsProposed { projects } => {
            let projects = list(&names(projects), 5);
            format!(
                "needs {projects}, which no Plugin requests and which `spec.dependencies: Propose` does not install"
            )
        }
        Unusable::Unlisted => "lists no Minecraft version at all, and `spec.unlisted` is `Refuse`".to_owned(),
        Unusable::Superseded { by } => {
            format!("was replaced by {by} within your `updateDelay`: the date of {by} counts")
        }
        Unusable::NoFile => "has no file at its source, only an external link".to_owned(),
        Unusable::NoJar { file } => format!("has no JAR at its source, only {file}"),
        Unusable::NoSuchJar { jar, has } => {
            format!("has no file `{jar}` (`spec.source.jars`), only {}", list(has, 5))
        }
        Unusable::SeveralJars { jar, several } => {
            format!("has more than one file `{jar}` (`spec.source.jars`): name one of {}", list(several, 5))
        }
        Unusable::NoChecksum => "has no checksum at its source, so the file cannot be verified".to_owned(),
        // If the page names Folia, the JAR contradicts it.
        Unusable::WrongSoftware { loaders, software } if loaders.iter().any(|loader| loader == software.project()) => {
            format!(
                "does not declare in its JAR that it supports {software} (`folia-supported`), so {software} refuses it"
            )
        }
        Unusable::WrongSoftware { loaders, software } => {
            format!("is made for {}, not for {software}", list(loaders, 4))
        }
        Unusable::SoftwareUnsaid { software } => format!(
            "is not known to run on {software}: its page cannot state it, and its JAR has not been read (`compatibilityOverride` allows it)"
        ),
        Unusable::ApiVersion { needs } => {
            format!("needs Minecraft {needs} or newer (`api-version` in its JAR), and an older server refuses it")
        }
        Unusable::ApiVersionRefused { states, rule } => api_version_clause(states, *rule),
        Unusable::DescriptorRefused { rule, others } => format!("is refused by Paper: {rule}{}", other_jars(others)),
        Unusable::NeedsUnread { project, because } => format!("needs {project}, which could not be read ({because})"),
        Unusable::NeedsMissing { plugin } => {
            format!(
                "needs the plugin {plugin}, and no plugin of this server has that name: create a `kind: Plugin` for {plugin}"
            )
        }
        Unusable::NeedsUnknown { plugin, because, nearest, says: source } => {
            let source = source_of_fact(source);
            format!("needs {plugin} ({source}), which could not be read ({because}){}", nearest_are(nearest))
        }
        Unusable::NeedsForbidden { project } => {
            format!("needs {project}, which no Plugin requests, and `spec.dependencies` is `Forbid`")
        }
        Unusable::BuildChannel { best, allowed } => {
            let (best, allowed) = (build_channel(*best), build_channel(*allowed));
            format!("has no build that is {allowed} yet, only {best} (`spec.channel`)")
        }
        Unusable::NoBuild { asked: Some(asked), nearest } => {
            let nearest: Vec<String> = nearest.iter().map(u32::to_string).collect();
            format!("has no build {asked} (`spec.build`){}", nearest_are(&nearest))
        }
        Unusable::NoBuild { asked: None, .. } => "has no build".to_owned(),
        Unusable::Preview => "is a preview, used only when pinned or with `spec.channel: Alpha`".to_owned(),
        Unusable::BelowFloor { floor } => {
            format!("is older than {floor}, which has opened the world: a world cannot be downgraded")
        }
        Unusable::Unmanaged { files } => unmanaged_clause(files),
        Unusable::UnmanagedRefused { file, because } => {
            format!("would not load the unmanaged {file}: it {}", unusable(because))
        }
        Unusable::BesideFile { file, project, version, apart: split } => {
            file_conflict_clause(file, (project, version), split)
        }
        Unusable::ImageCarries { minecraft, build, image } => {
            format!("is not the version in the server's image, Paper {minecraft}-{build} (`{image}`)")
        }
        Unusable::JavaTooOld { needs, has, image } => {
            format!("needs Java {needs}, and the server's image has Java {has} (`{image}`)")
        }
        Unusable::JavaHeld { needs, has, policy } => java_held_clause(*needs, *has, *policy),
        Unusable::NoImage { java } => format!("needs Java {java}, and no published image has it"),
    }
}

fn other_project_clause(project: &str, runs: &str, is: &str) -> String {
    format!("is of the project `{is}`, which {project} means now, and `{runs}` runs (`spec.source.project`)")
}

/// A running plugin whose slug leads to another project now, and how to follow either.
pub fn other_project(plugin: &str, version: &str, (project, runs, is): (&ProjectKey, &str, &str)) -> String {
    format!(
        "{plugin} stays at {version}, which runs: {} means another project now. Set `spec.source.project` of its Plugin to `{runs}` to follow the running project, or to `{is}` to accept the other one.",
        project.to_display()
    )
}

/// The other JARs of a release whose main one is no plugin.
fn other_jars(others: &[String]) -> String {
    if others.is_empty() {
        return String::new();
    }
    format!(" (`spec.source.jars` can name another of its JARs: {})", list(others, 5))
}

fn java_held_clause(needs: u32, has: u32, policy: ImagePolicy) -> String {
    let policy = image_policy(policy);
    format!("needs Java {needs}, and the running image has Java {has} (`spec.imagePolicy: {policy}`)")
}

/// The rule by which Paper refuses an `api-version`, as a clause.
fn api_version_clause(states: &str, rule: ApiVersionRule) -> String {
    let states = stated_api_version(states);
    match rule {
        ApiVersionRule::Listed => format!("states {states}, and Paper before 1.20.5 accepts only 1.13 to 1.20"),
        ApiVersionRule::ListedInPaperPlugin => {
            format!("states {states} in `paper-plugin.yml`, and Paper before 1.20.5 accepts only 1.19 and 1.20 there")
        }
        ApiVersionRule::Form => {
            format!("states {states}, which Paper refuses: it must have two or three numbers, as 1.21 or 1.21.4")
        }
        ApiVersionRule::TooOldInPaperPlugin => {
            format!("states {states} in `paper-plugin.yml`, and Paper refuses a version below 1.19 there")
        }
    }
}

/// An `api-version` with the usual cause of one that no author means.
pub fn stated_api_version(text: &str) -> String {
    let cause = match text {
        "1.1" => " (YAML reads an unquoted 1.10 as 1.1)",
        "1.2" => " (YAML reads an unquoted 1.20 as 1.2)",
        _ => "",
    };
    let quote = if text.is_empty() || text.contains(char::is_whitespace) { "'" } else { "" };
    format!("`api-version: {quote}{}{quote}`{cause}", sanitize_line(text))
}

/// `lobby` of `games/lobby`.
pub(crate) fn short_name(server: &str) -> &str {
    server.rsplit('/').next().unwrap_or(server)
}

/// `Paper 1.21.10 (build 130)`
pub(crate) fn paper(software: Software, minecraft: &Minecraft, build: u32) -> String {
    PaperName { software, minecraft: minecraft.clone(), build }.to_string()
}

/// The same for a [`PaperName`].
pub fn named(name: &PaperName) -> String {
    name.to_string()
}
