//! Pure. Builds the conditions of a server.

use crds::paper_mc_server::LastUpdate;
use crds::{PaperMCServer, PaperMCServerStatus};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use resolver::explain::text;
use scheduler::maintenance::Gate;
use scheduler::observation::{Players, PodPhase, Verification};
use scheduler::protocol::last_words::WorldRefused;
use scheduler::rollout::{OpportunityReason, Step, WaitingOn};

use super::backup::BACKUP_READY;
use super::backup_schedule::BACKUP_CRON_VALID;
use super::events::{approval_needed, waits_in_words};
use super::manual_recovery::{no_backup, past_refusal, undo_would_lose};
use super::seed_volume::RESTORED_FROM;
use super::waiting::{asleep_in_words, players_in_words, turn_in_words};
use super::{
    LONGEST_MESSAGE, PassReport, backup, backup_schedule, condition, crash_loop, displaced_jars, drain, drift,
    image_pull, in_words, is_open, seed_volume, update_blocked, world_damage,
};
use crate::error_chain::cut;
use crate::server::backups::copies;
use crate::server::changes;
use crate::server::check::CheckedServer;
use crate::server::crash_loop::CRASH_LOOP;
use crate::server::in_game_stop::stopped_at;
use crate::server::next_window::{SPOILT, SUSPENDED};
use crate::server::partial::urgent::UrgentUpdate;
use crate::server::requested_restore;

mod init_container;
mod unplanned;

pub(super) use unplanned::{build_failure, build_on_trial, build_trouble};

/// The reason of `Updating` while a countdown is in progress that a joining player cancels.
pub(super) const COUNTDOWN_WHILE_EMPTY: &str = "CountdownWhileEmpty";

/// The reason of `Ready` and `Updating` while a crash loop has stopped the server.
const STOPPED_BY_CRASHES: &str = "StoppedByCrashes";

/// Whether the files of the next lock are available. The condition is absent while they are.
const FILES_BROUGHT: &str = "ArtifactsReady";
/// The reason if the agent could not stage them on the volume.
const NOT_STAGED: &str = "NotStaged";

/// Set while the pod's agent is reachable and rejects the operator's requests. The condition is absent otherwise.
pub(super) const AGENT_REFUSES: &str = "AgentRejectsRequests";
/// How long a rejection is tolerated. An agent that has just started rejects requests that were signed before. An operator that has just
/// lost its lease is rejected once.
const REFUSES_FOR: SignedDuration = SignedDuration::from_secs(20);

/// The conditions of a complete pass.
pub(super) fn build_conditions(
    server: &PaperMCServer,
    checked: &CheckedServer,
    report: &PassReport<'_>,
    before: &PaperMCServerStatus,
) -> Vec<Condition> {
    let last = before.last_update.as_ref();
    let (history, before) = (&before.history, before.conditions.as_slice());
    let plan = report.plan;
    let now = report.now;
    let of = |of, holds, reason: &str, message: String| condition(server, of, holds, reason, message, now, before);
    let update = plan.is_update();
    let (up, reason, message) = ready(checked, report);
    let words = in_words(&plan.explanation);
    let mut conditions = vec![of("Ready", Some(up), reason, message)];
    conditions.push(if plan.solved {
        of("Resolved", Some(true), "Solved", first_line(&text::render(&plan.explanation, now)))
    } else if !plan.is_impossible() {
        of("Resolved", None, "MetadataMissing", words)
    } else {
        of("Resolved", Some(false), "NoSolution", words)
    });
    conditions.push(if update {
        of("UpdateAvailable", Some(true), "UpdatePlanned", cut(&changes::in_words(&plan.changes), 1_024))
    } else {
        of("UpdateAvailable", Some(false), "UpToDate", "what should run runs".to_owned())
    });
    let (blocked, why, message) = update_blocked::in_words(plan, before);
    conditions.push(of(update_blocked::UPDATE_BLOCKED, blocked, &why, message));
    if let Some((holds, reason, message)) = backup::ready(checked, report) {
        // While the agent is unreachable, the last condition remains.
        let is_silent = holds.is_none() && reason == "AgentUnreachable";
        let kept = before.iter().find(|old| {
            old.type_ == BACKUP_READY && (is_silent || (holds == Some(true) && backup::stands(old, report)))
        });
        conditions.push(kept.cloned().unwrap_or_else(|| of(BACKUP_READY, holds, reason, message)));
    }
    if let Some((is_valid, reason, message)) = backup_schedule::in_words(server, checked, report) {
        conditions.push(of(BACKUP_CRON_VALID, Some(is_valid), reason, message));
    }
    if let Some(why) = &plan.files_problem {
        conditions.push(of(FILES_BROUGHT, Some(false), "FilesMissing", cut(why, 1_024)));
    } else if let Some(why) = plan.staging_problem(report.seen) {
        conditions.push(of(FILES_BROUGHT, Some(false), NOT_STAGED, cut(&not_staged(why), 1_024)));
    } else if plan.is_staging(report.seen) {
        // During a retry, the last condition remains.
        conditions.extend(before.iter().find(|old| old.type_ == FILES_BROUGHT && old.reason == NOT_STAGED).cloned());
    }
    conditions
        .extend(image_pull::pulled(report).map(|(what, holds, reason, message)| of(what, holds, reason, message)));
    conditions.extend(of_the_pod(report).map(|(what, reason, message)| of(what, Some(true), reason, message)));
    if let Some((reason, message)) = crash_loop::in_words(checked, report, before) {
        conditions.push(of(CRASH_LOOP, Some(true), reason, cut(&message, LONGEST_MESSAGE)));
    }
    conditions.extend(world_damage::condition(checked, report, before, |what, reason, message| {
        of(what, Some(true), reason, message)
    }));
    conditions.extend(of_own_jars(report, before, |message| {
        of(displaced_jars::JARS_SET_ASIDE, Some(true), displaced_jars::IN_THE_WAY, message)
    }));
    if let Some(message) = update_blocked::shared_names(&plan.explanation) {
        conditions.push(of(
            "DuplicatePluginName",
            Some(true),
            update_blocked::TWO_FILES_ONE_NAME,
            cut(&message, 1_024),
        ));
    }
    if let Some(undo) = &plan.undo {
        let message = cut(&undo.in_words(&checked.namespace, &checked.name, history), 1_024);
        conditions.push(of("PinnedToSet", Some(true), undo.reason(), message));
    }
    if let Some((comes, reason, message)) = plan.alone.in_words() {
        conditions.push(of("Scoped", Some(comes), reason, cut(&message, 1_024)));
    }
    if let Some((waits, reason, message)) = plan.restores.in_words() {
        conditions.push(of("RestoreRequested", Some(waits), reason, message));
    }
    if checked.restore_from.is_some() {
        // While the agent is unreachable, the last condition remains.
        let known = before.iter().find(|old| old.type_ == RESTORED_FROM).cloned();
        let said = seed_volume::came_of(checked, report);
        let said = said.map(|(done, reason, message)| of(RESTORED_FROM, Some(done), reason, message));
        conditions.extend(said.or(known));
    }
    if plan.consent.needs_approval {
        conditions.push(of("ApprovalNeeded", Some(true), "NotApproved", cut(&approval_needed(checked, plan), 1_024)));
    }
    if let Some(waits) = &plan.waits {
        let message = cut(&waits_in_words(waits, checked, now), 1_024);
        conditions.push(of("WaitingForLeaderServer", Some(true), waits.reason(), message));
    }
    if let Some((reason, message)) = drain::in_words(checked, report) {
        conditions.push(of(drain::DRAINING, Some(true), reason, cut(&message, LONGEST_MESSAGE)));
    }
    if plan.outlook.is_suspended {
        conditions.push(of("Suspended", Some(true), "SpecSuspend", SUSPENDED.to_owned()));
    }
    if plan.outlook.is_spoilt {
        conditions.push(of("NoUsableWindow", Some(true), "BlackoutsCoverWindows", SPOILT.to_owned()));
    }
    let (updating, reason, message) = updating(checked, report, last);
    conditions.push(of("Updating", Some(updating), reason, message));
    conditions
}

/// Problems of the pod that a user should fix. Each condition is absent while there is no problem.
fn of_the_pod(report: &PassReport<'_>) -> impl Iterator<Item = (&'static str, &'static str, String)> {
    let agent = report.seen.report.as_deref();
    let drift = drift::in_words(report).map(|(reason, message)| ("Drifted", reason, message));
    let exposed = agent.filter(|agent| agent.rcon_exposed).map(|_| {
        let message = "RCON answers on the pod's own address; the server's software does not honour `rcon.ip`";
        ("RconExposed", "ReachableOnPodIP", message.to_owned())
    });
    let refused = agent_refuses(report).map(|(reason, words)| (AGENT_REFUSES, reason, cut(words, 1_024)));
    drift.into_iter().chain(exposed).chain(refused)
}

/// The condition for displaced JARs. While the agent is unreachable, the last one remains.
fn of_own_jars(report: &PassReport<'_>, before: &[Condition], of: impl Fn(String) -> Condition) -> Option<Condition> {
    match report.seen.report.as_deref() {
        Some(agent) => displaced_jars::in_words(agent).map(of),
        None => before.iter().find(|old| old.type_ == displaced_jars::JARS_SET_ASIDE).cloned(),
    }
}

/// Why a reachable agent rejects all requests, if this has lasted longer than its own start explains.
pub(super) fn agent_refuses<'a>(report: &PassReport<'a>) -> Option<(&'static str, &'a str)> {
    let is_news = report.now < report.seen.silent_since + REFUSES_FOR;
    let refusal = report.seen.refusal.as_ref().filter(|_| !is_news)?;
    Some((refusal.0, &refusal.1))
}

fn not_staged(why: &str) -> String {
    format!("the files of the next set are not on the volume, and what runs stays: {why}; it is tried again by itself")
}

fn first_line(words: &str) -> String {
    cut(words.lines().next().unwrap_or_default(), LONGEST_MESSAGE)
}

fn ready(checked: &CheckedServer, report: &PassReport<'_>) -> (bool, &'static str, String) {
    let asleep = report.plan.seen.set.is_some_and(|set| set.asleep);
    match report.plan.seen.pod.map(|pod| pod.life) {
        Some(PodPhase::Up) if report.plan.proof.verdict == Verification::Failed => {
            (false, "VerificationFailed", report.plan.proof.problem.clone())
        }
        Some(PodPhase::Up) => (true, "Running", "the server answers".to_owned()),
        Some(PodPhase::Starting { .. }) => (
            false,
            "Starting",
            cut(&format!("the server is starting{}", init_container::awaited(report)), LONGEST_MESSAGE),
        ),
        Some(PodPhase::Down) if report.seen.pod.as_ref().is_some_and(|pod| stopped_at(pod).is_some()) => {
            let message = "the server was stopped from inside (`/stop`), and is started again";
            (false, "StoppedInGame", message.to_owned())
        }
        Some(PodPhase::Down) => (false, "Down", "the server's process is not there".to_owned()),
        Some(PodPhase::Refused) => refused(checked, report),
        Some(PodPhase::Stopping { .. }) => (false, "Stopping", "the pod is being stopped".to_owned()),
        None if report.plan.is_stopped() => {
            (false, STOPPED_BY_CRASHES, format!("the server is stopped after a loop of crashes; see {CRASH_LOOP}"))
        }
        None if asleep => (false, "Asleep", "`spec.replicas` is 0".to_owned()),
        None => (false, "NoPod", "there is no pod yet".to_owned()),
    }
}

/// Why the init container refuses to let the server start.
fn refused(checked: &CheckedServer, report: &PassReport<'_>) -> (bool, &'static str, String) {
    if let Some(why) = backup::refused(report) {
        return (false, "BackupFailed", why);
    }
    if let Some(why) = seed_volume::refused(report) {
        return (false, seed_volume::NOT_RESTORED_YET, why);
    }
    let silent = || "the agent refused to open the world; see the log of container `prepare`".to_owned();
    let why = refusal(report).unwrap_or_else(silent);
    let copies = report.seen.world_refused().and_then(|said| said.copies);
    let back = copies.as_ref().map(|copies| match copies.first() {
        Some(copy) => in_its_place(checked, copy),
        None => "There is no good copy that it could open".to_owned(),
    });
    let ways: Vec<String> = [Some(cut(&why, 512)), back, past_refusal(checked, report)].into_iter().flatten().collect();
    (false, "WorldRefused", cut(&ways.join(". "), LONGEST_MESSAGE))
}

/// The command with which a user replaces the worlds by a backup.
pub(super) fn in_its_place(checked: &CheckedServer, copy: &str) -> String {
    format!(
        "The copy `{copy}` takes the place of the worlds, and what was built since is lost, by `{}`",
        requested_restore::command(checked, copy)
    )
}

/// The message that the init container wrote when it refused the start.
pub(super) fn refusal(report: &PassReport<'_>) -> Option<String> {
    let words = report.seen.last_words()?;
    Some(cut(&WorldRefused::read(words).map_or_else(|| words.to_owned(), |said| said.why), 1_024))
}

fn updating(
    checked: &CheckedServer,
    report: &PassReport<'_>,
    last: Option<&LastUpdate>,
) -> (bool, &'static str, String) {
    match report.step {
        Step::Settled => (false, "Stable", "nothing is under way".to_owned()),
        Step::Wait(waiting) => waiting_in_words(waiting, checked, report, last),
        Step::Reannounce { ends, .. } => waiting_in_words(WaitingOn::Countdown { ends }, checked, report, last),
        step @ (Step::Create { .. }
        | Step::Stage
        | Step::Announce { .. }
        | Step::Save { .. }
        | Step::WriteTemplate { .. }
        | Step::Commit { .. }
        | Step::Restore { .. }
        | Step::MarkFailed { .. }
        | Step::RequestRestore { .. }
        | Step::RequestPluginDataRestore { .. }
        | Step::RollBack { .. }
        | Step::RollForward { .. }
        | Step::MarkStable { .. }
        | Step::Restart { .. }
        | Step::EndRestart
        | Step::BeginDrain { .. }
        | Step::EndDrain
        | Step::CancelAnnouncement { .. }) => (true, "StepExecuted", format!("step: {}", step.name())),
    }
}

fn waiting_in_words(
    waiting: WaitingOn,
    checked: &CheckedServer,
    report: &PassReport<'_>,
    last: Option<&LastUpdate>,
) -> (bool, &'static str, String) {
    let problem = || report.plan.proof.problem.clone();
    // The last verification is about the running set, and not about the one that failed.
    let why_last = || last.filter(|last| !last.successful).map(|last| last.message.clone());
    match waiting {
        WaitingOn::Window { opens } => waiting_for_window(opens, checked, report),
        WaitingOn::Countdown { ends } if report.plan.opportunistic.occasion == Some(OpportunityReason::Empty) => (
            true,
            COUNTDOWN_WHILE_EMPTY,
            format!("nobody is on; the server stops at {ends} if nobody joins until then"),
        ),
        WaitingOn::Countdown { ends } => (true, "Countdown", format!("players are warned; the server stops at {ends}")),
        WaitingOn::Eviction => {
            (false, "Draining", "nothing is under way; the server may be evicted from its node".to_owned())
        }
        WaitingOn::Players { until } => (true, "WaitingForPlayers", players_in_words(until, report)),
        WaitingOn::Agent { until } => {
            let why = report.seen.refusal.as_ref().map_or(String::new(), |(_, words)| format!(": {words}"));
            let since = match report.plan.seen.players {
                Players::Unknown { since } => format!(" since {since}"),
                Players::Nobody | Players::Some(_) | Players::Hidden => String::new(),
            };
            (true, "AgentUnreachable", cut(&format!("going on at {until}; nobody can be asked{since}{why}"), 1_024))
        }
        WaitingOn::Controller => {
            (true, "WaitingForController", "the StatefulSet controller has the next move".to_owned())
        }
        WaitingOn::PodMissing => (true, "PodMissing", "the StatefulSet controller has to make the pod".to_owned()),
        WaitingOn::PodStopping { .. } => (true, "PodStopping", "the pod is being stopped".to_owned()),
        WaitingOn::Start { until } => {
            let message = format!("the server has until {until} to start{}", init_container::awaited(report));
            (true, "Starting", cut(&message, LONGEST_MESSAGE))
        }
        WaitingOn::Images => (true, "PullingImages", image_pull::awaited(report)),
        WaitingOn::NoImage => (false, "NoImage", image_pull::problem(report).unwrap_or_default()),
        WaitingOn::Proof { until } => {
            let what = if report.plan.seen.is_restarted() { "restarted: the server" } else { "the new set" };
            (true, "Proving", format!("{what} must stay well until {until}"))
        }
        WaitingOn::Asleep if report.plan.is_stopped() => {
            (false, STOPPED_BY_CRASHES, format!("nothing begins while the server is stopped; see {CRASH_LOOP}"))
        }
        WaitingOn::Asleep => (false, "Asleep", asleep_in_words(report).to_owned()),
        WaitingOn::NodeLost => (false, "NodeLost", node_lost(report)),
        WaitingOn::SaveRefused { again } => (
            false,
            "SaveRefused",
            format!(
                "the server did not confirm its save (disk full, permissions, RCON out of reach?); asked again at {again}"
            ),
        ),
        WaitingOn::Held { failed } => (
            false,
            "Held",
            format!(
                "revision {failed} failed here; it is tried again when the spec or a release changes. {}",
                backup::failed_for(report).or_else(why_last).unwrap_or_else(problem)
            ),
        ),
        WaitingOn::BelowFloor { floor } => {
            let way = backup::way_below(copies(report.seen), &report.plan.record.files);
            let text =
                format!("a newer Minecraft has opened the world (format {floor}), which this set cannot open; {way}");
            (false, "BelowFloor", cut(&text, LONGEST_MESSAGE))
        }
        WaitingOn::WorldRefused => refused(checked, report),
        WaitingOn::NoBackup => (false, "NoBackup", no_backup(checked, report)),
        WaitingOn::RollbackWouldLoseProgress => (false, "RollbackWouldLoseProgress", undo_would_lose(checked, report)),
        WaitingOn::ServerDown => (false, "ServerDown", cut(&init_container::why_down(report), LONGEST_MESSAGE)),
        WaitingOn::FirstStartFailed => (
            false,
            "FirstStartFailed",
            seed_volume::refused(report).unwrap_or_else(|| {
                "the first start did not succeed; correct the spec and it is tried at once".to_owned()
            }),
        ),
    }
}

pub(super) fn waiting_for_window(
    opens: Option<Timestamp>,
    checked: &CheckedServer,
    report: &PassReport<'_>,
) -> (bool, &'static str, String) {
    let plan = report.plan;
    let outlook = &plan.outlook;
    if plan.consent.needs_approval {
        let message = format!("the set {} is not approved; see ApprovalNeeded", plan.record.files.lock);
        return (false, "ApprovalNeeded", message);
    }
    let ask = "annotate nightshift.dev/apply-now to apply";
    if plan.held_by_crashes {
        let message = format!("the server's process ends again and again, see {CRASH_LOOP}; {ask} all the same");
        return (false, "WaitingForServer", message);
    }
    if let Some(waits) = plan.held_by_followed() {
        let message = format!("{}; {ask} all the same", waits_in_words(waits, checked, report.now));
        return (false, "WaitingForLeaderServer", cut(&message, LONGEST_MESSAGE));
    }
    if let Some(not_yet) = &plan.not_yet {
        let open = match plan.opportunistic.occasion {
            Some(_) => "no window is needed",
            None => "the window is open",
        };
        return (
            false,
            "WaitingForUpdateSlot",
            cut(&format!("{open}; {}", turn_in_words(not_yet, checked)), LONGEST_MESSAGE),
        );
    }
    let next = match opens {
        Some(opens) => match plan.alone.early().and_then(UrgentUpdate::own) {
            Some(own) if plan.gate == own.gate => format!("the window of {} opens at {opens}", own.scope),
            Some(_) | None => format!("the window opens at {opens}"),
        },
        None if is_open(plan.gate) => "what is left of the window is too short for the countdown".to_owned(),
        None if outlook.is_suspended => SUSPENDED.to_owned(),
        None if outlook.is_spoilt => SPOILT.to_owned(),
        None => "no window opens by itself".to_owned(),
    };
    if let Some((name, until)) = &outlook.blackout {
        return (false, "Blackout", format!("blackout `{name}` is on until {until}; {next}"));
    }
    let next = format!("{next}{}", plan.opportunistic.instead_of_waiting());
    match plan.gate {
        Gate::NoNewStarts { .. } => {
            let message = format!("nothing begins in this last part of the window (`latestStart`); {next}");
            (false, "WaitingForWindow", message)
        }
        Gate::Shut { opens: None } if outlook.is_suspended => {
            (false, "Suspended", format!("{next}; {ask} all the same"))
        }
        Gate::Shut { opens: None } => (false, "WaitingForWindow", format!("{next}; {ask}")),
        Gate::Open { .. } | Gate::Shut { opens: Some(_) } => (false, "WaitingForWindow", next),
    }
}

fn node_lost(report: &PassReport<'_>) -> String {
    let pod = report.seen.pod.as_ref();
    let node = pod.and_then(|pod| pod.spec.as_ref()).and_then(|spec| spec.node_name.clone()).unwrap_or_default();
    let asked = pod.and_then(|pod| pod.metadata.deletion_timestamp.as_ref());
    let since = asked.map_or_else(String::new, |at| format!("; its pod had to end by {}", at.0));
    format!(
        "node `{node}` does not answer{since}. Make sure that the machine is off, then: kubectl taint nodes {node} \
         node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
    )
}
