//! Edge (reads). Tests on random small problems that answers are the same in every thread and process. The hash maps of
//! std have a new seed in each of them.

use std::process::Command;
use std::{fs, thread};

use super::problem::Problem;
use super::properties::{output_text, resolve_problem};
use super::{generate, software};

/// Number of problems that each thread solves.
const PROBLEMS: u64 = 300;
/// One of this many problems is also solved in separate processes.
const PROCESS_INTERVAL: usize = 10;
/// Number of separate processes.
const PROCESSES: usize = 3;

fn problem(index: u64) -> Problem {
    let mut problem = generate::problem(20_000_000 + index);
    software::verify_all_builds(&mut problem.catalog);
    problem
}

#[test]
fn answer_bytes_are_identical_across_eight_threads() {
    // Each thread starts at another problem, so that no two threads solve the same problem at the same time.
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
            assert!(one == other, "problem {}, thread 0:\n{}\n-- thread {thread} --\n{}", one.0, one.1, other.1);
        }
    }
}

/// Environment variable with the file to which a process that this test started writes its answers.
const ANSWERS_FILE: &str = "NIGHTSHIFT_ANSWERS_FILE";

#[test]
fn answer_bytes_are_identical_across_processes() {
    let problems: Vec<Problem> = (0..PROBLEMS).step_by(PROCESS_INTERVAL).map(problem).collect();
    let answers = problems.iter().map(output_text).collect::<Vec<_>>().join("\n");
    if let Some(file) = std::env::var_os(ANSWERS_FILE) {
        fs::write(file, answers).unwrap();
        return;
    }
    let solved = problems.iter().filter(|problem| resolve_problem(problem).is_ok()).count();
    assert!(
        solved > 8 && problems.len() - solved > 8,
        "too few problems are solvable or unsolvable: {solved} of {} are solvable",
        problems.len()
    );
    let directory = tempfile::tempdir().unwrap();
    for number in 0..PROCESSES {
        let file = directory.path().join(number.to_string());
        let mut process = Command::new(std::env::current_exe().unwrap());
        process.args(["--exact", "processes::answer_bytes_are_identical_across_processes"]).env(ANSWERS_FILE, &file);
        assert!(process.output().unwrap().status.success());
        assert!(fs::read_to_string(&file).unwrap() == answers, "the answers of process {number} differ");
    }
}
