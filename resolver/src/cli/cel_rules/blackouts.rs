//! Pure. Checks blackouts beyond their schema: once or recurring, and an end after the start.

use crds::paper_mc_server::Blackout;
use jiff::Timestamp;

use super::CelViolations;

/// Syntax of both kinds.
const SYNTAX: &str = "write `from` and `to` for a single blackout, such as `from: \"2026-12-20T00:00:00+01:00\"`, or `cron` and `duration` \
                    for a recurring one, such as `cron: \"0 18 * * 5\"`, `duration: 6h`";

impl CelViolations {
    pub(super) fn check_blackout(&mut self, path: &str, blackout: &Blackout) {
        let Blackout { name: _, from, to, cron, duration, time_zone } = blackout;
        let once = from.is_some() || to.is_some();
        let of_a_cron = [("duration", duration.is_some()), ("timeZone", time_zone.is_some())];
        match (once, cron) {
            (true, Some(_)) => self.add(path, "is both single and recurring", SYNTAX),
            (false, None) => self.add(path, "has no time", SYNTAX),
            (false, Some(_)) if duration.is_none() => {
                self.add(&format!("{path}.duration"), "is missing", "write how long it lasts, such as `duration: 6h`");
            }
            (false, Some(_)) => {}
            (true, None) => {
                for (field, _) in of_a_cron.into_iter().filter(|(_, written)| *written) {
                    self.add(
                        &format!("{path}.{field}"),
                        "is only for a `cron`",
                        "remove it: `from` and `to` are sufficient",
                    );
                }
                self.check_span(path, from.as_deref(), to.as_deref());
            }
        }
        self.check_zone(&format!("{path}.timeZone"), time_zone.as_ref());
    }

    fn check_span(&mut self, path: &str, from: Option<&str>, to: Option<&str>) {
        let mut read = |field: &str, text: Option<&str>| -> Option<Timestamp> {
            let path = format!("{path}.{field}");
            let Some(text) = text else {
                self.add(&path, "is missing", "write both `from` and `to`");
                return None;
            };
            let read = text.parse();
            if read.is_err() {
                self.add(&path, &format!("is `{text}`, which does not exist"), "write a day and a time that exist");
            }
            read.ok()
        };
        if let (Some(from), Some(to)) = (read("from", from), read("to", to))
            && to <= from
        {
            self.add(&format!("{path}.to"), "is not later than `from`", "write the later instant as `to`");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::check_server;

    fn violations(blackouts: &Value) -> String {
        let schedule = json!({"maintenanceWindow": {"cron": "@daily"}, "blackouts": blackouts});
        let server = serde_json::from_value(json!({
            "apiVersion": "nightshift.dev/v1alpha1", "kind": "PaperMCServer", "metadata": {"name": "lobby"},
            "spec": {"updateStrategy": "auto", "updateSchedule": schedule},
        }));
        let lines: Vec<String> = check_server(&server.unwrap()).iter().map(ToString::to_string).collect();
        lines.join("\n")
    }

    #[test]
    fn blackout_is_single_or_recurring_and_ends_after_start() {
        let good = json!([
            {"name": "once", "from": "2026-12-20T00:00:00+01:00", "to": "2027-01-07T00:00:00Z"},
            {"name": "again", "cron": "0 18 * * 5", "duration": "6h", "timeZone": "Europe/Berlin"},
        ]);
        assert_eq!(violations(&good), "");
        insta::assert_snapshot!(violations(&json!([
            {"name": "when"},
            {"name": "both", "from": "2026-12-20T00:00:00Z", "cron": "@daily"},
            {"name": "endless", "from": "2026-12-20T00:00:00Z"},
            {"name": "long", "cron": "@daily"},
            {"name": "mixed", "from": "2026-02-30T00:00:00Z", "to": "2026-12-20T00:00:00Z", "duration": "6h"},
            {"name": "backwards", "from": "2026-12-20T00:00:00Z", "to": "2026-12-19T00:00:00Z"},
            {"name": "zone", "cron": "@daily", "duration": "6h", "timeZone": "Europe/Berlim"},
        ])), @r#"
        PaperMCServer lobby: `spec.updateSchedule.blackouts[0]` has no time. Write `from` and `to` for a single blackout, such as `from: "2026-12-20T00:00:00+01:00"`, or `cron` and `duration` for a recurring one, such as `cron: "0 18 * * 5"`, `duration: 6h`
        PaperMCServer lobby: `spec.updateSchedule.blackouts[1]` is both single and recurring. Write `from` and `to` for a single blackout, such as `from: "2026-12-20T00:00:00+01:00"`, or `cron` and `duration` for a recurring one, such as `cron: "0 18 * * 5"`, `duration: 6h`
        PaperMCServer lobby: `spec.updateSchedule.blackouts[2].to` is missing. Write both `from` and `to`
        PaperMCServer lobby: `spec.updateSchedule.blackouts[3].duration` is missing. Write how long it lasts, such as `duration: 6h`
        PaperMCServer lobby: `spec.updateSchedule.blackouts[4].duration` is only for a `cron`. Remove it: `from` and `to` are sufficient
        PaperMCServer lobby: `spec.updateSchedule.blackouts[4].from` is `2026-02-30T00:00:00Z`, which does not exist. Write a day and a time that exist
        PaperMCServer lobby: `spec.updateSchedule.blackouts[5].to` is not later than `from`. Write the later instant as `to`
        PaperMCServer lobby: `spec.updateSchedule.blackouts[6].timeZone` is `Europe/Berlim`, which is not a time zone. Did you mean `Europe/Berlin`?
        "#);
    }
}
