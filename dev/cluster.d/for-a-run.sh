# shellcheck shell=bash
# Sourced by scripts that run tests in a cluster: one is there, with everything that they need, and the environment leads to it. Only what was
# started here is taken down at the end; also when a test fails or somebody interrupts it.
if [ "${CLUSTER:-}" != existing ] && ! dev/cluster is-up; then
    trap 'dev/cluster down' EXIT
    trap 'exit 130' INT TERM
    dev/cluster up
fi
dev/cluster images
[ "${CLUSTER:-}" != existing ] || dev/cluster load
dev/cluster helm
eval "$(dev/cluster env)"
