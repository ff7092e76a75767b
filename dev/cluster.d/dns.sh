# shellcheck shell=bash disable=SC2154  # sourced by dev/cluster; settings.sh sets the names
# Runs CoreDNS as a process on the node behind the Service kube-dns. The agents find the operator's store by the name of its Service.

start_dns() {
    cat >"$state/Corefile" <<COREFILE
cluster.local:53 in-addr.arpa:53 {
    bind $node_ip
    errors
    kubernetes cluster.local in-addr.arpa {
        kubeconfig $pki/coredns.kubeconfig
        pods insecure
        ttl 5
    }
}
# The node has no external network. Answer at once that other names do not exist.
.:53 {
    bind $node_ip
    template ANY ANY {
        rcode NXDOMAIN
    }
}
COREFILE
    kubectl apply -f - >/dev/null <<YAML
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: system:coredns }
rules:
- { apiGroups: [""], resources: [endpoints, services, pods, namespaces], verbs: [list, watch] }
- { apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: system:coredns }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:coredns }
subjects: [{ apiGroup: rbac.authorization.k8s.io, kind: User, name: system:coredns }]
---
apiVersion: v1
kind: Service
metadata: { name: kube-dns, namespace: kube-system }
spec: { clusterIP: $dns_service_ip, ports: [{ name: dns, port: 53, protocol: UDP }, { name: dns-tcp, port: 53, protocol: TCP }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: kube-dns-node, namespace: kube-system, labels: { kubernetes.io/service-name: kube-dns } }
addressType: IPv4
ports: [{ name: dns, port: 53, protocol: UDP }, { name: dns-tcp, port: 53, protocol: TCP }]
endpoints: [{ addresses: [$node_ip], conditions: { ready: true } }]
YAML
    start coredns nsenter --net="$network" coredns -conf "$state/Corefile"
}

stop_dns() { stop coredns 1; }
