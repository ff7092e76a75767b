//! Pure. Determines the notifications for the channels of a server and the cluster, from the previous status and the current one.
//!
//! A change (another stable revision, a failed revision) is detected as a difference between the rollout facts in the last status and the
//! current facts. The same write updates these facts and adds the notification. A crash at any point therefore neither loses nor duplicates
//! one.

use std::collections::BTreeMap;

use crds::PaperMCServerStatus;
use crds::paper_mc_server::{NotificationEvent, NotificationState, RolloutFacts};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use scheduler::rollout::{Step, WaitingOn, needs_admin};

use super::backup::{BACKUP_READY, NEEDS_RESTART};
use super::context::PassReport;
use super::downtime_estimate::downtime_suffix;
use super::failure::failure_reason;
use super::format::{format_short_duration, format_time};
use super::pending;
use super::refusal::init_message;
use super::responsiveness::NOT_RESPONDING;
use super::status::rollout_facts;
use super::stop_times::downtime;
use super::update_blocked::UPDATE_BLOCKED;
use super::world_damage::WORLD_DAMAGED;
use crate::error_chain::cut;
use crate::notify::{Channel, ChannelError};
use crate::requeue::Outcome;
use crate::server::constraints::manual_recovery::step_needs_manual_recovery;
use crate::server::crash_loop::CRASH_LOOP;
use crate::server::observe::Observed;
use validate::CheckedServer;

/// How long before its window an update is announced to the channels again.
pub(crate) const SOON: SignedDuration = SignedDuration::from_mins(10);
/// How long no newer version must have been possible before that is reported.
const LONG_BLOCKED: SignedDuration = SignedDuration::from_hours(14 * 24);
/// Minimum interval between two notifications of a plan. A list that is edited on a page produces a new plan each time, and only the last
/// one of an hour is sent.
const MIN_PLAN_INTERVAL: SignedDuration = SignedDuration::from_hours(1);
/// How long a notification is valid. A channel that is repaired in the morning still receives the notifications of the night.
const NOTIFICATION_VALID_FOR: SignedDuration = SignedDuration::from_hours(24);
/// The maximum of the CRD schema.
const MAX_NOTIFICATIONS: usize = 10;
/// Maximum length of a notification's texts in the schema, in bytes.
const MAX_TEXT_BYTES: usize = 512;
/// Maximum length of its short texts.
const MAX_SHORT_BYTES: usize = 64;
/// Placeholder if the text of the plan is no longer known.
const UNKNOWN_PLAN: &str = "the planned update";

/// The state of a server from which notifications are derived.
#[derive(Debug, Clone, Default)]
pub(crate) struct NotificationInput {
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
    pub(super) unverified: Option<String>,
    /// A failed set that cannot be rolled back automatically.
    pub(super) needs_manual_recovery: bool,
    /// Since when a set has failed or was rolled back, and why it needs manual recovery.
    pub(super) manual_recovery: Option<(Timestamp, String)>,
    /// Problems that last, each with its start and its text: no newer version is possible, a backup is missing, a crash loop, damage to worlds.
    pub(crate) lasting: BTreeMap<NotificationEvent, (Timestamp, String)>,
}

/// An update that will be applied.
#[derive(Debug, Clone)]
pub(super) struct Planned {
    pub(super) revision: String,
    pub(super) changes: String,
    /// For example `Sun 22 Nov 04:00 CET`, `now`, `needs approval`.
    pub(super) when: String,
    /// When its window opens. `None` if it is open, or no window is scheduled.
    pub(super) opens: Option<Timestamp>,
    /// That instant as text.
    pub(super) opens_at: String,
}

impl NotificationInput {
    /// The input from a complete pass. `status` is the one that is about to be written, with its conditions.
    pub(crate) fn new(
        server: &CheckedServer,
        report: &PassReport<'_>,
        before: &PaperMCServerStatus,
        status: &PaperMCServerStatus,
    ) -> Self {
        let plan = report.plan;
        let is_blocked = matches!(report.step, Step::Wait(WaitingOn::Blocked { .. } | WaitingOn::BelowFloor { .. }))
            || step_needs_manual_recovery(report.step) && !plan.is_waiting_to_roll_forward(report.step);
        let opens = status.next_window_at.filter(|_| !plan.gate.is_open());
        let downtime = status.available_update.as_ref().and_then(|update| update.cost.as_deref());
        let planned = status.update.as_ref().filter(|_| !is_blocked).map(|changes| Planned {
            revision: plan.goal.revision.to_string(),
            changes: with_downtime(changes, &downtime_suffix(downtime)),
            when: status.next_window.clone().unwrap_or_else(|| "no window opens automatically".to_owned()),
            opens,
            opens_at: opens.map(|at| format_time(at, &server.updates.zone, report.pass.now)).unwrap_or_default(),
        });
        let condition = |name: &str, wanted: &str| {
            status.conditions.iter().find(|condition| condition.type_ == name && condition.status == wanted)
        };
        let blocked = condition(UPDATE_BLOCKED, "True");
        let blocked_by = status.update_blocked.as_ref().and_then(|blocked| blocked.reason.clone());
        let no_backup = condition(BACKUP_READY, "False").filter(|condition| condition.reason != NEEDS_RESTART);
        let since = |condition: &Condition| (condition.last_transition_time.0, condition.message.clone());
        // A stop is reported separately, because the server may have been in the loop for a long time.
        let crash_loop = condition(CRASH_LOOP, "True").map(|condition| {
            (plan.crash_stopped_at().unwrap_or(condition.last_transition_time.0), condition.message.clone())
        });
        let is_down = |ready: &&Condition| ready.reason == NOT_RESPONDING || pending::is_overdue(report);
        let not_responding = condition("Ready", "False").filter(is_down);
        let lasting = [
            // The last known blockers if they are unknown now.
            (NotificationEvent::Blocked, blocked.map(|condition| condition.last_transition_time.0).zip(blocked_by)),
            (NotificationEvent::BackupFailed, no_backup.map(since)),
            (NotificationEvent::CrashLoop, crash_loop),
            (NotificationEvent::NotResponding, not_responding.map(since)),
            (NotificationEvent::WorldDamaged, condition(WORLD_DAMAGED, "True").map(since)),
        ];
        let lasting = lasting.into_iter().filter_map(|(event, lasts)| Some((event, lasts?))).collect();
        Self { planned, lasting, ..Self::from_rollout(report, before) }
    }

    /// The input from a pass without a plan that took a step of the rollout in progress.
    pub(super) fn from_rollout(report: &PassReport<'_>, before: &PaperMCServerStatus) -> Self {
        let end = Self::from_rollout_end(report.pass.observed, before);
        Self {
            problem: end.newly_failed().map(|_| failure_reason(report)),
            // This also holds while a newer set replaces the failed one, because there is no roll-back.
            needs_manual_recovery: needs_admin(&report.plan.observation)
                || matches!(
                    report.step,
                    Step::Wait(
                        WaitingOn::NoBackup | WaitingOn::RollbackWouldLoseProgress | WaitingOn::BelowFloor { .. }
                    )
                ),
            manual_recovery: manual_recovery_reason(report, before),
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
    pub(super) fn from_rollout_end(observed: &Observed, before: &PaperMCServerStatus) -> Self {
        Self {
            rollout_before: before.rollout.clone(),
            rollout: rollout_facts(&observed.facts),
            was_planned: before.update.clone(),
            down: downtime(observed.reply.report.as_deref()),
            unverified: observed.stable.as_ref().and_then(|record| record.unverified.clone()),
            ..Self::default()
        }
    }
}

/// All notifications, old and new. `before` are those of the last status.
pub(crate) fn next_notifications(
    before: &[NotificationState],
    channels: &[Channel],
    input: &NotificationInput,
    now: Timestamp,
) -> Vec<NotificationState> {
    if channels.is_empty() {
        return Vec::new();
    }
    let mut notifications = retained(before, channels, now);
    notifications.extend(
        end_notifications(input, now).map(|notification| NotificationState {
            pending: subscribers(channels, notification.event),
            ..notification
        }),
    );
    let left = manual_recovery_notification(&notifications, channels, input, now);
    notifications.extend(left);
    if let Some(planned) = &input.planned {
        let news = plan_notification(&notifications, channels, planned, now);
        if news.is_some() {
            // The new plan replaces one that is still pending.
            for old in notifications.iter_mut().filter(|old| old.event == NotificationEvent::Planned) {
                old.pending.clear();
            }
        }
        notifications.extend(news);
        let soon = soon_notification(&notifications, channels, planned, now);
        notifications.extend(soon);
    }
    for (&event, lasts) in &input.lasting {
        if event == NotificationEvent::Blocked && now < lasts.0 + LONG_BLOCKED {
            continue;
        }
        let news = lasting_notification(&notifications, channels, event, lasts, now);
        notifications.extend(news);
    }
    notifications.retain(|notification| {
        !notification.pending.is_empty()
            || !notification.given_up.is_empty()
            || before.iter().any(|old| is_same(old, notification))
    });
    trim(notifications)
}

/// The changes followed by their cost. Only the changes are truncated.
fn with_downtime(changes: &str, downtime: &str) -> String {
    format!("{}{downtime}", cut(changes, MAX_TEXT_BYTES.saturating_sub(downtime.len())))
}

/// Keeps the record of delivered notifications. Removed channels are dropped, and expired deliveries are given up.
fn retained(before: &[NotificationState], channels: &[Channel], now: Timestamp) -> Vec<NotificationState> {
    let exists = |name: &String| channels.iter().any(|channel| channel.name == *name);
    let retained = before.iter().cloned().map(|mut notification| {
        notification.pending.retain(exists);
        notification.given_up.retain(exists);
        if notification.until <= now {
            notification.given_up.append(&mut notification.pending);
        }
        notification
    });
    retained.collect()
}

/// Since when the last update has failed or was rolled back, and why it needs manual recovery.
fn manual_recovery_reason(report: &PassReport<'_>, before: &PaperMCServerStatus) -> Option<(Timestamp, String)> {
    let last = before.last_update.as_ref().filter(|last| !last.successful)?;
    let Step::Wait(waiting) = report.step else { return None };
    let why = if waiting.is_rollback_decision() {
        last.message.clone()
    } else if !last.going_back {
        // The earlier set has been up since the update, so the update is not the reason.
        return None;
    } else {
        let (does_not, log) = if waiting == WaitingOn::WorldRefused {
            ("open the worlds", "prepare")
        } else if waiting == WaitingOn::ServerDown {
            ("start", "papermc")
        } else {
            return None;
        };
        let why = init_message(report).unwrap_or_else(|| format!("see the log of container `{log}`"));
        format!("the server is down, because the previous version set does not {does_not}: {why}")
    };
    Some((last.applied_at, why))
}

/// A notification that manual recovery is needed. It is sent once, unless the failure itself was reported as such.
fn manual_recovery_notification(
    notifications: &[NotificationState],
    channels: &[Channel],
    input: &NotificationInput,
    now: Timestamp,
) -> Option<NotificationState> {
    let (since, why) = input.manual_recovery.as_ref()?;
    let is_reported = notifications
        .iter()
        .any(|notification| notification.event == NotificationEvent::Failed && notification.at >= *since);
    let changes = input.was_planned.as_deref().unwrap_or(UNKNOWN_PLAN);
    (!is_reported).then(|| NotificationState {
        pending: subscribers(channels, NotificationEvent::Failed),
        why: Some(cut(why, MAX_TEXT_BYTES)),
        ..new_notification(
            NotificationEvent::Failed,
            since.as_second().to_string(),
            changes,
            now,
            now + NOTIFICATION_VALID_FOR,
        )
    })
}

/// Notifications about an update that has ended since the last status, with success or failure.
fn end_notifications(input: &NotificationInput, now: Timestamp) -> impl Iterator<Item = NotificationState> {
    let NotificationInput {
        rollout_before,
        rollout,
        was_planned,
        down,
        problem,
        unverified,
        needs_manual_recovery,
        ..
    } = input;
    let both = rollout_before.as_ref().zip(rollout.as_ref());
    let changes = was_planned.as_deref().unwrap_or(UNKNOWN_PLAN);
    let stable = both.and_then(|(before, now)| match (&before.settled, &now.settled) {
        (Some(old), Some(new)) if old != new => Some(new.clone()),
        // A first start is no update.
        (Some(_) | None, Some(_) | None) => None,
    });
    let event = if *needs_manual_recovery { NotificationEvent::Failed } else { NotificationEvent::RolledBack };
    let why =
        problem.as_deref().map_or_else(|| "see `status.lastUpdate`".to_owned(), |problem| cut(problem, MAX_TEXT_BYTES));
    let failed = input.newly_failed().map(|revision| NotificationState {
        why: Some(why),
        ..new_notification(event, instant_key(revision, now), changes, now, now + NOTIFICATION_VALID_FOR)
    });
    let down = down.map(|down| cut(&format_short_duration(down), MAX_SHORT_BYTES));
    let done = stable.map(|revision| NotificationState {
        down,
        why: unverified.as_ref().map(|why| cut(why, MAX_TEXT_BYTES)),
        ..new_notification(
            NotificationEvent::Done,
            instant_key(&revision, now),
            changes,
            now,
            now + NOTIFICATION_VALID_FOR,
        )
    });
    failed.into_iter().chain(done)
}

/// A notification of a plan that was not reported yet.
fn plan_notification(
    notifications: &[NotificationState],
    channels: &[Channel],
    planned: &Planned,
    now: Timestamp,
) -> Option<NotificationState> {
    let last = newest(notifications, NotificationEvent::Planned);
    if let Some(last) = last {
        let has_ended = [NotificationEvent::Done, NotificationEvent::RolledBack, NotificationEvent::Failed]
            .into_iter()
            .any(|end| newest(notifications, end).is_some_and(|end| end.at >= last.at));
        // A plan that is still pending is replaced at once.
        let was_delivered = last.pending.is_empty();
        if last.about == planned.revision || (was_delivered && !has_ended && now < last.at + MIN_PLAN_INTERVAL) {
            return None;
        }
    }
    Some(NotificationState {
        pending: subscribers(channels, NotificationEvent::Planned),
        when: Some(cut(&planned.when, MAX_SHORT_BYTES)),
        ..new_notification(
            NotificationEvent::Planned,
            planned.revision.clone(),
            &planned.changes,
            now,
            now + NOTIFICATION_VALID_FOR,
        )
    })
}

/// The notification ten minutes before the window. Channels that have just received the plan are left out.
fn soon_notification(
    notifications: &[NotificationState],
    channels: &[Channel],
    planned: &Planned,
    now: Timestamp,
) -> Option<NotificationState> {
    let opens = planned.opens.filter(|opens| now < *opens && *opens <= now + SOON)?;
    let about = instant_key(&planned.revision, opens);
    if notifications
        .iter()
        .any(|notification| notification.event == NotificationEvent::Soon && notification.about == about)
    {
        return None;
    }
    let was_just_planned = newest(notifications, NotificationEvent::Planned).is_some_and(|plan| now < plan.at + SOON);
    let knows = |channel: &&Channel| was_just_planned && channel.is_subscribed_to(NotificationEvent::Planned);
    let pending =
        channels.iter().filter(|channel| channel.is_subscribed_to(NotificationEvent::Soon) && !knows(channel));
    Some(NotificationState {
        pending: pending.map(|channel| channel.name.clone()).collect(),
        when: Some(cut(&planned.opens_at, MAX_SHORT_BYTES)),
        ..new_notification(NotificationEvent::Soon, about, &planned.changes, now, opens)
    })
}

/// A notification about a lasting problem, once for each start of it.
fn lasting_notification(
    notifications: &[NotificationState],
    channels: &[Channel],
    event: NotificationEvent,
    (since, problem): &(Timestamp, String),
    now: Timestamp,
) -> Option<NotificationState> {
    let about = since.as_second().to_string();
    let is_reported =
        notifications.iter().any(|notification| notification.event == event && notification.about == about);
    (!is_reported).then(|| NotificationState {
        pending: subscribers(channels, event),
        ..new_notification(event, about, problem, now, now + NOTIFICATION_VALID_FOR)
    })
}

/// Limits the number of notifications. The newest of each kind is the record that it was sent. The rest is filled with pending ones, newest
/// first.
fn trim(mut notifications: Vec<NotificationState>) -> Vec<NotificationState> {
    notifications.sort_by(|a, b| (b.at, b.event, &b.about).cmp(&(a.at, a.event, &a.about)));
    let of_its_kind = |notifications: &[NotificationState], of: &NotificationState| {
        notifications.iter().find(|notification| notification.event == of.event).cloned()
    };
    let is_newest: Vec<bool> = notifications
        .iter()
        .map(|notification| {
            of_its_kind(&notifications, notification).is_some_and(|first| is_same(&first, notification))
        })
        .collect();
    let room = MAX_NOTIFICATIONS - is_newest.iter().filter(|is_newest| **is_newest).count();
    let mut others = 0;
    let mut retained: Vec<NotificationState> = notifications
        .into_iter()
        .zip(is_newest)
        .filter(|(notification, is_newest)| {
            let waits = !is_newest && !notification.pending.is_empty();
            others += usize::from(waits);
            *is_newest || (waits && others <= room)
        })
        .map(|(notification, _)| notification)
        .collect();
    retained.reverse();
    retained
}

fn newest(notifications: &[NotificationState], event: NotificationEvent) -> Option<&NotificationState> {
    notifications.iter().filter(|notification| notification.event == event).max_by_key(|notification| notification.at)
}

fn is_same(a: &NotificationState, b: &NotificationState) -> bool {
    a.event == b.event && a.about == b.about
}

fn subscribers(channels: &[Channel], event: NotificationEvent) -> Vec<String> {
    channels.iter().filter(|channel| channel.is_subscribed_to(event)).map(|channel| channel.name.clone()).collect()
}

fn new_notification(
    event: NotificationEvent,
    about: String,
    text: &str,
    at: Timestamp,
    until: Timestamp,
) -> NotificationState {
    NotificationState {
        event,
        about,
        at,
        until,
        what: cut(text, MAX_TEXT_BYTES),
        when: None,
        down: None,
        why: None,
        pending: Vec::new(),
        given_up: Vec::new(),
    }
}

/// A key that includes the instant, because the same revision may be rolled out and rolled back more than once.
fn instant_key(revision: &str, at: Timestamp) -> String {
    format!("{revision}@{}", at.as_second())
}

/// Requeues a server that waits for its window in time for the notification before it.
pub(crate) fn requeue_for_notification(outcome: Outcome, channels: &[Channel], now: Timestamp) -> Outcome {
    match outcome {
        Outcome::Waiting { until: Some(opens) } if !channels.is_empty() && now < opens - SOON => {
            outcome.no_later_than(opens - SOON, now)
        }
        Outcome::UpToDate
        | Outcome::Acted
        | Outcome::Polling { .. }
        | Outcome::CountingDown { .. }
        | Outcome::Waiting { .. }
        | Outcome::Failed { .. } => outcome,
    }
}

/// The problems of delivery: reason and message, for the condition and the Event `NotifyFailed`.
pub(crate) fn delivery_errors(
    errors: &[ChannelError],
    notifications: &[NotificationState],
    now: Timestamp,
) -> Option<(&'static str, String)> {
    let undelivered = notifications
        .iter()
        .filter(|notification| !notification.given_up.is_empty() && now < notification.until + NOTIFICATION_VALID_FOR);
    let given_up = undelivered.map(|notification| {
        let channels = notification.given_up.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        format!("{} was not delivered to {channels}", notification.event.as_str())
    });
    let reason = errors.first().map_or("NotDelivered", |error| error.error.reason());
    let messages = errors.iter().map(|error| error.error.message(&error.channel)).chain(given_up);
    let messages = messages.collect::<Vec<_>>().join("; ");
    (!messages.is_empty()).then(|| (reason, cut(&messages, 1_024)))
}

#[cfg(test)]
mod tests;
