//! Pure. Reports whether the schedule `spec.backup.schedule` is valid.

use crds::{PaperMCServer, PaperMCServerStatus};

use super::context::{MAX_MESSAGE_LENGTH, PassReport};
use crate::error_chain::cut;
use crate::k8s::events::EventText;
use validate::CheckedServer;

/// Type of the condition. It is absent without a schedule. Type and reasons are named as in other operators.
pub(super) const BACKUP_CRON_VALID: &str = "BackupCronValid";
/// Reason of the condition if it is false, and of the Event.
const INVALID: &str = "InvalidBackupCronExpression";
/// Reason of the condition if it is true.
const CONFIGURED: &str = "BackupCronScheduleConfigured";

/// The suggested action after the violation.
const FIX_HINT: &str =
    "Correct it or remove it: until then no scheduled backup is taken, and everything else continues";
/// Maximum length of the violation, to leave room for the suggested action. An object may be older than the limits of the schema.
const MAX_VIOLATION_LENGTH: usize = 800;

/// Status, reason and message of the condition. The message changes over time only with `status.backup.nextBackup`.
pub(super) fn condition_parts(
    server: &PaperMCServer,
    checked: &CheckedServer,
    report: &PassReport<'_>,
) -> Option<(bool, &'static str, String)> {
    if let Some(message) = problem(checked) {
        return Some((false, INVALID, message));
    }
    checked.data.backup.as_ref()?.schedule.as_ref()?;
    let written = server.spec.backup.as_ref()?.schedule.as_ref()?;
    let (cron, zone) = (&written.cron, written.time_zone.as_ref().unwrap_or(&checked.updates.zone));
    let next = report.plan.tasks.backups.next;
    let next = next.map_or_else(String::new, |next| format!(". The next backup is due at {next}."));
    let message = format!("Online backups are scheduled by `{cron}` in the zone `{zone}`{next}");
    Some((true, CONFIGURED, cut(&message, MAX_MESSAGE_LENGTH)))
}

/// The Event, once for each violation.
pub(super) fn event(server: &CheckedServer, before: &PaperMCServerStatus) -> Option<EventText> {
    let text = problem(server)?;
    let is_reported =
        before.conditions.iter().any(|condition| condition.type_ == BACKUP_CRON_VALID && condition.message == text);
    (!is_reported).then_some(EventText { reason: INVALID, warning: true, text })
}

fn problem(server: &CheckedServer) -> Option<String> {
    let problem = server.data.backup.as_ref()?.schedule_problem.as_ref()?;
    Some(format!("{}. {FIX_HINT}", cut(&problem.to_string(), MAX_VIOLATION_LENGTH)))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
    use serde_json::{Value, json};

    use super::*;
    use crate::server::online_backup::OnlineBackups;
    use crate::server::plan::PassInput;
    use crate::server::report::tests::Pass;
    use crate::server::report::{PlanningError, conditions};
    use crate::server::test_server::server;
    use validate::check;

    /// A pass at 12:00 UTC over a server in the zone Europe/Berlin with this backup spec.
    fn pass(backup: &Value) -> Pass {
        let mut pass = Pass::new();
        set_backup(&mut pass, backup);
        pass
    }

    fn set_backup(pass: &mut Pass, backup: &Value) {
        pass.server = server(json!({"backup": backup, "timeZone": "Europe/Berlin"}));
        pass.checked = check(&pass.server).unwrap();
        run_pass(pass, "2026-11-22T12:00:00Z");
    }

    fn run_pass(pass: &mut Pass, now: &str) {
        let now: Timestamp = now.parse().unwrap();
        pass.plan.tasks.backups =
            OnlineBackups::new(&pass.server, &pass.checked, &pass.observed, &pass.before, false, now);
    }

    /// Status, reason and message of a condition.
    fn condition_of(pass: &Pass, of: &str) -> Option<[String; 3]> {
        let found = pass.status().conditions.into_iter().find(|condition| condition.type_ == of)?;
        Some([found.status, found.reason, found.message])
    }

    fn invalid_schedule() -> Value {
        json!({"schedule": {"cron": "0 0 30 2 *"}})
    }

    #[test]
    fn backup_schedule_condition_gives_next_instant() {
        let mut of_berlin = pass(&json!({"schedule": {"cron": "0 5 * * *"}}));
        let message = "Online backups are scheduled by `0 5 * * *` in the zone `Europe/Berlin`. The next backup is \
        due at 2026-11-23T04:00:00Z.";
        let expected = Some(["True", CONFIGURED, message].map(str::to_owned));
        assert_eq!(condition_of(&of_berlin, BACKUP_CRON_VALID), expected);
        assert_eq!(of_berlin.event_texts(INVALID), Vec::<String>::new());
        of_berlin = of_berlin.next();
        run_pass(&mut of_berlin, "2026-11-23T04:30:00Z");
        assert!(of_berlin.plan.tasks.backups.due.is_some());
        assert_eq!(condition_of(&of_berlin, BACKUP_CRON_VALID), expected);

        let elsewhere = pass(&json!({"schedule": {"cron": "0 5 * * *", "timeZone": "UTC"}}));
        let [_, _, message] = condition_of(&elsewhere, BACKUP_CRON_VALID).unwrap();
        assert!(message.contains("in the zone `UTC`. The next backup is due at 2026-11-23T05:00:00Z."), "{message}");
    }

    #[test]
    fn backup_schedule_condition_is_absent_without_schedule() {
        for backup in [json!(null), json!({}), json!({"enabled": false})] {
            assert_eq!(condition_of(&pass(&backup), BACKUP_CRON_VALID), None, "{backup}");
        }
        let mut pass = pass(&invalid_schedule()).next();
        set_backup(&mut pass, &json!({}));
        assert_eq!(condition_of(&pass, BACKUP_CRON_VALID), None, "without a schedule there is no condition");
    }

    #[test]
    fn invalid_backup_schedule_condition_names_field_and_remedy() {
        let pass = pass(&invalid_schedule());
        let message = "spec.backup.schedule.cron: `0 0 30 2 *` never occurs: no month that it names has such a day. Correct it \
        or remove it: until then no scheduled backup is taken, and everything else continues";
        let expected = Some(["False", INVALID, message].map(str::to_owned));
        assert_eq!(condition_of(&pass, BACKUP_CRON_VALID), expected);
        let ready = "No scheduled backups are taken. See `BackupCronValid`. No backup has been due yet.";
        assert_eq!(condition_of(&pass, "BackupReady"), Some(["True", "Ready", ready].map(str::to_owned)));
        assert_eq!(pass.status().backup.unwrap().next_backup, None);
        assert_eq!(condition_of(&pass, "Resolved").unwrap()[0], "True", "everything else continues");
    }

    #[test]
    fn invalid_backup_schedule_event_is_sent_once_per_error() {
        let mut pass = pass(&invalid_schedule());
        assert_eq!(pass.event_texts(INVALID).len(), 1);
        pass = pass.next();
        assert_eq!(pass.event_texts(INVALID), Vec::<String>::new());
        set_backup(&mut pass, &json!({"schedule": {"cron": "0 0 31 4 *"}}));
        assert_eq!(pass.event_texts(INVALID).len(), 1, "another error is reported");
        pass = pass.next();
        set_backup(&mut pass, &json!({"schedule": {"cron": "0 5 * * *"}}));
        assert_eq!(pass.event_texts(INVALID), Vec::<String>::new());
        pass = pass.next();
        set_backup(&mut pass, &invalid_schedule());
        assert_eq!(pass.event_texts(INVALID).len(), 1, "a returning error is reported again");
    }

    #[test]
    fn backup_schedule_message_keeps_remedy_when_cut() {
        let pass = pass(&json!({"schedule": {"cron": "9".repeat(3_000)}}));
        let [_, _, message] = condition_of(&pass, BACKUP_CRON_VALID).unwrap();
        assert!(message.ends_with(FIX_HINT) && message.len() <= MAX_MESSAGE_LENGTH, "{message}");
    }

    #[test]
    fn backup_schedule_condition_stands_while_planning_fails() {
        let why = PlanningError::Spec("`spec.jvm.heap` is wrong".to_owned()).to_pass_blocked();
        let pass = pass(&invalid_schedule()).next();
        let (expected, report) = (condition_of(&pass, BACKUP_CRON_VALID), pass.report());
        let of = |all: Vec<Condition>| all.into_iter().find(|condition| condition.type_ == BACKUP_CRON_VALID);
        let before = pass.before.conditions.as_slice();
        let condition = of(conditions::build_blocked(&pass.server, &why, false, report.pass.now, before)).unwrap();
        assert_eq!(Some([condition.status, condition.reason, condition.message]), expected);
        let without = check(&server(json!({}))).unwrap();
        let report = PassReport { pass: PassInput { checked: &without, ..report.pass }, ..report };
        let condition = of(conditions::build_rollout(&report, &why)).unwrap();
        assert_eq!(Some([condition.status, condition.reason, condition.message]), expected);
    }
}
