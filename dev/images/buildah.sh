# shellcheck shell=bash  # sourced by dev/cluster.d/images.sh and dev/release
# Runs buildah with a storage folder of its own, which is removed afterwards. It changes no data of the user, and pulls no image.

# Uses neither overlay nor namespaces, so it works in a VM and in a container. An image from scratch needs neither.
buildah_here() { # WORK ARGUMENT…
    local work=$1 notes=/var/lib/containers had_notes='' result=0
    shift
    [ ! -e "$notes" ] || had_notes=yes
    printf '[network]\nnetwork_config_dir = "%s"\n' "$work/networks" >"$work/containers.conf" # otherwise it leaves a lock in /etc/cni
    CONTAINERS_CONF=$work/containers.conf BUILDAH_ISOLATION=chroot \
        command buildah --root "$work/storage" --runroot "$work/storage-run" --storage-driver vfs "$@" || result=$?
    if [ -z "$had_notes" ]; then # the path of its layer cache cannot be configured
        rm -f "$notes/cache/blob-info-cache-v1.boltdb"
        rmdir "$notes/cache" "$notes" 2>/dev/null || true
    fi
    return "$result"
}
