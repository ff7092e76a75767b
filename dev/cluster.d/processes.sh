# shellcheck shell=bash disable=SC2154  # sourced by dev/cluster; settings.sh sets the names
# Long-running processes by pid file. Nothing is ever stopped by name.

# Is the process of that pid file ours and alive? It is if it began when ours did: a number that was given to somebody else since
# has another start. Not by its command line, which is empty for a moment while one program becomes the next (setsid, nsenter).
alive() { # NAME
    local pid began
    { read -r pid && read -r began; } 2>/dev/null <"$run/$1.pid" && [ -n "$began" ] && [ "$(start_of "$pid")" = "$began" ]
}

# When a process began, in ticks since the boot; nothing for one that is gone, or that has ended and waits for its parent.
start_of() { # PID
    local stat
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
    # The program's name, in brackets, may hold anything.
    # shellcheck disable=SC2086  # one word for each field
    set -- ${stat##*) }
    case $1 in Z | X) ;; *) echo "${20}" ;; esac
}

# The process leads a session of its own: `stop` reaches its children through the group.
start() { # NAME COMMAND…
    local name=$1
    shift
    ! alive "$name" || return 0
    setsid "$@" >>"$logs/$name.log" 2>&1 </dev/null 9>&- &
    printf '%s\n' $! "$(start_of $!)" >"$run/$name.pid"
    until_true 10 launched "$name" || true
    alive "$name" || die "$name ended at once: $(tail -n 1 "$logs/$name.log")" "The whole log is $logs/$name.log"
}

# Has the process become COMMAND, or ended before it could? Until then its command line is ours, none, or begins with a launcher.
launched() { # NAME
    local command
    alive "$1" || return 0
    command=$(tr '\0' ' ' <"/proc/$(pid_of "$1")/cmdline")
    case $command in setsid\ * | nsenter\ *) return 1 ;; *"$state/"*) ;; *) return 1 ;; esac
}

pid_of() { head -n 1 "$run/$1.pid"; }

stop() { # NAME SECONDS-OF-GRACE
    local pid
    if alive "$1"; then
        pid=$(pid_of "$1")
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
