//! Pure. Reports whether the schedule `spec.backup.schedule` is valid.

use crds::{PaperMCServer, PaperMCServerStatus};

use super::{LONGEST_MESSAGE, PassReport};
use crate::error_chain::cut;
use crate::k8s::events::EventText;
use crate::server::check::CheckedServer;

/// Type of the condition. It is absent without a schedule. Type and reasons are named as in other operators.
pub(super) const BACKUP_CRON_VALID: &str = "BackupCronValid";
/// Reason of the condition if it is false, and of the Event.
const INVALID: &str = "InvalidBackupCronExpression";
/// Reason of the condition if it is true.
const CONFIGURED: &str = "BackupCronScheduleConfigured";

/// The suggested action after the violation.
const WAY_OUT: &str = "Correct it or remove it: until then no copy is taken by the clock, and all else goes on";
/// Maximum length of the violation, to leave room for the suggested action. An object may be older than the limits of the schema.
const LONGEST_MISTAKE: usize = 800;

/// Status, reason and message of the condition. The message changes over time only with `status.backup.nextBackup`.
pub(super) fn in_words(
    server: &PaperMCServer,
    checked: &CheckedServer,
    report: &PassReport<'_>,
) -> Option<(bool, &'static str, String)> {
    if let Some(words) = problem(checked) {
        return Some((false, INVALID, words));
    }
    checked.backup.as_ref()?.schedule.as_ref()?;
    let written = server.spec.backup.as_ref()?.schedule.as_ref()?;
    let (cron, zone) = (&written.cron, written.time_zone.as_ref().unwrap_or(&checked.zone));
    let next = report.plan.copies.next;
    let next = next.map_or_else(String::new, |next| format!("; the next instant to be served is {next}"));
    let words = format!("the running server is copied by `{cron}` in the zone `{zone}`{next}");
    Some((true, CONFIGURED, cut(&words, LONGEST_MESSAGE)))
}

/// The Event, once for each violation.
pub(super) fn note(server: &CheckedServer, before: &PaperMCServerStatus) -> Option<EventText> {
    let text = problem(server)?;
    let is_known = before.conditions.iter().any(|it| it.type_ == BACKUP_CRON_VALID && it.message == text);
    (!is_known).then_some(EventText { reason: INVALID, warning: true, text })
}

fn problem(server: &CheckedServer) -> Option<String> {
    let problem = server.backup.as_ref()?.schedule_problem.as_ref()?;
    Some(format!("{}. {WAY_OUT}", cut(&problem.to_string(), LONGEST_MISTAKE)))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
    use serde_json::{Value, json};

    use super::*;
    use crate::server::check::check;
    use crate::server::check::tests::server;
    use crate::server::online_backup::OnlineBackups;
    use crate::server::report::tests::Pass;
    use crate::server::report::{PlanningError, conditions};

    /// A pass at 12:00 UTC over a server in the zone Europe/Berlin with this backup spec.
    fn pass(backup: &Value) -> Pass {
        let mut pass = Pass::new();
        write(&mut pass, backup);
        pass
    }

    fn write(pass: &mut Pass, backup: &Value) {
        pass.server = server(json!({"backup": backup, "timeZone": "Europe/Berlin"}));
        pass.checked = check(&pass.server).unwrap();
        look(pass, "2026-11-22T12:00:00Z");
    }

    fn look(pass: &mut Pass, now: &str) {
        let now: Timestamp = now.parse().unwrap();
        pass.plan.copies = OnlineBackups::of(&pass.server, &pass.checked, &pass.seen, &pass.before, false, now);
    }

    /// Status, reason and message of a condition.
    fn said(pass: &Pass, of: &str) -> Option<[String; 3]> {
        let found = pass.status().conditions.into_iter().find(|it| it.type_ == of)?;
        Some([found.status, found.reason, found.message])
    }

    fn wrong() -> Value {
        json!({"schedule": {"cron": "0 0 30 2 *"}})
    }

    #[test]
    fn backup_schedule_condition_gives_next_instant() {
        let mut of_berlin = pass(&json!({"schedule": {"cron": "0 5 * * *"}}));
        let words = "the running server is copied by `0 5 * * *` in the zone `Europe/Berlin`; the next instant to be \
                     served is 2026-11-23T04:00:00Z";
        let told = Some(["True", CONFIGURED, words].map(str::to_owned));
        assert_eq!(said(&of_berlin, BACKUP_CRON_VALID), told);
        assert_eq!(of_berlin.said(INVALID), Vec::<String>::new());
        of_berlin = of_berlin.next();
        look(&mut of_berlin, "2026-11-23T04:30:00Z");
        assert!(of_berlin.plan.copies.due.is_some());
        assert_eq!(said(&of_berlin, BACKUP_CRON_VALID), told);

        let elsewhere = pass(&json!({"schedule": {"cron": "0 5 * * *", "timeZone": "UTC"}}));
        let [_, _, words] = said(&elsewhere, BACKUP_CRON_VALID).unwrap();
        assert!(words.contains("in the zone `UTC`; the next instant to be served is 2026-11-23T05:00:00Z"), "{words}");
    }

    #[test]
    fn backup_schedule_condition_is_absent_without_schedule() {
        for backup in [json!(null), json!({}), json!({"enabled": false})] {
            assert_eq!(said(&pass(&backup), BACKUP_CRON_VALID), None, "{backup}");
        }
        let mut pass = pass(&wrong()).next();
        write(&mut pass, &json!({}));
        assert_eq!(said(&pass, BACKUP_CRON_VALID), None, "it goes with the schedule");
    }

    #[test]
    fn invalid_backup_schedule_condition_names_field_and_remedy() {
        let pass = pass(&wrong());
        let words = "spec.backup.schedule: `0 0 30 2 *` never happens: no month it names has such a day. Correct it or \
                     remove it: until then no copy is taken by the clock, and all else goes on";
        let told = Some(["False", INVALID, words].map(str::to_owned));
        assert_eq!(said(&pass, BACKUP_CRON_VALID), told);
        let ready = "none is taken by the clock, see `BackupCronValid`; no copy has been due yet";
        assert_eq!(said(&pass, "BackupReady"), Some(["True", "Ready", ready].map(str::to_owned)));
        assert_eq!(pass.status().backup.unwrap().next_backup, None);
        assert_eq!(said(&pass, "Resolved").unwrap()[0], "True", "all else goes on");
    }

    #[test]
    fn invalid_backup_schedule_event_is_sent_once_per_error() {
        let mut pass = pass(&wrong());
        assert_eq!(pass.said(INVALID).len(), 1);
        pass = pass.next();
        assert_eq!(pass.said(INVALID), Vec::<String>::new());
        write(&mut pass, &json!({"schedule": {"cron": "0 0 31 4 *"}}));
        assert_eq!(pass.said(INVALID).len(), 1, "another one");
        pass = pass.next();
        write(&mut pass, &json!({"schedule": {"cron": "0 5 * * *"}}));
        assert_eq!(pass.said(INVALID), Vec::<String>::new());
        pass = pass.next();
        write(&mut pass, &wrong());
        assert_eq!(pass.said(INVALID).len(), 1, "once more");
    }

    #[test]
    fn backup_schedule_message_keeps_remedy_when_cut() {
        let pass = pass(&json!({"schedule": {"cron": "9".repeat(3_000)}}));
        let [_, _, words] = said(&pass, BACKUP_CRON_VALID).unwrap();
        assert!(words.ends_with(WAY_OUT) && words.len() <= LONGEST_MESSAGE, "{words}");
    }

    #[test]
    fn backup_schedule_condition_stands_while_planning_fails() {
        let why = PlanningError::Spec("`spec.jvm.heap` is wrong".to_owned()).in_the_way();
        let pass = pass(&wrong()).next();
        let (told, report) = (said(&pass, BACKUP_CRON_VALID), pass.report());
        let of = |all: Vec<Condition>| all.into_iter().find(|it| it.type_ == BACKUP_CRON_VALID);
        let before = pass.before.conditions.as_slice();
        let kept = of(conditions::build_trouble(&pass.server, &why, false, report.now, before)).unwrap();
        assert_eq!(Some([kept.status, kept.reason, kept.message]), told);
        let without = check(&server(json!({}))).unwrap();
        let kept = of(conditions::build_on_trial(&pass.server, &without, &report, &why, &pass.before)).unwrap();
        assert_eq!(Some([kept.status, kept.reason, kept.message]), told);
    }
}
