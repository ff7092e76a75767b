# shellcheck shell=bash
# Sourced by scripts that run tests in a cluster. It provides a cluster with all required programs and images, and sets the environment for it. A
# cluster that it started is stopped at the end, also when a test fails or the script is interrupted.
if [ "${CLUSTER:-}" != existing ] && ! dev/cluster is-up; then
    trap 'dev/cluster down' EXIT
    trap 'exit 130' INT TERM
    dev/cluster up
fi
dev/cluster images
[ "${CLUSTER:-}" != existing ] || dev/cluster load
dev/cluster helm
eval "$(dev/cluster env)"
