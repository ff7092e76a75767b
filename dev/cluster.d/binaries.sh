# shellcheck shell=bash disable=SC2154  # sourced by dev/cluster; settings.sh sets the names
# Builds the Kubernetes programs, etcd, CoreDNS and Helm from the Go module proxy, and keeps them in the user's cache. The `tool` lines of the go.mod
# files pin them. go.sum and the checksum database verify them.

build_binaries() {
    build_kubernetes
    build_helm
}

build_kubernetes() {
    [ ! -x "$bin/kubelet" ] || return 0
    require_go "Kubernetes is"
    local version short flags='' package fresh=${bin%/bin}.$$
    version=$(required_version "$here" k8s.io/kubernetes)
    short=${version#v}
    say "Building Kubernetes $version, etcd and CoreDNS: 5 to 20 minutes on two cores and 4 GB of Go cache. Once per machine."
    # Without these flags the programs would report v0.0.0-master.
    for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
        flags+=" -X $package.gitVersion=$version -X $package.gitMajor=$(cut -d. -f1 <<<"$short") -X $package.gitMinor=$(cut -d. -f2 <<<"$short")"
        flags+=" -X $package.gitTreeState=clean -X $package.gitCommit=go-module -X $package.buildDate=1970-01-01T00:00:00Z"
    done
    mkdir -p "$fresh/bin"
    # expand the name now
    trap "rm -rf '$fresh'" EXIT
    build_tools "$here" "$fresh/bin/" "-s -w$flags"
    mv "$fresh/bin/server" "$fresh/bin/etcd" # Go names a program after its package's path
    build_tools "$here/dns" "$fresh/bin/" "-s -w"
    arrive "$fresh" "$bin" kubelet
}

# `helm template` does not contact a cluster. It uses the Kubernetes version that is built into it, which must be ours.
build_helm() {
    [ ! -x "$helm_bin/helm" ] || return 0
    require_go "Helm is"
    local version kubernetes flags fresh=${helm_bin%/bin}.$$ package
    version=$(required_version "$here/helm" helm.sh/helm/v3)
    kubernetes=$(required_version "$here" k8s.io/kubernetes)
    kubernetes=${kubernetes#v}
    say "Building Helm $version: about a minute. Once per machine."
    flags=" -X helm.sh/helm/v3/internal/version.version=$version"
    for package in chartutil lint/rules; do
        flags+=" -X helm.sh/helm/v3/pkg/$package.k8sVersionMajor=$(cut -d. -f1 <<<"$kubernetes")"
        flags+=" -X helm.sh/helm/v3/pkg/$package.k8sVersionMinor=$(cut -d. -f2 <<<"$kubernetes")"
    done
    mkdir -p "$fresh/bin"
    # expand the name now
    trap "rm -rf '$fresh'" EXIT
    build_tools "$here/helm" "$fresh/bin/" "-s -w$flags"
    arrive "$fresh" "$helm_bin" helm
}

require_go() { # WHAT IS
    command -v go >/dev/null || die "there is no Go on the PATH, and $1 built from source." \
        "Install Go 1.26 or newer (https://go.dev/dl/), or set KUBECONFIG and CLUSTER=existing."
}

required_version() { # FOLDER MODULE
    awk -v module="$2" '$1 == module && $2 ~ /^v/ { print $2; exit }' "$1/go.mod"
}

# Moves the result by rename, so an interrupted build never looks finished. If another build was faster, its result is used.
arrive() { # FRESH BIN PROGRAM
    mv -T "$1" "${2%/bin}" 2>/dev/null || true
    [ -x "$2/$3" ] || die "the build is not in $2." "Remove ${2%/bin} and try again."
    say "Built into $2 after $(elapsed) s."
}

build_tools() { # MODULE OUTPUT LDFLAGS
    CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS="-mod=readonly -buildvcs=false" go -C "$1" build -o "$2" -trimpath -ldflags "$3" tool </dev/null ||
        die "Go could not build the tools of $1/go.mod (see above)." "If a download was refused: is the module proxy reachable (go env GOPROXY)?"
}
