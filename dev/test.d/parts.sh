# shellcheck shell=bash disable=SC2154  # build.sh, which is sourced first, sets `target`
# Sourced by dev/test, dev/test-all and dev/check: the parts that they share. Each part is measured, and has a budget in dev/budgets. The results of a
# run are in target/test-results, with the complete output of each test binary.

me=dev/${0##*/}
root=$PWD
results=$target/test-results
groups=() # process groups that were started and have not exited

say() { printf '%s\n' "$*" >&2; }
step() { printf '\n== %s\n' "$*" >&2; }

# begin_run [BUDGETS]: the column of dev/budgets to use, `test` or `test-all`. Without it, there are no budgets.
begin_run() {
    budgets=${1:-}
    SECONDS=0
    rm -rf "$results"
    mkdir -p "$results"
    touch "$results"/{parts,failed,counts,tests}
    trap at_end EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

# Starts a command in a separate process group, so that all its processes can be stopped.
start() { # COMMAND…
    set -m
    in_a_group "$@" </dev/null &
    set +m
    groups+=($!)
}

in_a_group() { # COMMAND…
    set +m
    trap - EXIT HUP INT TERM
    "$@"
}

# Waits for everything that was started. The first failure ends the run. A signal interrupts `wait` at once, but it would not interrupt a command.
wait_for_started() {
    local ended result=0 group left
    while [ ${#groups[@]} -gt 0 ]; do
        wait -n -p ended "${groups[@]}" || result=$?
        left=()
        for group in "${groups[@]}"; do [ "$group" = "$ended" ] || left+=("$group"); done
        groups=("${left[@]}")
        [ $result = 0 ] || exit "$result"
    done
}

# Runs a part of the run and waits for it.
part() { # NAME COMMAND…
    start measured "$@"
    wait_for_started
}

# Runs a part within a command that `start` has started.
measured() { # NAME COMMAND…
    local name=$1 began=$SECONDS result=0
    shift
    step "${name^}"
    "$@" &
    wait $! || result=$?
    took "$name" "$began"
    [ $result = 0 ] || say "$me: \"$name\" failed. See above."
    return $result
}

took() { # NAME BEGAN
    printf '%s\t%s\n' $((SECONDS - $2)) "$1" >>"$results/parts"
}

with_low_priority() { # COMMAND…
    renice -n 19 -p "$BASHPID" >/dev/null
    "$@"
}

check_dependencies() {
    dev/check-duplicates
    dev/check-licences
    dev/check-purity
}

# Takes 10 minutes once per machine. Nothing else is compiled beside it, so that the budgets of the other parts hold on each machine.
build_kubernetes_and_helm() {
    [ "${CLUSTER:-}" = existing ] || dev/cluster build
    dev/cluster helm
}

# Lists the folders of all crates. An inner crate is after the outer one.
members() { sed -n 's/^members = \[\(.*\)\]/\1/p' Cargo.toml | tr -d '",' | tr ' ' '\n'; }

run_clippy() { cargo clippy --workspace --all-features --all-targets -- -D warnings; }

# Builds and lists the test binaries: NAME, folder of the package and path, separated by tabs. The unit tests of a library have the name of its
# package, which is the name of its folder. Another test is `package/test`. Programs have no unit tests.
list_tests_of() { # COMMAND-OF-BUILD.SH…
    local answer
    answer=$(mktemp -p "$results" cargo.XXXX)
    "$@" --message-format json-render-diagnostics >"$answer"
    sed -nE '/"profile":\{[^}]*"test":true\}/ s/.*"manifest_path":"([^"]*\/([^/"]+))\/Cargo.toml","target":\{"kind":\["([a-z-]+)"\].*"name":"([^"]+)","src_path".*"executable":"([^"]+)".*/\2\t\3\t\4\t\1\t\5/p' \
        "$answer" | awk -F '\t' -v OFS='\t' '$2 != "bin" { print ($2 == "test" ? $1 "/" $3 : $1), $4, $5 }' >"$answer.list"
    [ -s "$answer.list" ] || { say "$me: cargo named no test binary. Its answer is in $answer." && return 1; }
    mv "$answer.list" "$results/binaries"
}

# Lists the names of all test binaries except these.
all_but() { # NAME…
    cut -f1 "$results/binaries" | grep -vxF "$(printf '%s\n' "$@")" || true
}

# Runs one test binary as cargo does: in the folder of its package. Failed tests do not end the run. Their output is printed at the end. The flag that
# measures each test belongs to an unstable part of the test harness. RUSTC_BOOTSTRAP permits it for this process only.
run_binary() { # NAME ARGUMENT…
    local name=$1 folder path log result=0 began=$SECONDS measure=(-Z unstable-options --report-time) counts
    shift
    IFS=$'\t' read -r folder path < <(awk -F '\t' -v OFS='\t' -v name="$name" '$1 == name { print $2, $3 }' "$results/binaries") ||
        { say "$me: there is no test binary $name." && return 1; }
    log=$results/${name//\//-}.log
    [ "$name" != resolver/scenarios ] || measure=() # it has another harness without that flag
    (
        cd "$folder"
        export CARGO_MANIFEST_DIR=$folder INSTA_WORKSPACE_ROOT=$root RUSTC_BOOTSTRAP=1
        "$path" "${measure[@]}" "$@" 2>&1
    ) | follow "$name" "$log" || result=$?
    # "test NAME ... ok <1.234s>"
    awk -v OFS='\t' -v of="$name" '/^test .* \.\.\. (ok|FAILED) <[0-9.]+s>$/ { seconds = $NF; gsub(/[<s>]/, "", seconds); print seconds, of, $2 }' \
        "$log" >>"$results/tests"
    # "test result: ok. 12 passed; 0 failed; …". A binary that fails without this line, or that has run no test, counts as one failed test.
    counts=$(awk -v result=$result '/^test result: / { passed += $4; failed += $6 } END { if (!failed && (result || !passed)) failed = 1; print passed + 0, failed + 0 }' "$log")
    echo "$counts" >>"$results/counts"
    [[ $counts == *" 0" ]] || echo "$name" >>"$results/failed"
    say "   $name: ${counts/ / passed, } failed, $((SECONDS - began)) s"
}

# Tests in a cluster take minutes, so their results are printed at once.
follow() { # NAME LOG
    if [ "$1" = operator/cluster ]; then tee "$2" >&2; else cat >"$2"; fi
}

# Runs several binaries with the same arguments, AT-ONCE of them at the same time.
run_binaries() { # AT-ONCE "NAME…" ARGUMENT…
    local at_once=$1 names=$2 name running=0
    shift 2
    for name in $names; do
        if [ $running -ge "$at_once" ]; then
            wait -n
            running=$((running - 1))
        fi
        run_binary "$name" "$@" &
        running=$((running + 1))
    done
    while [ $running -gt 0 ]; do
        wait -n
        running=$((running - 1))
    done
}

# Runs tests in a cluster. Starts a cluster if none is running. The programs for its images have been built.
tests_in_a_cluster() { # FILTER…
    local began=$SECONDS
    step "Start of the cluster"
    export NIGHTSHIFT_PROGRAMS=$programs
    # shellcheck source=/dev/null
    . dev/cluster.d/for-a-run.sh
    took "start of the cluster" "$began"
    # Each test has its own namespace and mostly waits. With five tests at a time, two cores were half idle.
    measured "tests in a cluster" run_binary operator/cluster "$@" --test-threads=7
}

build_other_tests() { measured "build of the other tests" with_low_priority list_tests_of build --tests; }

# Runs all tests except those in a cluster, at the same time as these. Tests in a cluster mostly wait and leave half of the CPU time. The tests of the
# agent also wait for real time, so they keep their priority.
other_tests() {
    local agent
    measured "tests of the agent" run_binary agent/agent --test-threads=8 &
    agent=$!
    measured "other tests" with_low_priority run_binaries 2 "$(by_length)"
    wait "$agent"
}

# Lists the binaries of `other_tests`. The slowest are first, so that none of them runs alone at the end.
by_length() {
    local long=(resolver/brute_force operator scheduler/rollout_model resolver/lock_checker resolver cli/cli agent scheduler)
    printf '%s\n' "${long[@]}"
    all_but operator/cluster agent/agent "${long[@]}"
}

# Called by `trap`: stops running commands, prints the tables, and fails the run if a test has failed or a part took too long.
at_end() {
    local status=$? group
    trap - EXIT
    trap '' HUP INT TERM
    for group in "${groups[@]}"; do kill -- "-$group" 2>/dev/null || true; done
    wait
    print_failures
    if ! print_seconds || [ -s "$results/failed" ]; then [ $status != 0 ] || status=1; fi
    print_slowest
    [ $status = 0 ] || say "
$me: failed, see above."
    # CI looks for this line.
    [ ! -s "$results/counts" ] || awk '{ passed += $1; failed += $2 } END { printf "\n%d passed, %d failed\n", passed, failed }' "$results/counts" >&2
    exit $status
}

print_failures() {
    local name
    while read -r name; do
        step "FAILED: $name"
        cat "$results/${name//\//-}.log" >&2
    done <"$results/failed"
}

# Prints the duration of each part and its budget. Fails if a part exceeds its budget by more than half.
print_seconds() {
    took "all of it" 0
    step "Seconds"
    awk -F '\t' -v me="$me" -v column="$budgets" -v slower="${NIGHTSHIFT_SLOWER:-1}" '
        NR == FNR && /^ *[0-9-]+ +[0-9-]+ +/ {
            split($0, words, " ")
            match($0, /^ *[0-9-]+ +[0-9-]+ +/)
            budget[substr($0, RLENGTH + 1)] = words[column == "test" ? 1 : 2] * slower
        }
        NR == FNR { next }
        FNR == 1 { printf "%8s %8s  %s\n", "seconds", "budget", "part" }
        { printf "%8d %8s  %s\n", $1, column ? budget[$2] : "", $2 }
        column && !budget[$2] { wrong = wrong me ": dev/budgets has no budget for \"" $2 "\". Add one.\n" }
        column && $1 > 1.5 * budget[$2] {
            wrong = wrong me sprintf(": \"%s\" took %d s, and its budget is %d s. Find what became slow and make it fast, or move it to `make test-all`. If neither is possible, raise the budget in dev/budgets. A slow or busy machine: NIGHTSHIFT_SLOWER=2 doubles all budgets.\n", $2, $1, budget[$2])
        }
        END { printf "%s", wrong; exit (wrong != "") }
    ' dev/budgets "$results/parts" >&2
}

print_slowest() {
    [ -s "$results/tests" ] || return 0
    step "The ten slowest tests"
    LC_ALL=C sort -rn "$results/tests" | awk -F '\t' 'NR <= 10 { printf "%8.1f  %s %s\n", $1, $2, $3 }' >&2
}
