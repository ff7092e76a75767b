# shellcheck shell=bash disable=SC2154  # sourced by dev/cluster; settings.sh sets the names
# Runs one node: containerd, kubelet and kube-proxy in a separate network namespace, behind one veth. The host routes the pod and service networks to
# it, so pods and services can be reached from the host. The node has no route to the outside. The host does not forward packets, and its firewall
# rules are not changed.

containerd_socket=$run/containerd.sock
network=$run/network # the namespace, mounted here and not by `ip netns`, which would leave its own folder mounted

# Not `ip netns exec`, because it mounts a new /sys and hides the cgroups.
on_node() { nsenter --net="$network" "$@"; }
ctr() { command ctr --address "$containerd_socket" --namespace k8s.io "$@"; }

refuse_foreign_node() {
    local owner
    owner=$(cat "$owner_file" 2>/dev/null || true)
    if ip link show "$veth" >/dev/null 2>&1; then
        [ "$owner" = "$state" ] || take_over_node_of "$owner"
    elif ip -4 route | grep -E '^10\.(200\.0|244|96)\.' >&2; then
        die "the host has a route into 10.200.0.0/24, $pod_cidr or $service_cidr (above), which the node needs." \
            "Use the cluster it belongs to: set KUBECONFIG and CLUSTER=existing."
    fi
    echo "$state" >"$owner_file"
}

# Takes over the network that remains when the machine was copied while its cluster was running, or when its processes were killed.
take_over_node_of() { # STATE-DIRECTORY
    # The command line of each of our processes, including the shims of the pods, contains its directory.
    if [ -z "$1" ] || pgrep -f -- "$1/(etcd|pki|kubelet|containerd|run)" >/dev/null; then
        die "the node of this machine belongs to another state directory: ${1:-unknown}." \
            "Take that one down first: NIGHTSHIFT_STATE=${1:-…} dev/cluster down"
    fi
    say "No process of the node of $1 is running. Its network is removed."
    remove_node_network
}

remove_node_network() {
    nft delete table ip "$node" 2>/dev/null || true
    ip link del "$veth" 2>/dev/null || true
}

start_node() {
    mkdir -p "$state/cni" "$state/kubelet" "$state/volume-plugins" "$state/volumes" "$run/containerd"
    connect_node
    write_containerd_settings
    write_kubelet_settings

    start containerd nsenter --net="$network" containerd --config "$state/containerd.toml"
    # `ctr` itself waits ten seconds for a missing daemon.
    until_true 30 timeout 2 ctr --address "$containerd_socket" version || die "containerd does not answer: $(tail -n 1 "$logs/containerd.log")" \
        "Look into $logs/containerd.log, then: dev/cluster down"
    load_base_image

    # The kubelet sets these for the whole machine. `down` restores them.
    [ -e "$run/sysctl.saved" ] ||
        sysctl vm.overcommit_memory kernel.panic kernel.panic_on_oops kernel.keys.root_maxkeys kernel.keys.root_maxbytes >"$run/sysctl.saved"
    start kubelet nsenter --net="$network" kubelet --config "$state/kubelet.yaml" --kubeconfig "$pki/kubelet.kubeconfig" \
        --hostname-override "$node" --node-ip "$node_ip" --root-dir "$state/kubelet" --cert-dir "$state/kubelet/pki" --v 1
    # The conntrack limits apply to the whole machine. 0 does not change them.
    start kube-proxy nsenter --net="$network" kube-proxy --kubeconfig "$pki/kube-proxy.kubeconfig" --hostname-override "$node" \
        --proxy-mode nftables --cluster-cidr "$pod_cidr" --bind-address-hard-fail=false \
        --conntrack-max-per-core 0 --conntrack-tcp-timeout-established 0s --conntrack-tcp-timeout-close-wait 0s \
        --healthz-bind-address 127.0.0.1:10256 --metrics-bind-address 127.0.0.1:10249
    until_true 60 node_ready || die "the node does not become ready: $(tail -n 1 "$logs/kubelet.log")" "Look into $logs/kubelet.log, then: dev/cluster down"
    say "Node $node ready after $(elapsed) s."
}

node_ready() { kubectl get node "$node" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}' | grep -q True; }

connect_node() {
    local module
    for module in overlay br_netfilter; do modprobe "$module" 2>/dev/null || true; done # often built in
    if ! ip link show "$veth" >/dev/null 2>&1; then
        rm -rf "$run/containerd" && mkdir -p "$run/containerd" # from before a reboot: it names processes that no longer exist
        touch "$network"
        unshare --net="$network" true
        ip link add "$veth" type veth peer name eth0 netns "$network"
        ip addr add "$host_ip/24" dev "$veth"
        ip link set "$veth" up
        on_node ip link set lo up
        on_node ip addr add "$node_ip/24" dev eth0
        on_node ip link set eth0 up
        on_node ip route add unreachable default # connections to the outside fail at once
        ip route add "$pod_cidr" via "$node_ip"
        ip route add "$service_cidr" via "$node_ip"
        on_node sysctl -qw net.ipv4.ip_forward=1 net.bridge.bridge-nf-call-iptables=1
    fi
    # The API server listens on 127.0.0.1 only. This rule lets the node and its pods reach it, but no other port of the loopback. (nft 1.0 requires a
    # newline before each closing brace.)
    sysctl -qw "net.ipv4.conf.$veth.route_localnet=1"
    nft -f - <<NFT
add table ip $node
delete table ip $node
table ip $node {
    chain to-api-server {
        type nat hook prerouting priority dstnat; policy accept;
        iifname "$veth" ip daddr $host_ip tcp dport $api_port dnat to 127.0.0.1:$api_port
    }
    chain loopback-guard {
        type filter hook input priority filter; policy accept;
        iifname "$veth" ip daddr 127.0.0.0/8 ct status dnat accept
        iifname "$veth" ip daddr 127.0.0.0/8 drop
    }
}
NFT
}

write_containerd_settings() {
    cat >"$state/cni/10-nightshift.conflist" <<JSON
{ "cniVersion": "1.0.0", "name": "nightshift", "plugins": [
  { "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
    "ipam": { "type": "host-local", "dataDir": "$run/addresses", "ranges": [[{ "subnet": "$node_pod_cidr" }]], "routes": [{ "dst": "0.0.0.0/0" }] } },
  { "type": "portmap", "capabilities": { "portMappings": true } } ] }
JSON
    cat >"$state/containerd.toml" <<TOML
version = 2
root = "$state/containerd"
state = "$run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp"]
[grpc]
  address = "$containerd_socket"
[plugins."io.containerd.internal.v1.opt"]
  path = "$state/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$base_image"
  stream_server_address = "127.0.0.1"
  netns_mounts_under_state_dir = true  # not in /run/netns, which other programs use
  disable_apparmor = true
  # Without CAP_SYS_RESOURCE (root in a small VM or container may lack it) a sandbox cannot have its -998, and runc ends with
  # "can't get final child's PID from pipe: EOF".
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
        Root = "$run/runc"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$state/cni"
TOML
}

write_kubelet_settings() {
    : >"$state/resolv.conf" # pods use CoreDNS only
    cat >"$state/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $node_ip
authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile: $pki/ca.crt } }
authorization: { mode: Webhook }
tlsCertFile: $pki/kubelet-server.crt
tlsPrivateKeyFile: $pki/kubelet-server.key
containerRuntimeEndpoint: unix://$containerd_socket
cgroupDriver: cgroupfs
failCgroupV1: false    # newer kubelets reject such a host otherwise
failSwapOn: false
clusterDNS: [$dns_service_ip]
clusterDomain: cluster.local
resolvConf: $state/resolv.conf
podLogsDir: $pods
volumePluginDir: $state/volume-plugins
maxPods: 240           # two hundred servers and their other pods; the node network has 254 addresses
serializeImagePulls: false
containerLogMaxSize: 5Mi
containerLogMaxFiles: 2
kubeAPIQPS: 100
kubeAPIBurst: 200
evictionHard: { memory.available: 100Mi, nodefs.available: "1%", imagefs.available: "1%" }
imageGCHighThresholdPercent: 100    # a garbage-collected image could not be pulled again
imageGCLowThresholdPercent: 99
YAML
}

stop_node() {
    stop kube-proxy 2
    stop kubelet 5
    stop containerd 5
    kill_containers
    local mount
    mounts_below_state | while read -r mount; do umount "$mount" 2>/dev/null || umount -l "$mount"; done
    [ ! -e "$run/sysctl.saved" ] || sysctl -qp "$run/sysctl.saved"
    # Objects with a fixed name may belong to another state directory. (After a reboot there is no owner.)
    case $(cat "$owner_file" 2>/dev/null || true) in "$state" | "")
        remove_node_network
        remove_traces
        rm -f "$owner_file"
        ;;
    esac
}

# Each pod has a shim of containerd, which manages its containers and outlives the daemon. Our shims are those with our socket.
our_shims() { pgrep -f -- "-address $containerd_socket" || true; }

kill_containers() {
    until_true 20 no_container_left || die "these shims of containerd do not exit: $(our_shims | paste -sd' ')." "See /proc/NUMBER/stack, then: dev/cluster down"
}

no_container_left() {
    local shims
    shims=$(our_shims | paste -sd,)
    [ -n "$shims" ] || return 0
    # Killing the first process of a container ends the whole container. After that, the shim can exit.
    # shellcheck disable=SC2046,SC2086  # one word for each number
    kill -KILL $(ps -o pid= --ppid "$shims") ${shims//,/ } 2>/dev/null || true
    return 1
}

# Removes the files that containerd, CNI and the kubelet write to fixed places outside of the state directory.
remove_traces() {
    local file folder
    for file in /run/containerd/s/*; do
        [ ! -S "$file" ] || grep -qF "$file" /proc/net/unix || rm -f "$file"
    done
    grep -rlsF "$run/" /var/lib/cni/results | xargs -r rm -f || true # each names the namespace of its pod
    for file in /var/log/containers/*; do
        case $(readlink "$file" || true) in "$pods"/*) rm -f "$file" ;; esac
    done
    rm -f /var/lib/kubelet/device-plugins/{kubelet.sock,kubelet_internal_checkpoint,DEPRECATION}
    # Removes empty folders only, so the groups and folders of another kubelet are kept.
    for folder in /sys/fs/cgroup/kubepods /sys/fs/cgroup/*/kubepods; do
        [ ! -d "$folder" ] || find "$folder" -depth -type d -exec rmdir {} + 2>/dev/null || true
    done
    for folder in /run/containerd/{s,} /var/lib/cni/{results,} /var/log/containers /var/lib/kubelet/{device-plugins,}; do
        rmdir "$folder" 2>/dev/null || true
    done
}
