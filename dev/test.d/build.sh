# shellcheck shell=bash disable=SC2034  # the names are used by the scripts that source this
# Sourced in the root of the repository: the environment of the single build. Tests, container images and clippy share it, so that no crate is
# compiled twice.

# One set of features for everything. Another set would compile most crates again.
features=operator/cluster-tests,operator/wrong-clock
# `make test-all` has another profile: its tests compute longer, so a longer build with optimisation pays off.
profile=${profile:-dev}

# With a target, flags do not apply to build scripts and procedural macros, which cannot be static.
CARGO_BUILD_TARGET=$(rustc -vV | sed -n 's/^host: //p')
# Static: the container images have no libc.
RUSTFLAGS="-C target-feature=+crt-static"
# Clippy checks the crates of the workspace while it compiles them. `cargo clippy -- -D warnings` sets these two variables itself.
RUSTC_WORKSPACE_WRAPPER=$(rustc --print sysroot)/bin/clippy-driver
CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
# An incremental build takes a sixth longer the first time.
CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}
export CARGO_BUILD_TARGET RUSTFLAGS RUSTC_WORKSPACE_WRAPPER CLIPPY_ARGS CARGO_INCREMENTAL

target=${CARGO_TARGET_DIR:-$PWD/target}
programs=$target/$CARGO_BUILD_TARGET/${profile/#dev/debug}

# Builds the programs, and the tests that the arguments select. There are no examples, but this selection makes cargo compile the programs with
# the features that tests need. With `--bins` alone it would compile them with fewer, and for the tests a second time.
build() { cargo build --profile "$profile" --workspace --features "$features" --bins --examples "$@"; }

# Builds the unit tests and the tests that the arguments select.
build_unit_tests() { cargo test --profile "$profile" --workspace --features "$features" --no-run --lib "$@"; }

# Runs a command that has a separate build. Call it in a subshell.
with_own_build() { # COMMAND…
    unset CARGO_BUILD_TARGET RUSTFLAGS RUSTC_WORKSPACE_WRAPPER CLIPPY_ARGS
    "$@"
}
