# shellcheck shell=bash disable=SC2154  # sourced by dev/cluster; settings.sh sets the names
# Long-running processes by pid file. Nothing is ever stopped by name.

# Is the process of that pid file ours and alive? Every one of them has the state directory on its command line, so that a
# number that was given to somebody else since (or after a reboot) is not mistaken for it. A zombie has no command line.
alive() { # NAME
    local pid
    pid=$(cat "$run/$1.pid" 2>/dev/null) && [ -n "$pid" ] || return 1
    # No pipe: grep leaves at the first match, and whoever still writes to it then dies of SIGPIPE, which pipefail takes for "gone".
    grep -qzF -- "$state/" "/proc/$pid/cmdline" 2>/dev/null
}

# The process leads a session of its own: `stop` reaches its children through the group.
start() { # NAME COMMAND…
    local name=$1
    shift
    ! alive "$name" || return 0
    setsid "$@" >>"$logs/$name.log" 2>&1 </dev/null 9>&- &
    echo $! >"$run/$name.pid"
    # Until setsid and nsenter have become COMMAND, the command line is not yet the one that `alive` knows.
    until_true 3 alive "$name" || die "$name ended at once: $(tail -n 1 "$logs/$name.log")" "The whole log is $logs/$name.log"
}

stop() { # NAME SECONDS-OF-GRACE
    local pid
    if alive "$1"; then
        pid=$(cat "$run/$1.pid")
        kill -- "-$pid" 2>/dev/null || true
        until_true "$2" gone "$1" || kill -KILL -- "-$pid" 2>/dev/null || true
        until_true 5 gone "$1" || die "$1 (process $pid) does not end, not even by SIGKILL." "See /proc/$pid/stack, then try again."
    fi
    rm -f "$run/$1.pid"
}

gone() { ! alive "$1"; }

# until_true SECONDS COMMAND…: asks ten times a second.
until_true() {
    local deadline=$((SECONDS + $1 + 1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$deadline" ] || return 1
        sleep 0.1
    done
}

# Several clusters may share this loopback: never start on, and then talk to, somebody else's port.
refuse_taken_ports() { # NAME PORT…
    local name=$1 port
    shift
    ! alive "$name" || return 0
    for port; do
        # What was killed a moment ago has its port until the kernel has taken it apart.
        until_true 10 is_free "$port" || die "port $port, which $name needs, is taken: $(ss -Hltnp "sport = :$port" | awk '{print $4, $6}')." \
            "Stop that process, or use its cluster: set KUBECONFIG and CLUSTER=existing."
    done
}
is_free() { [ -z "$(ss -Hltn "sport = :$1")" ]; }
