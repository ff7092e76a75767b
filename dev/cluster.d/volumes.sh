# shellcheck shell=bash disable=SC2154  # sourced by dev/cluster; settings.sh sets the names
# Creates the default StorageClass, and starts the process that serves it (cluster.d/provision-volumes).

start_volumes() {
    kubectl apply -f - >/dev/null <<YAML
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: { name: local, annotations: { storageclass.kubernetes.io/is-default-class: "true" } }
provisioner: nightshift.dev/local-folders
volumeBindingMode: WaitForFirstConsumer
reclaimPolicy: Delete
YAML
    start provision-volumes "$here/cluster.d/provision-volumes" "$kubeconfig" "$state/volumes" "$node"
}

stop_volumes() { stop provision-volumes 2; }
