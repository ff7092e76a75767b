# shellcheck shell=bash disable=SC2154  # sourced by dev/cluster; settings.sh sets the names
# Runs etcd, API server, controller manager and scheduler, all on 127.0.0.1 of the host. `api_server_flags` and `controller_manager_flags` may hold
# other flags than the default ones, and `scheduler=no` leaves out the scheduler.

start_control_plane() {
    refuse_taken_ports etcd "$etcd_port" "$etcd_peer_port"
    refuse_taken_ports kube-apiserver "$api_port"
    refuse_taken_ports kube-controller-manager "$controller_manager_port"
    refuse_taken_ports kube-scheduler "$scheduler_port"

    # No fsync: the data of this cluster may be lost with the machine, and `down` deletes it.
    start etcd etcd --name default --data-dir "$state/etcd" --unsafe-no-fsync --log-level warn \
        --listen-client-urls "https://127.0.0.1:$etcd_port" --advertise-client-urls "https://127.0.0.1:$etcd_port" \
        --listen-peer-urls "http://127.0.0.1:$etcd_peer_port" --initial-advertise-peer-urls "http://127.0.0.1:$etcd_peer_port" \
        --initial-cluster "default=http://127.0.0.1:$etcd_peer_port" \
        --client-cert-auth --trusted-ca-file "$pki/etcd-ca.crt" --cert-file "$pki/etcd.crt" --key-file "$pki/etcd.key"

    rm -f "$logs/audit.log"
    [ -n "${api_server_flags+set}" ] || api_server_flags=(--audit-policy-file="$here/cluster.d/audit-policy.yaml" --audit-log-path="$logs/audit.log")
    start kube-apiserver kube-apiserver --bind-address=127.0.0.1 --secure-port="$api_port" --advertise-address="$host_ip" \
        --service-cluster-ip-range="$service_cidr" --allow-privileged=true --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction \
        --etcd-servers="https://127.0.0.1:$etcd_port" \
        --etcd-cafile="$pki/etcd-ca.crt" --etcd-certfile="$pki/apiserver-etcd.crt" --etcd-keyfile="$pki/apiserver-etcd.key" \
        --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" --client-ca-file="$pki/ca.crt" \
        --service-account-issuer=https://kubernetes.default.svc.cluster.local \
        --service-account-signing-key-file="$pki/service-accounts.key" --service-account-key-file="$pki/service-accounts.pub" \
        --kubelet-certificate-authority="$pki/ca.crt" --kubelet-client-certificate="$pki/apiserver-kubelet.crt" \
        --kubelet-client-key="$pki/apiserver-kubelet.key" --kubelet-preferred-address-types=InternalIP \
        --requestheader-client-ca-file="$pki/front-ca.crt" --requestheader-allowed-names=front-proxy-client \
        --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group \
        --requestheader-extra-headers-prefix=X-Remote-Extra- \
        --proxy-client-cert-file="$pki/front-proxy.crt" --proxy-client-key-file="$pki/front-proxy.key" "${api_server_flags[@]}"
    until_true 180 api_settled || true
    api_answers || die "the API server does not become ready: $(tail -n 1 "$logs/kube-apiserver.log")" \
        "Look into $logs/kube-apiserver.log and etcd.log, then: dev/cluster down"
    say "API server ready after $(elapsed) s."

    # More requests per second than by default, because the tests create a fleet of sixty servers at once.
    start kube-controller-manager kube-controller-manager --bind-address=127.0.0.1 --secure-port="$controller_manager_port" \
        --kubeconfig="$pki/controller-manager.kubeconfig" --authentication-kubeconfig="$pki/controller-manager.kubeconfig" \
        --authorization-kubeconfig="$pki/controller-manager.kubeconfig" --leader-elect=false --kube-api-qps=100 --kube-api-burst=200 \
        --root-ca-file="$pki/ca.crt" --service-account-private-key-file="$pki/service-accounts.key" --use-service-account-credentials=true \
        --cluster-signing-cert-file="$pki/ca.crt" --cluster-signing-key-file="$pki/ca.key" \
        --allocate-node-cidrs=true --cluster-cidr="$pod_cidr" --service-cluster-ip-range="$service_cidr" \
        ${controller_manager_flags[@]+"${controller_manager_flags[@]}"}
    [ "${scheduler:-}" = no ] || start kube-scheduler kube-scheduler --bind-address=127.0.0.1 --secure-port="$scheduler_port" --leader-elect=false \
        --kubeconfig="$pki/scheduler.kubeconfig" --authentication-kubeconfig="$pki/scheduler.kubeconfig" \
        --authorization-kubeconfig="$pki/scheduler.kubeconfig"
    until_true 60 kubectl -n default get serviceaccount default || die "the controllers do not work: there is no default service account." \
        "Look into $logs/kube-controller-manager.log, then: dev/cluster down"
}

# Ready, or exited: then waiting is pointless.
api_settled() { api_answers || gone kube-apiserver; }
api_answers() { alive kube-apiserver && [ "$(kubectl get --raw /readyz 2>/dev/null)" = ok ]; }

# A short grace period: the data is deleted next, so there is no need to drain or flush.
stop_control_plane() {
    stop kube-scheduler 1
    stop kube-controller-manager 1
    stop kube-apiserver 1
    stop etcd 1
}

# Removes the state, except logs, images and the lock. There must be no mount below the removed folders, because a bind mount leads to other files.
remove_state() {
    local mounted
    mounted=$(mounts_below_state)
    [ -z "$mounted" ] || die "still mounted: $mounted." "Unmount it, then: dev/cluster down"
    rm -rf --one-file-system "$run" "$pki" "$state"/{etcd,containerd,kubelet,cni,volumes,volume-plugins,pods.log} \
        "$kubeconfig" "$state"/{containerd.toml,kubelet.yaml,Corefile,resolv.conf}
}

mounts_below_state() { awk -v below="$state/" 'index($5, below) == 1 { print $5 }' /proc/self/mountinfo | sort -r; }
