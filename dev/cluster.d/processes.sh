# shellcheck shell=bash disable=SC2154  # sourced by dev/cluster; settings.sh sets the names
# Manages long-running processes by pid file. A process is never stopped by name.

# Whether the process of that pid file is ours and alive. It is ours if its start time is the recorded one, because a reused number has another start
# time. The command line does not work: it is empty for a moment while one program executes the next (setsid, nsenter).
alive() { # NAME
    local pid began
    { read -r pid && read -r began; } 2>/dev/null <"$run/$1.pid" && [ -n "$began" ] && [ "$(start_of "$pid")" = "$began" ]
}

# Prints the start time of a process, in ticks since the boot. Prints an empty result for a process that has exited, or that waits for its parent.
start_of() { # PID
    local stat
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
    # The program name in parentheses may contain any character.
    # shellcheck disable=SC2086  # one word for each field
    set -- ${stat##*) }
    case $1 in Z | X) ;; *) echo "${20}" ;; esac
}

# The process leads its own session, so `stop` reaches its children through the group.
start() { # NAME COMMAND…
    local name=$1
    shift
    ! alive "$name" || return 0
    setsid "$@" >>"$logs/$name.log" 2>&1 </dev/null 9>&- &
    printf '%s\n' $! "$(start_of $!)" >"$run/$name.pid"
    until_true 10 launched "$name" || true
    alive "$name" || die "$name exited at once: $(tail -n 1 "$logs/$name.log")" "The whole log is $logs/$name.log"
}

# Whether the process executes COMMAND or has exited. Before that, its command line is ours, empty, or starts with a launcher.
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
        until_true 5 gone "$1" || die "$1 (process $pid) does not exit, even after SIGKILL." "See /proc/$pid/stack, then try again."
    fi
    rm -f "$run/$1.pid"
}

gone() { ! alive "$1"; }

# until_true SECONDS COMMAND…: tries the command ten times per second.
until_true() {
    local deadline=$((SECONDS + $1 + 1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$deadline" ] || return 1
        sleep 0.1
    done
}

# Several clusters may share this loopback. Never start on the port of another cluster and then talk to it.
refuse_taken_ports() { # NAME PORT…
    local name=$1 port
    shift
    ! alive "$name" || return 0
    for port; do
        # The kernel releases the port of a killed process after a moment.
        until_true 10 is_free "$port" || die "port $port, which $name needs, is taken: $(ss -Hltnp "sport = :$port" | awk '{print $4, $6}')." \
            "Stop that process, or use its cluster: set KUBECONFIG and CLUSTER=existing."
    done
}
is_free() { [ -z "$(ss -Hltn "sport = :$1")" ]; }
