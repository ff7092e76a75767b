# shellcheck shell=bash disable=SC2154  # sourced by dev/cluster; settings.sh sets the names
# Creates three certificate authorities, every certificate, the key of the service accounts, and a kubeconfig for each client. etcd has a separate
# authority, so that a client of another cluster on this loopback cannot connect to it by mistake.

make_certificates() {
    if [ ! -e "$pki/complete" ]; then
        rm -rf "$pki"
        mkdir -p "$pki"
        (umask 077 && cd "$pki" && all_certificates) 2>"$logs/certificates.log" || die "openssl could not create the certificates." "See $logs/certificates.log"
        touch "$pki/complete"
    fi
    install -m 600 "$pki/admin.kubeconfig" "$kubeconfig"
}

all_certificates() {
    local here_api=https://127.0.0.1:$api_port node_api=https://$host_ip:$api_port names
    authority ca nightshift-ca
    authority etcd-ca nightshift-etcd-ca
    authority front-ca nightshift-front-proxy-ca

    names=DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local
    certificate apiserver ca /CN=kube-apiserver serverAuth "$names,IP:127.0.0.1,IP:$api_service_ip,IP:$host_ip"
    certificate apiserver-kubelet ca /O=system:masters/CN=kube-apiserver-kubelet-client clientAuth
    certificate front-proxy front-ca /CN=front-proxy-client clientAuth
    certificate etcd etcd-ca /CN=etcd serverAuth,clientAuth DNS:localhost,IP:127.0.0.1
    certificate apiserver-etcd etcd-ca /CN=apiserver-etcd clientAuth
    certificate kubelet-server ca "/O=system:nodes/CN=system:node:$node" serverAuth "DNS:$node,IP:$node_ip,IP:127.0.0.1"

    client admin /O=system:masters/CN=admin "$here_api"
    client controller-manager /CN=system:kube-controller-manager "$here_api"
    client scheduler /CN=system:kube-scheduler "$here_api"
    client kubelet "/O=system:nodes/CN=system:node:$node" "$node_api"
    client kube-proxy /CN=system:kube-proxy "$node_api"
    client coredns /CN=system:coredns "$node_api"

    openssl genrsa -out service-accounts.key 2048
    openssl rsa -in service-accounts.key -pubout -out service-accounts.pub
}

new_key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }

authority() { # FILE COMMON-NAME
    new_key "$1"
    openssl req -x509 -new -key "$1.key" -subj "/CN=$2" -days 3650 -sha256 -out "$1.crt" \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign,digitalSignature
}

certificate() { # FILE AUTHORITY SUBJECT EXTENDED-USAGE [ALTERNATIVE-NAMES]
    local extensions="basicConstraints=CA:FALSE
keyUsage=critical,digitalSignature,keyEncipherment
extendedKeyUsage=$4"
    [ -z "${5:-}" ] || extensions+="
subjectAltName=$5"
    new_key "$1"
    openssl req -new -key "$1.key" -subj "$3" |
        openssl x509 -req -CA "$2.crt" -CAkey "$2.key" -CAcreateserial -days 3650 -sha256 -extfile <(echo "$extensions") -out "$1.crt"
}

client() { # NAME SUBJECT API-SERVER
    certificate "$1" ca "$2" clientAuth
    cat >"$1.kubeconfig" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: nightshift-dev, cluster: {server: "$3", certificate-authority-data: $(base64 -w0 ca.crt)}}]
users: [{name: $1, user: {client-certificate-data: $(base64 -w0 "$1.crt"), client-key-data: $(base64 -w0 "$1.key")}}]
contexts: [{name: nightshift-dev, context: {cluster: nightshift-dev, user: $1}}]
current-context: nightshift-dev
YAML
}
