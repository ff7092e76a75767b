//! Edge (reads). Tests on random small problems that answers depend on no hash seed and no thread, because std's maps
//! have a new seed in each process and thread.

use std::process::{Command, Output};
use std::{fs, thread};

use resolver::Unsolvable;
use resolver::explanation::Explanation;

use super::problem::Problem;
use super::properties::{explanation, output_text, resolve_problem};
use super::saved_query::saved_query_json;
use super::{generate, software};

/// Problems that each thread answers.
const PROBLEMS: u64 = 300;
/// One in this many is also answered in separate processes.
const PROCESS_INTERVAL: u64 = 10;
/// Processes for each of those.
const PROCESSES: usize = 3;

fn problem(index: u64) -> Problem {
    let mut problem = generate::problem(20_000_000 + index);
    software::verify_all_builds(&mut problem.catalog);
    problem
}

#[test]
fn answer_bytes_are_identical_across_eight_threads() {
    // Each thread begins at another problem, so that no two solve the same one at the same time.
    let outputs_from = |from: u64| {
        let mut outputs: Vec<(u64, String)> = (0..PROBLEMS)
            .map(|index| (index + from) % PROBLEMS)
            .map(|index| (index, output_text(&problem(index))))
            .collect();
        outputs.sort();
        outputs
    };
    let all: Vec<Vec<(u64, String)>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|thread| scope.spawn(move || outputs_from(thread * PROBLEMS / 8))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (thread, outputs) in all.iter().enumerate() {
        for (one, other) in all[0].iter().zip(outputs) {
            assert!(one == other, "thread {thread}, seed {}:\n{}\n-- not --\n{}", one.0, one.1, other.1);
        }
    }
}

#[test]
fn answer_bytes_are_identical_across_processes() {
    let directory = tempfile::tempdir().unwrap();
    let (mut yes, mut no) = (0, 0);
    for index in (0..PROBLEMS).step_by(usize::try_from(PROCESS_INTERVAL).unwrap()) {
        let problem = problem(index);
        let result = resolve_problem(&problem);
        *if result.is_ok() { &mut yes } else { &mut no } += 1;
        let file = directory.path().join(format!("{index}.json"));
        fs::write(&file, saved_query_json(&problem.catalog, std::slice::from_ref(&problem.request), problem.now))
            .unwrap();
        let run = |format: &str| -> Output {
            let mut command = Command::new(env!("CARGO_BIN_EXE_resolver"));
            command.env_clear().current_dir(directory.path()).args(["explain", "--format", format, "--problem"]);
            command.arg(&file).output().unwrap()
        };
        for format in ["json", "human"] {
            let outputs: Vec<Output> = (0..PROCESSES).map(|_| run(format)).collect();
            for output in &outputs {
                assert_eq!(output, &outputs[0], "seed {index}, {format}");
            }
            // Without an answer, stdout is empty.
            if format == "json" && !matches!(result, Err(Unsolvable::Unanswerable(_))) {
                let printed: Explanation = serde_json::from_slice(&outputs[0].stdout).unwrap_or_else(|error| {
                    panic!("seed {index}: {error}: {}", String::from_utf8_lossy(&outputs[0].stderr))
                });
                assert_eq!(printed, explanation(&result), "seed {index}");
            }
        }
    }
    assert!(yes > 8 && no > 8, "{yes} were yes, {no} no");
}
