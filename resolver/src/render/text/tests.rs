//! Pure. Tests of single sentences. Whole texts are tested by the scenarios and on the recorded data.

use jiff::SignedDuration;

use super::*;
use crate::explanation::{Conflict, Hint, HintStep, LastRead, Reason, Span, Unanswerable};
use crate::model::budget::{BudgetExceeded, Limit};
use crate::model::software::{PaperName, Software};
use crate::render::phrases;

fn timestamp(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn dates_and_durations_are_written_as_phrases() {
    let now = timestamp("2026-01-20T18:00:00Z");
    assert_eq!(phrases::date(timestamp("2025-10-06T23:59:59Z")), "6 October 2025");
    assert_eq!(phrases::read_time(timestamp("2026-01-20T09:12:00Z"), now), "read today 09:12 UTC");
    assert_eq!(phrases::read_time(timestamp("2026-01-19T09:12:00Z"), now), "read on 19 January 2026");
    assert_eq!(phrases::duration(SignedDuration::from_hours(72)), "3 days");
    assert_eq!(phrases::duration(SignedDuration::from_hours(36)), "36 hours");
    assert_eq!(phrases::duration(SignedDuration::from_mins(1)), "1 minute");
}

#[test]
fn lists_in_text_are_bounded_and_keep_newest() {
    assert_eq!(phrases::list(&["a"], 3), "a");
    assert_eq!(phrases::list(&["a", "b", "c"], 3), "a, b and c");
    assert_eq!(phrases::list(&["a", "b", "c", "d", "e"], 3), "a, b, c and 2 more");
    let spans: Vec<Span> = ["1.8.8", "1.12.2", "1.16.5", "1.20.4", "1.21.1", "26.2"]
        .map(|version| Span { from: version.parse().unwrap(), to: version.parse().unwrap() })
        .into();
    assert_eq!(phrases::spans(&spans), "2 older ranges, 1.16.5, 1.20.4, 1.21.1 and 26.2");
}

fn unread_with_known(unread: Vec<(String, String)>, known: Vec<LastRead>) -> Explanation {
    let (server, fetch, unverified) = ("games/lobby".to_owned(), Vec::new(), Vec::new());
    Explanation::Unanswerable(Unanswerable { server, fetch, unverified, unread, known })
}

#[test]
fn unread_upstreams_are_listed_beside_last_read_times() {
    let read = |what: &str, read_at: &str| LastRead { what: what.to_owned(), read_at: timestamp(read_at) };
    let known = vec![read("Paper", "2026-01-20T09:12:00Z"), read("modrinth/shop", "2026-01-18T23:30:00Z")];
    let unread = vec![("modrinth/warps".to_owned(), "it answers 503".to_owned())];
    assert_eq!(
        render(&unread_with_known(unread, known), timestamp("2026-01-20T18:00:00Z")),
        "no result for games/lobby: some metadata is missing.\n  \
         modrinth/warps  could not be read: it answers 503\n\
         Known: Paper (read today 09:12 UTC) and modrinth/shop (read on 18 January 2026).\n"
    );
}

#[test]
fn titles_lose_control_characters_and_line_breaks() {
    let project = "modrinth/via".to_owned();
    let because = "Via\u{1b}[2J\u{9b}1A\u{202e}Version\nPaper runs\u{7}".to_owned();
    let unread = vec![(project, because)];
    let text = render(&unread_with_known(unread, Vec::new()), timestamp("2026-01-20T18:00:00Z"));
    assert_eq!(text.lines().nth(1), Some("  modrinth/via  could not be read: Via[2J1AVersionPaper runs"));
    assert_eq!(text.lines().count(), 2, "{text}");
}

#[test]
fn exceeded_budget_text_makes_no_claim() {
    let given_up = |limit, names: &[&str]| {
        let clashing = names.iter().map(|&name| name.to_owned()).collect();
        render(&Explanation::GaveUp(BudgetExceeded { steps: 9, limit, clashing }), timestamp("2026-01-20T18:00:00Z"))
    };
    assert_eq!(
        given_up(Limit::Steps, &[]),
        "no solution was found within 9 steps. A solution may still exist.\n\
         Pin a plugin or the server (`spec.version`) to make the search smaller, and please report it.\n"
    );
    assert_eq!(
        given_up(Limit::Time, &["A", "B"]),
        "no solution was found within the time limit (conflicting: A and B). A solution may still exist.\n\
         Pin one of them (`spec.version` on its Plugin) to make the search smaller, and please report it.\n"
    );
    assert_eq!(
        given_up(Limit::Memory, &["A", "B"]),
        "no solution was found within the memory limit, after 9 steps (conflicting: A and B). A solution may still exist.\n\
         Pin one of them (`spec.version` on its Plugin) to make the search smaller, and please report it.\n"
    );
}

#[test]
fn summary_is_one_line_without_cut_names() {
    let summary = |plugin: &str| {
        let paper =
            |minecraft: &str| PaperName { software: Software::Paper, minecraft: minecraft.parse().unwrap(), build: 7 };
        let reason = |at: usize| Reason::NoSuchRelease {
            object: "claims".to_owned(),
            plugin: format!("{plugin}{at}"),
            version: "1".to_owned(),
            nearest: Vec::new(),
        };
        let release = |object: &str| HintStep::NoPluginDelay { object: object.to_owned() };
        let hint = Hint {
            steps: ["a", "b", "c", "d"].map(release).into(),
            gives: paper("26.2"),
            irreversible_from: Some("1.21.11".parse().unwrap()),
        };
        let conflict = Conflict {
            server: "games/lobby".to_owned(),
            software: Software::Paper,
            running: None,
            reasons: (0..8).map(reason).collect(),
            more: 2,
            hints: vec![hint],
            more_hints: 0,
            hints_left_out: None,
            waits: Vec::new(),
            unread: Vec::new(),
            lists_read_later: None,
        };
        Explanation::Impossible(conflict).summary()
    };
    assert_eq!(
        summary("Shop\n"),
        "The request for games/lobby cannot be met today: Shop0 1 (does not exist), Shop1 1 (does not exist), Shop2 1 (does not \
         exist) and 7 more. Hint (one-way): set `spec.updateDelay: 0s` on Plugin a, set `spec.updateDelay: 0s` on Plugin b, \
         set `spec.updateDelay: 0s` on Plugin c and 1 more. In full: `resolver explain server/lobby -n games`."
    );
    let long = "x".repeat(150);
    let line = summary(&long);
    assert_eq!(
        line.replace(&long, "Shop"),
        "The request for games/lobby cannot be met today: Shop0 1 (does not exist) and 9 more. Hint (one-way): set \
         `spec.updateDelay: 0s` on Plugin a and 3 more. In full: `resolver explain server/lobby -n games`."
    );
    assert!(line.len() <= MAX_SUMMARY_LENGTH, "{}", line.len());
}
