#!/usr/bin/env python3
"""`measure.py SERVERS KUBECONFIG AUDIT-LOG PID-FILE COMMAND…` measures one operator with many servers, from outside.

It creates the servers and five Plugins, and starts the operator. Then it prints a table: CPU seconds and peak memory of the process (`/proc`), and the
operator's requests to the API server (audit log), until all servers are Ready, in a minute of rest, after a restart, and while the namespace is
deleted. `dev/fleet` runs it.
"""
import base64
import collections
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

NAMESPACE = "fleet"
PLUGINS = ["viaversion", "viabackwards", "chunky", "griefprevention", "discordsrv"]
API = f"/apis/nightshift.dev/v1alpha1/namespaces/{NAMESPACE}"
METRICS = "http://127.0.0.1:18081/metrics"
WRITES = {"create", "update", "patch", "delete", "deletecollection"}
QUIET = 15  # seconds without a write after which the operator is at rest
PATIENCE = 900  # seconds
TICKS = os.sysconf("SC_CLK_TCK")


class ApiServer:
    """The API server, as an administrator."""

    def __init__(self, kubeconfig):
        text = Path(kubeconfig).read_text()
        value = lambda key: re.search(key + r': "?([^",}\s]+)', text).group(1)
        data = lambda key: base64.b64decode(value(key)).decode()
        self.address = value("server")
        self.tls = ssl.create_default_context(cadata=data("certificate-authority-data"))
        with tempfile.NamedTemporaryFile("w") as pair:
            pair.write(data("client-certificate-data") + data("client-key-data"))
            pair.flush()
            self.tls.load_cert_chain(pair.name)

    def call(self, method, path, body=None):
        encoded = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, encoded, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, context=self.tls, timeout=60) as response:
            return json.load(response)

    def exists(self, path):
        try:
            return bool(self.call("GET", path))
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return False
            raise


class Requests:
    """The operator's requests so far, from the audit log."""

    def __init__(self, path):
        self.log, self.rest = open(path), ""
        self.all, self.last_write = [], 0.0

    def read(self):
        self.rest += self.log.read()
        *lines, self.rest = self.rest.split("\n")
        for line in lines:
            event = json.loads(line)
            subject = event.get("objectRef") or {}
            resource = "/".join(filter(None, [subject.get("resource"), subject.get("subresource")]))
            if resource == "leases":
                continue
            code = (event.get("responseStatus") or {}).get("code", 0)
            at = datetime.fromisoformat(event["stageTimestamp"]).timestamp()
            self.all.append((event["verb"], resource, code))
            if event["verb"] in WRITES:
                self.last_write = at

    def take(self):
        self.read()
        taken, self.all = self.all, []
        return taken


class Operator:
    """The process of the operator."""

    def __init__(self, command, pid_file):
        self.command, self.pid_file, self.process = command, pid_file, None

    def start(self):
        log = open(Path(self.pid_file).parent.parent / "log/operator.log", "ab")
        self.process = subprocess.Popen(self.command, stdout=log, stderr=log, start_new_session=True)
        stat = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        Path(self.pid_file).write_text(f"{self.process.pid}\n{stat[19]}\n")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)

    def cpu_seconds(self):
        stat = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(stat[11]) + int(stat[12])) / TICKS

    def memory_mib(self, key):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(key + r":\s+(\d+)", status).group(1)) / 1024

    def metric(self, name):
        try:
            text = urllib.request.urlopen(METRICS, timeout=10).read().decode()
        except OSError:
            return 0.0
        lines = [line.rsplit(" ", 1) for line in text.splitlines() if re.match(rf"{name}(\{{| )", line)]
        return sum(float(value) for _, value in lines)


def until(what, is_true, pause=0.5):
    deadline = time.monotonic() + PATIENCE
    while not is_true():
        if time.monotonic() > deadline:
            sys.exit(f"{what}: not within {PATIENCE} s")
        time.sleep(pause)


def create(api, servers):
    """Creates the namespace, the Plugins and the servers."""
    api.call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for project in PLUGINS:
        spec = {"source": {"type": "modrinth", "project": project}, "instanceSelector": {"matchLabels": {"tier": "survival"}}}
        api.call("POST", API + "/plugins", manifest("Plugin", project, {}, spec))
    spec = {
        "eula": "Accepted",
        "updateStrategy": "auto",
        "updateSchedule": {"maintenanceWindow": {"cron": "0 4 * * 0"}},
        "storage": {"size": "1Gi"},
        "service": {"type": "ClusterIP"},
    }
    objects = [manifest("PaperMCServer", f"server-{number:04}", {"tier": "survival"}, spec) for number in range(servers)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda body: api.call("POST", API + "/papermcservers", body), objects))


def manifest(kind, name, labels, spec):
    metadata = {"name": name, "namespace": NAMESPACE, "labels": labels}
    return {"apiVersion": "nightshift.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def is_ready(server):
    conditions = server.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def main():
    servers, kubeconfig, audit_log, pid_file, *command = sys.argv[1:]
    servers = int(servers)
    api, operator = ApiServer(kubeconfig), Operator(command, pid_file)
    create(api, servers)
    Path(audit_log).touch()
    requests = Requests(audit_log)
    rows = []

    def is_quiet():
        requests.read()
        return time.time() - requests.last_write > QUIET

    def report(phase, seconds, cpu, what="", per=servers):
        """Adds a row about the requests since the last one."""
        made = requests.take()
        writes = [request for request in made if request[0] in WRITES]
        reads = [request for request in made if request[0] in ("get", "list")]
        refused = [request for request in writes if request[2] >= 400]
        rows.append((phase, f"{seconds:.1f} s", f"{cpu:.2f} s", f"{operator.memory_mib('VmHWM'):.0f} MiB",
                     f"{len(writes) / per:.1f}", f"{len(reads) / per:.1f}", str(len(refused)), what))
        counts = collections.Counter(f"{verb} {resource} {code}" for verb, resource, code in made)
        print(f"{phase}: {dict(counts.most_common())}", file=sys.stderr)

    def stopwatch():
        began, cpu = time.monotonic(), operator.cpu_seconds()
        return lambda: (time.monotonic() - began, operator.cpu_seconds() - cpu)

    operator.start()
    elapsed = stopwatch()
    ready = lambda: sum(map(is_ready, api.call("GET", API + "/papermcservers")["items"]))
    until("all servers are Ready", lambda: ready() == servers, pause=2)
    seconds, cpu = elapsed()
    until("the operator is quiet", is_quiet)
    report("from nothing until all are Ready", seconds, cpu, f"{elapsed()[1]:.2f} s CPU until quiet")

    at_rest = operator.memory_mib("VmRSS")
    elapsed = stopwatch()
    time.sleep(60)
    report("a minute of rest", *elapsed(), f"{at_rest:.0f} MiB")

    operator.stop()
    operator.start()
    began = time.monotonic()
    until("each server had a pass", lambda: operator.metric("nightshift_reconcile_seconds_count") >= servers, pause=0.1)
    seconds, cpu = time.monotonic() - began, operator.cpu_seconds()
    time.sleep(QUIET)
    report("a restart, until each server had a pass", seconds, cpu, f"{operator.cpu_seconds():.2f} s CPU {QUIET} s later")

    elapsed = stopwatch()
    api.call("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
    until("the namespace is gone", lambda: not api.exists(f"/api/v1/namespaces/{NAMESPACE}"), pause=1)
    report("the namespace is deleted", *elapsed())
    operator.stop()

    print(f"\n{servers} servers, five Plugins. Writes and reads per server, without the Lease.\n")
    header = ("phase", "time", "CPU", "peak memory", "writes", "reads", "refused writes", "")
    for row in [header, ("---",) * len(header), *rows]:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
