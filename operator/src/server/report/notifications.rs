//! Pure. Determines the notifications for the channels of a server and the cluster, from the previous status and the current one.
//!
//! A change (another stable revision, a failed revision) is detected as a difference between the rollout facts in the last status and the
//! current facts. The same write updates these facts and adds the notification. A crash at any point therefore neither loses nor duplicates
//! one.

use crds::PaperMCServerStatus;
use crds::paper_mc_server::{NotificationEvent, NotificationState, RolloutFacts};
use jiff::{SignedDuration, Timestamp};
use scheduler::rollout::{Step, WaitingOn, is_left_to_a_person};

use super::backup::{BACKUP_READY, NEEDS_RESTART};
use super::conditions::refusal;
use super::downtime_estimate::behind;
use super::events::downtime;
use super::failure::why_it_failed;
use super::status::{for_people, rollout_facts};
use super::update_blocked::UPDATE_BLOCKED;
use super::world_damage::WORLD_DAMAGED;
use super::{PassReport, is_open};
use crate::error_chain::cut;
use crate::notify::{Channel, ChannelError};
use crate::requeue::Outcome;
use crate::server::check::CheckedServer;
use crate::server::crash_loop::CRASH_LOOP;
use crate::server::finish_rollout::is_left_to_a_person_by;
use crate::server::observe::Observed;

/// How long before its window an update is announced to the channels again.
pub(crate) const SOON: SignedDuration = SignedDuration::from_mins(10);
/// How long no newer version must have been possible before that is reported.
const LONG_BLOCKED: SignedDuration = SignedDuration::from_hours(14 * 24);
/// Minimum interval between two notifications of a plan. A list that is edited on a page produces a new plan each time, and only the last
/// one of an hour is sent.
const PLANS_APART: SignedDuration = SignedDuration::from_hours(1);
/// How long a notification is valid. A channel that is repaired in the morning still receives the notifications of the night.
const WORTH_TELLING: SignedDuration = SignedDuration::from_hours(24);
/// The maximum of the CRD schema.
const MOST: usize = 10;
/// Maximum length of a notification's texts in the schema, in bytes.
const LONGEST: usize = 512;
/// Maximum length of its short texts.
const SHORT: usize = 64;
/// Placeholder if the text of the plan is no longer known.
const WHAT_WAS_PLANNED: &str = "what was planned";

/// The state of a server from which notifications are derived.
#[derive(Debug, Clone, Default)]
pub(super) struct NotificationInput {
    /// The update that will be applied.
    pub(super) planned: Option<Planned>,
    pub(super) rollout_before: Option<RolloutFacts>,
    pub(super) rollout: Option<RolloutFacts>,
    /// Text of the update that has ended.
    pub(super) was_planned: Option<String>,
    pub(super) down: Option<SignedDuration>,
    /// Why a set has failed since the last status.
    pub(super) problem: Option<String>,
    /// Why the stable set is not verified.
    pub(super) unproven: Option<String>,
    /// A failed set that cannot be rolled back automatically.
    pub(super) is_stuck: bool,
    /// Since when a set has failed or was rolled back, and why it needs manual recovery.
    pub(super) left_to_a_person: Option<(Timestamp, String)>,
    /// Since when no newer version is possible, and the blockers.
    pub(super) blocked: Option<(Timestamp, String)>,
    /// Since when a backup is missing, and why.
    pub(super) no_copy: Option<(Timestamp, String)>,
    /// Since when the server is in a crash loop, with the message.
    pub(super) crashes: Option<(Timestamp, String)>,
    /// Since when the server's log reports damage to worlds, with the message.
    pub(super) damaged: Option<(Timestamp, String)>,
}

/// An update that will be applied.
#[derive(Debug, Clone)]
pub(super) struct Planned {
    pub(super) revision: String,
    pub(super) what: String,
    /// For example `Sun 22 Nov 04:00 CET`, `now`, `needs approval`.
    pub(super) when: String,
    /// When its window opens. `None` if it is open, or no window is scheduled.
    pub(super) opens: Option<Timestamp>,
    /// That instant as text.
    pub(super) opens_at: String,
}

impl NotificationInput {
    /// The input from a complete pass. `status` is the one that is about to be written, with its conditions.
    pub(super) fn of(
        server: &CheckedServer,
        report: &PassReport<'_>,
        before: &PaperMCServerStatus,
        status: &PaperMCServerStatus,
    ) -> Self {
        let plan = report.plan;
        let is_held = matches!(report.step, Step::Wait(WaitingOn::Held { .. } | WaitingOn::BelowFloor { .. }))
            || is_left_to_a_person_by(report.step) && !plan.waits_to_go_forward(report.step);
        let opens = status.next_window_at.filter(|_| !is_open(plan.gate));
        let cost = status.available_update.as_ref().and_then(|update| update.cost.as_deref());
        let planned = status.update.as_ref().filter(|_| !is_held).map(|what| Planned {
            revision: plan.goal.revision.to_string(),
            what: with_cost(what, &behind(cost)),
            when: status.next_window.clone().unwrap_or_else(|| "no window opens by itself".to_owned()),
            opens,
            opens_at: opens.map(|at| for_people(at, &server.zone, report.now)).unwrap_or_default(),
        });
        let of = |of: &str, holds: &str| status.conditions.iter().find(|it| it.type_ == of && it.status == holds);
        let blocked = of(UPDATE_BLOCKED, "True");
        let what_blocks = status.update_blocked.as_ref().and_then(|blocked| blocked.reason.clone());
        let no_copy = of(BACKUP_READY, "False").filter(|it| it.reason != NEEDS_RESTART);
        Self {
            planned,
            // The last known blockers if they are unknown now.
            blocked: blocked.map(|it| it.last_transition_time.0).zip(what_blocks),
            no_copy: no_copy.map(|it| (it.last_transition_time.0, it.message.clone())),
            // A stop is reported separately, because the server may have been in the loop for a long time.
            crashes: of(CRASH_LOOP, "True")
                .map(|it| (plan.stopped_at().unwrap_or(it.last_transition_time.0), it.message.clone())),
            damaged: of(WORLD_DAMAGED, "True").map(|it| (it.last_transition_time.0, it.message.clone())),
            ..Self::of_a_trial(report, before)
        }
    }

    /// The input from a pass without a plan that took a step of the rollout in progress.
    pub(super) fn of_a_trial(report: &PassReport<'_>, before: &PaperMCServerStatus) -> Self {
        let end = Self::of_the_end(report.seen, before);
        Self {
            problem: end.newly_failed().map(|_| why_it_failed(report)),
            // This also holds while a newer set replaces the failed one, because there is no roll-back.
            is_stuck: is_left_to_a_person(&report.plan.seen)
                || matches!(
                    report.step,
                    Step::Wait(
                        WaitingOn::NoBackup | WaitingOn::RollbackWouldLoseProgress | WaitingOn::BelowFloor { .. }
                    )
                ),
            left_to_a_person: left_to_a_person(report, before),
            ..end
        }
    }

    /// The revision that has failed since the last status.
    fn newly_failed(&self) -> Option<&String> {
        let (before, now) = self.rollout_before.as_ref().zip(self.rollout.as_ref())?;
        let is_new = |revision: &&String| !before.failed.contains(revision);
        now.failed.iter().rfind(is_new).filter(|_| now.settled.is_some())
    }

    /// The input from a pass without a plan: the end of a rollout is reported in any case.
    pub(super) fn of_the_end(seen: &Observed, before: &PaperMCServerStatus) -> Self {
        Self {
            rollout_before: before.rollout.clone(),
            rollout: rollout_facts(&seen.facts),
            was_planned: before.update.clone(),
            down: downtime(seen.report.as_deref()),
            unproven: seen.settled.as_ref().and_then(|record| record.unproven.clone()),
            ..Self::default()
        }
    }
}

/// All notifications, old and new. `before` are those of the last status.
pub(super) fn next_notices(
    before: &[NotificationState],
    channels: &[Channel],
    situation: &NotificationInput,
    now: Timestamp,
) -> Vec<NotificationState> {
    if channels.is_empty() {
        return Vec::new();
    }
    let mut notices = still_worth(before, channels, now);
    notices.extend(
        ended(situation, now)
            .map(|notice| NotificationState { pending: who_wants(channels, notice.occasion), ..notice }),
    );
    let left = left_notice(&notices, channels, situation, now);
    notices.extend(left);
    if let Some(planned) = &situation.planned {
        let news = plan_notice(&notices, channels, planned, now);
        if news.is_some() {
            // The new plan replaces one that is still pending.
            for old in notices.iter_mut().filter(|old| old.occasion == NotificationEvent::Planned) {
                old.pending.clear();
            }
        }
        notices.extend(news);
        let soon = soon_notice(&notices, channels, planned, now);
        notices.extend(soon);
    }
    let long_blocked = situation.blocked.as_ref().filter(|(since, _)| *since + LONG_BLOCKED <= now);
    for (occasion, lasts) in [
        (NotificationEvent::Blocked, long_blocked),
        (NotificationEvent::BackupFailed, situation.no_copy.as_ref()),
        (NotificationEvent::CrashLoop, situation.crashes.as_ref()),
        (NotificationEvent::WorldDamaged, situation.damaged.as_ref()),
    ] {
        let news = lasting_notice(&notices, channels, occasion, lasts, now);
        notices.extend(news);
    }
    notices.retain(|notice| {
        !notice.pending.is_empty() || !notice.given_up.is_empty() || before.iter().any(|old| same(old, notice))
    });
    trim(notices)
}

/// The changes followed by their cost. Only the changes are truncated.
fn with_cost(what: &str, cost: &str) -> String {
    format!("{}{cost}", cut(what, LONGEST.saturating_sub(cost.len())))
}

/// Keeps the record of delivered notifications. Removed channels are dropped, and expired deliveries are given up.
fn still_worth(before: &[NotificationState], channels: &[Channel], now: Timestamp) -> Vec<NotificationState> {
    let is_there = |name: &String| channels.iter().any(|channel| channel.name == *name);
    let kept = before.iter().cloned().map(|mut notice| {
        notice.pending.retain(is_there);
        notice.given_up.retain(is_there);
        if notice.until <= now {
            notice.given_up.append(&mut notice.pending);
        }
        notice
    });
    kept.collect()
}

/// Since when the last update has failed or was rolled back, and why it needs manual recovery.
fn left_to_a_person(report: &PassReport<'_>, before: &PaperMCServerStatus) -> Option<(Timestamp, String)> {
    let last = before.last_update.as_ref().filter(|last| !last.successful)?;
    let Step::Wait(waiting) = report.step else { return None };
    let why = if waiting.is_about_the_way_back() {
        last.message.clone()
    } else if !last.going_back {
        // The earlier set has been up since the update, so the update is not the reason.
        return None;
    } else {
        let (does_not, log) = if waiting == WaitingOn::WorldRefused {
            ("open the worlds", "prepare")
        } else if waiting == WaitingOn::ServerDown {
            ("come up", "papermc")
        } else {
            return None;
        };
        let why = refusal(report).unwrap_or_else(|| format!("see the log of container `{log}`"));
        format!("the server is down, because what ran before does not {does_not}: {why}")
    };
    Some((last.applied_at, why))
}

/// A notification that manual recovery is needed. It is sent once, unless the failure itself was reported as such.
fn left_notice(
    told: &[NotificationState],
    channels: &[Channel],
    situation: &NotificationInput,
    now: Timestamp,
) -> Option<NotificationState> {
    let (since, why) = situation.left_to_a_person.as_ref()?;
    let is_known = told.iter().any(|notice| notice.occasion == NotificationEvent::Failed && notice.at >= *since);
    let what = situation.was_planned.as_deref().unwrap_or(WHAT_WAS_PLANNED);
    (!is_known).then(|| NotificationState {
        pending: who_wants(channels, NotificationEvent::Failed),
        why: Some(cut(why, LONGEST)),
        ..notice(NotificationEvent::Failed, since.as_second().to_string(), what, now, now + WORTH_TELLING)
    })
}

/// Notifications about an update that has ended since the last status, with success or failure.
fn ended(situation: &NotificationInput, now: Timestamp) -> impl Iterator<Item = NotificationState> {
    let NotificationInput { rollout_before, rollout, was_planned, down, problem, unproven, is_stuck, .. } = situation;
    let both = rollout_before.as_ref().zip(rollout.as_ref());
    let what = was_planned.as_deref().unwrap_or(WHAT_WAS_PLANNED);
    let settled = both.and_then(|(before, now)| match (&before.settled, &now.settled) {
        (Some(old), Some(new)) if old != new => Some(new.clone()),
        // A first start is no update.
        (Some(_) | None, Some(_) | None) => None,
    });
    let occasion = if *is_stuck { NotificationEvent::Failed } else { NotificationEvent::RolledBack };
    let why = problem.as_deref().map_or_else(|| "see `status.lastUpdate`".to_owned(), |problem| cut(problem, LONGEST));
    let failed = situation.newly_failed().map(|revision| NotificationState {
        why: Some(why),
        ..notice(occasion, at_instant(revision, now), what, now, now + WORTH_TELLING)
    });
    let down = down.map(|down| cut(&duration_in_words(down), SHORT));
    let done = settled.map(|revision| NotificationState {
        down,
        why: unproven.as_ref().map(|why| cut(why, LONGEST)),
        ..notice(NotificationEvent::Done, at_instant(&revision, now), what, now, now + WORTH_TELLING)
    });
    failed.into_iter().chain(done)
}

/// A notification of a plan that was not reported yet.
fn plan_notice(
    told: &[NotificationState],
    channels: &[Channel],
    planned: &Planned,
    now: Timestamp,
) -> Option<NotificationState> {
    let last = newest(told, NotificationEvent::Planned);
    if let Some(last) = last {
        let has_ended = [NotificationEvent::Done, NotificationEvent::RolledBack, NotificationEvent::Failed]
            .into_iter()
            .any(|end| newest(told, end).is_some_and(|end| end.at >= last.at));
        // A plan that is still pending is replaced at once.
        let was_told = last.pending.is_empty();
        if last.about == planned.revision || (was_told && !has_ended && now < last.at + PLANS_APART) {
            return None;
        }
    }
    Some(NotificationState {
        pending: who_wants(channels, NotificationEvent::Planned),
        when: Some(cut(&planned.when, SHORT)),
        ..notice(NotificationEvent::Planned, planned.revision.clone(), &planned.what, now, now + WORTH_TELLING)
    })
}

/// The notification ten minutes before the window. Channels that have just received the plan are left out.
fn soon_notice(
    told: &[NotificationState],
    channels: &[Channel],
    planned: &Planned,
    now: Timestamp,
) -> Option<NotificationState> {
    let opens = planned.opens.filter(|opens| now < *opens && *opens <= now + SOON)?;
    let about = at_instant(&planned.revision, opens);
    if told.iter().any(|notice| notice.occasion == NotificationEvent::Soon && notice.about == about) {
        return None;
    }
    let just_told = newest(told, NotificationEvent::Planned).is_some_and(|plan| now < plan.at + SOON);
    let knows = |channel: &&Channel| just_told && channel.wants(NotificationEvent::Planned);
    let pending = channels.iter().filter(|channel| channel.wants(NotificationEvent::Soon) && !knows(channel));
    Some(NotificationState {
        pending: pending.map(|channel| channel.name.clone()).collect(),
        when: Some(cut(&planned.opens_at, SHORT)),
        ..notice(NotificationEvent::Soon, about, &planned.what, now, opens)
    })
}

/// A notification about a lasting problem, once for each start of it.
fn lasting_notice(
    told: &[NotificationState],
    channels: &[Channel],
    occasion: NotificationEvent,
    lasts: Option<&(Timestamp, String)>,
    now: Timestamp,
) -> Option<NotificationState> {
    let (since, what) = lasts?;
    let about = since.as_second().to_string();
    let is_known = told.iter().any(|notice| notice.occasion == occasion && notice.about == about);
    (!is_known).then(|| NotificationState {
        pending: who_wants(channels, occasion),
        ..notice(occasion, about, what, now, now + WORTH_TELLING)
    })
}

/// Limits the number of notifications. The newest of each kind is the record that it was sent. The rest is filled with pending ones, newest
/// first.
fn trim(mut notices: Vec<NotificationState>) -> Vec<NotificationState> {
    notices.sort_by(|a, b| (b.at, b.occasion, &b.about).cmp(&(a.at, a.occasion, &a.about)));
    let of_its_kind = |notices: &[NotificationState], of: &NotificationState| {
        notices.iter().find(|it| it.occasion == of.occasion).cloned()
    };
    let is_memory: Vec<bool> =
        notices.iter().map(|notice| of_its_kind(&notices, notice).is_some_and(|first| same(&first, notice))).collect();
    let room = MOST - is_memory.iter().filter(|is_memory| **is_memory).count();
    let mut others = 0;
    let mut kept: Vec<NotificationState> = notices
        .into_iter()
        .zip(is_memory)
        .filter(|(notice, is_memory)| {
            let waits = !is_memory && !notice.pending.is_empty();
            others += usize::from(waits);
            *is_memory || (waits && others <= room)
        })
        .map(|(notice, _)| notice)
        .collect();
    kept.reverse();
    kept
}

fn newest(notices: &[NotificationState], occasion: NotificationEvent) -> Option<&NotificationState> {
    notices.iter().filter(|notice| notice.occasion == occasion).max_by_key(|notice| notice.at)
}

fn same(a: &NotificationState, b: &NotificationState) -> bool {
    a.occasion == b.occasion && a.about == b.about
}

fn who_wants(channels: &[Channel], occasion: NotificationEvent) -> Vec<String> {
    channels.iter().filter(|channel| channel.wants(occasion)).map(|channel| channel.name.clone()).collect()
}

fn notice(
    occasion: NotificationEvent,
    about: String,
    what: &str,
    at: Timestamp,
    until: Timestamp,
) -> NotificationState {
    NotificationState {
        occasion,
        about,
        at,
        until,
        what: cut(what, LONGEST),
        when: None,
        down: None,
        why: None,
        pending: Vec::new(),
        given_up: Vec::new(),
    }
}

/// A key that includes the instant, because the same revision may be rolled out and rolled back more than once.
fn at_instant(revision: &str, at: Timestamp) -> String {
    format!("{revision}@{}", at.as_second())
}

/// For example `21 s`, `2 min 10 s`.
pub(super) fn duration_in_words(duration: SignedDuration) -> String {
    match (duration.as_secs() / 60, duration.as_secs() % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

/// Requeues a server that waits for its window in time for the notification before it.
pub(crate) fn in_time_to_tell(outcome: Outcome, channels: &[Channel], now: Timestamp) -> Outcome {
    match outcome {
        Outcome::Waiting { until: Some(opens) } if !channels.is_empty() && now < opens - SOON => {
            outcome.no_later_than(opens - SOON, now)
        }
        Outcome::Settled
        | Outcome::Acted
        | Outcome::Under { .. }
        | Outcome::Counting { .. }
        | Outcome::Waiting { .. }
        | Outcome::Failed { .. } => outcome,
    }
}

/// The problems of delivery: reason and message, for the condition and the Event `NotifyFailed`.
pub(super) fn what_is_in_the_way(
    troubles: &[ChannelError],
    notices: &[NotificationState],
    now: Timestamp,
) -> Option<(&'static str, String)> {
    let lost = notices.iter().filter(|notice| !notice.given_up.is_empty() && now < notice.until + WORTH_TELLING);
    let given_up = lost.map(|notice| {
        let channels = notice.given_up.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        format!("{} was not told in {channels}", notice.occasion.as_str())
    });
    let reason = troubles.first().map_or("NotDelivered", |trouble| trouble.fault.reason());
    let words = troubles.iter().map(|trouble| trouble.fault.in_words(&trouble.channel)).chain(given_up);
    let words = words.collect::<Vec<_>>().join("; ");
    (!words.is_empty()).then(|| (reason, cut(&words, 1_024)))
}

#[cfg(test)]
mod tests;
