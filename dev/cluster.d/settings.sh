# shellcheck shell=bash disable=SC2034,SC2154  # sourced by dev/cluster, which sets `here`; the names are used by the other parts
# Defines the paths, the addresses, and the output functions of the scripts.

say() { echo "$*" >&2; }

# die WHAT-AND-WHY WHAT-TO-DO
die() {
    echo "dev/cluster: $1" >&2
    echo "  ${2:-}" >&2
    exit 1
}

repository=$(dirname "$here")
state=${NIGHTSHIFT_STATE:-$repository/.dev}
case $state in /*) ;; *) state=$PWD/$state ;; esac
run=$state/run      # pid files, sockets, runtime state of containerd: `down` looks for this folder
logs=$state/log     # kept by `down`
pki=$state/pki
pods=$state/pods.log
archives=$state/images

existing() { [ "${CLUSTER:-}" = existing ]; }

# The two go.sum files pin every byte of the build, so their hash names the result.
cache=${XDG_CACHE_HOME:-${HOME:-}/.cache}
[ "$cache" != /.cache ] || die "HOME is not set, and the Kubernetes programs are kept below it." "Set HOME or XDG_CACHE_HOME."
bin=$cache/nightshift/kubernetes-$(cat "$here/go.sum" "$here/dns/go.sum" | sha256sum | cut -c1-16)/bin
# Helm has a separate folder, so that a new version does not rebuild Kubernetes.
helm_bin=$cache/nightshift/helm-$(sha256sum <"$here/helm/go.sum" | cut -c1-16)/bin
export PATH=$bin:$helm_bin:$PATH:/usr/sbin:/sbin

if existing; then
    [ -n "${KUBECONFIG:-}" ] || die "CLUSTER=existing, but KUBECONFIG is not set." "Set it to the kubeconfig of your cluster."
    kubeconfig=$KUBECONFIG
else
    kubeconfig=$state/kubeconfig
    export KUBECACHEDIR=$run/kubectl # otherwise every cluster would leave files in ~/.kube
fi

# The ports on 127.0.0.1.
etcd_port=2379 etcd_peer_port=2380 api_port=6443 controller_manager_port=10257 scheduler_port=10259

# One node per machine, because its namespace, veth and firewall table have fixed names.
node=nightshift
veth=nightshift0
host_ip=10.200.0.1
node_ip=10.200.0.2
pod_cidr=10.244.0.0/16
node_pod_cidr=10.244.0.0/24
service_cidr=10.96.0.0/16
api_service_ip=10.96.0.1
dns_service_ip=10.96.0.10
owner_file=/run/nightshift-dev.state # the state directory that owns the node of this machine

started_at=$(date +%s)
elapsed() { echo $(($(date +%s) - started_at)); }
kubectl() { command kubectl --kubeconfig "$kubeconfig" "$@"; }

require_linux_and_root() {
    local why=
    [ "$(uname -s)" = Linux ] || why="this is $(uname -s), and it takes Linux"
    [ -n "$why" ] || [ "$(id -u)" = 0 ] || why="you are not root, and it takes network namespaces, mounts and cgroups"
    [ -z "$why" ] || die "a local cluster cannot run here: $why." \
        "Use one that you have: set KUBECONFIG to its file and CLUSTER=existing, then give the same command again."
}

# Allows one `up` or `down` at a time. Started processes do not inherit the lock (see start).
lock() {
    mkdir -p "$state"
    exec 9>"$state/lock"
    if ! flock -n 9; then
        say "Another dev/cluster is running here. Waiting for it."
        flock -w 600 9 || die "another dev/cluster has held $state/lock for 10 minutes." "See what it is: fuser -v $state/lock"
    fi
    mkdir -p "$run" "$logs"
}
