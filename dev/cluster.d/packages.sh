# shellcheck shell=bash disable=SC2154  # sourced by dev/cluster; settings.sh sets the names
# Installs the Debian packages: the container runtime, the network plugins and the small tools around them.

# Lists the packages whose file is missing, as package:file
needed_packages() {
    local need file
    for need in containerd:/usr/bin/containerd runc:/usr/sbin/runc containernetworking-plugins:/usr/lib/cni/bridge buildah:/usr/bin/buildah \
        busybox-static:/bin/busybox nftables:/usr/sbin/nft iptables:/usr/sbin/iptables iproute2:/bin/ip conntrack:/usr/sbin/conntrack \
        openssl:/usr/bin/openssl procps:/bin/ps ca-certificates:/etc/ssl/certs/ca-certificates.crt; do
        file=${need#*:}
        # /bin and /sbin are links to /usr/bin and /usr/sbin on some releases only.
        [ -e "$file" ] || [ -e "/usr$file" ] || [ -e "${file#/usr}" ] || echo "${need%%:*}"
    done
}

install_packages() {
    local missing
    missing=$(needed_packages | tr '\n' ' ')
    [ -n "$missing" ] || return 0
    command -v apt-get >/dev/null || die "these programs are missing: $missing(names of Debian packages)." \
        "Install them; this is not a Debian, so dev/cluster cannot."
    say "Installing from Debian: $missing"
    mkdir -p "$logs"
    # shellcheck disable=SC2086  # one word for each package
    if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing; } >"$logs/apt.log" 2>&1 </dev/null; then
        die "apt-get could not install $missing: $(grep -m 1 '^E:' "$logs/apt.log")" "The whole log is $logs/apt.log"
    fi
    # Debian starts the daemon automatically. We use a separate one, with its own socket and folders.
    case " $missing" in *" containerd "*) ! command -v systemctl >/dev/null || systemctl disable --now containerd >>"$logs/apt.log" 2>&1 || true ;; esac
}
