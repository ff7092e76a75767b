# shellcheck shell=bash disable=SC2154  # sourced by dev/cluster; settings.sh sets the names
# Builds the container images: static programs in images from scratch. They are kept as archives below .dev/images.
#
# It uses buildah instead of tar, so that dev/images/*.Containerfile also work with other builders and registries.

# shellcheck source=../images/buildah.sh
. "$here/images/buildah.sh"

base_image=nightshift.dev/busybox:dev # the sandbox of every pod, and a shell for debugging
project_images=(nightshift fake-paper replaying-upstream)

# Builds the programs like the tests do (dev/test.d/build.sh). `dev/test` has already built them and passes their location.
build_programs() {
    programs=${NIGHTSHIFT_PROGRAMS:-}
    [ -z "$programs" ] || return 0
    say "Compiling the programs for the images."
    programs=$(
        cd "$repository" || exit
        # shellcheck source=../test.d/build.sh
        . dev/test.d/build.sh
        build --quiet </dev/null >&2 || exit
        echo "$programs"
    ) || die "the programs for the images do not compile (see above)." "Fix that, then run the same command again."
}

# Removes debugging data, which is four fifths of a program.
install_program() { # NAME ROOT
    if command -v strip >/dev/null; then strip -o "$2/$1" "$programs/$1"; else cp "$programs/$1" "$2/$1"; fi
}

build_images() {
    # Check this before minutes of building.
    ! existing || refuse_without_image_load
    # One build at a time, because builds share folders. The lock is held until this script exits.
    mkdir -p "$archives"
    exec 8>"$archives/lock"
    flock -n 8 || { say "Another dev/cluster is building images. Waiting for it." && flock 8; }
    command -v buildah >/dev/null || { require_linux_and_root && install_packages; }
    build_programs
    build_image busybox shell
    build_image nightshift program operator program agent program resolver authorities
    build_image fake-paper program fake-paper shell
    build_image replaying-upstream program replaying-upstream
}

# build_image NAME INGREDIENT…: builds an image unless its inputs are unchanged.
build_image() {
    local name=$1 work=$state/images/$1.build inputs
    shift
    rm -rf "$work"
    mkdir -p "$work/context/root/tmp"
    chmod 1777 "$work/context/root/tmp"
    while [ $# -gt 0 ]; do
        case $1 in
            program) install_program "$2" "$work/context/root" && shift ;;
            authorities) install -Dm 644 /etc/ssl/certs/ca-certificates.crt "$work/context/root/etc/ssl/certs/ca-certificates.crt" ;;
            shell) install_shell "$work/context/root" ;;
        esac
        shift
    done
    cp "$here/images/$name.Containerfile" "$work/context/Containerfile"
    inputs=$(tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$work/context" -c . | sha256sum | cut -d' ' -f1)
    if [ "$inputs" != "$(cat "$archives/$name.inputs" 2>/dev/null)" ] || [ ! -e "$archives/$name.tar" ]; then
        rm -f "$archives/$name.tar"
        {
            buildah_here "$work" bud --layers=false --timestamp 0 --tag "nightshift.dev/$name:dev" "$work/context" &&
                buildah_here "$work" push "nightshift.dev/$name:dev" "docker-archive:$work/image.tar:nightshift.dev/$name:dev"
        } >"$work/log" 2>&1 </dev/null || die "buildah could not build the image $name: $(tail -n 1 "$work/log")" "The whole log is $work/log"
        mv "$work/image.tar" "$archives/$name.tar"
        echo "$inputs" >"$archives/$name.inputs"
        say "Built nightshift.dev/$name:dev."
    fi
    rm -rf --one-file-system "$work"
}

install_shell() { # ROOT
    local applet
    mkdir -p "$1/bin"
    cp "$(command -v busybox)" "$1/bin/busybox"
    for applet in $("$1/bin/busybox" --list); do
        [ "$applet" = busybox ] || ln -sf busybox "$1/bin/$applet"
    done
}

load_base_image() {
    build_image busybox shell
    [ -n "$(ctr images ls -q "name==$base_image")" ] || load_images "$archives/busybox.tar"
    local name
    for name in "${project_images[@]}"; do
        if [ -e "$archives/$name.tar" ] && [ -z "$(ctr images ls -q "name==nightshift.dev/$name:dev")" ]; then load_images "$archives/$name.tar"; fi
    done
}

refuse_without_image_load() {
    [ -n "${IMAGE_LOAD:-}" ] || die "dev/cluster cannot put images into the cluster of $KUBECONFIG." \
        "Say how that is done: IMAGE_LOAD='kind load image-archive' (the archive's path is appended), or IMAGE_LOAD=true if its images are there."
}

load_images() { # ARCHIVE…
    local archive
    [ $# -gt 0 ] || set -- "$archives"/*.tar
    for archive; do
        [ -e "$archive" ] || die "there is no image archive $archive." "Build the project's: make image"
        if existing; then
            refuse_without_image_load
            $IMAGE_LOAD "$archive"
        else
            alive containerd || die "there is no node to load $archive into: no cluster is up." "Start it: make cluster"
            ctr images import "$archive" >/dev/null
            say "Loaded $(basename "$archive") into the node."
        fi
    done
}
