//! Edge (reads). Tests on random small problems that answers depend on no hash seed and no thread, because std's maps
//! have a new seed in each process and thread.

use std::fs;
use std::process::{Command, Output};
use std::thread;

use resolver::Unsolvable;
use resolver::explain::Explanation;

use super::generate;
use super::problem::Problem;
use super::properties::{answer, explanation, said};
use super::saved::saved;
use super::software;

/// Problems that each thread answers.
const QUESTIONS: u64 = 300;
/// One in this many is also answered in separate processes.
const ONE_IN: u64 = 10;
/// Processes for each of those.
const PROCESSES: usize = 3;

fn problem(place: u64) -> Problem {
    let mut problem = generate::problem(20_000_000 + place);
    software::see_all(&mut problem.catalog);
    problem
}

#[test]
fn answer_bytes_are_identical_across_eight_threads() {
    // Each thread begins at another problem, so that no two solve the same one at the same time.
    let asked = |from: u64| {
        let mut answers: Vec<(u64, String)> = (0..QUESTIONS)
            .map(|place| (place + from) % QUESTIONS)
            .map(|place| (place, said(&problem(place))))
            .collect();
        answers.sort();
        answers
    };
    let all: Vec<Vec<(u64, String)>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|thread| scope.spawn(move || asked(thread * QUESTIONS / 8))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (thread, answers) in all.iter().enumerate() {
        for (one, other) in all[0].iter().zip(answers) {
            assert!(one == other, "thread {thread}, seed {}:\n{}\n-- not --\n{}", one.0, one.1, other.1);
        }
    }
}

#[test]
fn answer_bytes_are_identical_across_processes() {
    let desk = tempfile::tempdir().unwrap();
    let (mut yes, mut no) = (0, 0);
    for place in (0..QUESTIONS).step_by(usize::try_from(ONE_IN).unwrap()) {
        let problem = problem(place);
        let answer = answer(&problem);
        *if answer.is_ok() { &mut yes } else { &mut no } += 1;
        let file = desk.path().join(format!("{place}.json"));
        fs::write(&file, saved(&problem.catalog, std::slice::from_ref(&problem.request), problem.now)).unwrap();
        let run = |format: &str| -> Output {
            let mut command = Command::new(env!("CARGO_BIN_EXE_resolver"));
            command.env_clear().current_dir(desk.path()).args(["explain", "--format", format, "--problem"]);
            command.arg(&file).output().unwrap()
        };
        for format in ["json", "human"] {
            let outputs: Vec<Output> = (0..PROCESSES).map(|_| run(format)).collect();
            for output in &outputs {
                assert_eq!(output, &outputs[0], "seed {place}, {format}");
            }
            // Without an answer, stdout is empty.
            if format == "json" && !matches!(answer, Err(Unsolvable::Unanswerable(_))) {
                let there: Explanation = serde_json::from_slice(&outputs[0].stdout).unwrap_or_else(|error| {
                    panic!("seed {place}: {error}: {}", String::from_utf8_lossy(&outputs[0].stderr))
                });
                assert_eq!(there, explanation(&answer), "seed {place}");
            }
        }
    }
    assert!(yes > 8 && no > 8, "{yes} were yes, {no} no");
}
