"""What scenarios about keys do and look at: rekey commands, status, metrics, the kernel's SAs and its counters of errors."""

from __future__ import annotations

import hashlib
import http.client
import math
import os
import re
import time
from dataclasses import dataclass
from typing import Any

from lab import Cluster, LabError, Node, wait_for
from lab.console import Running

from .deployment import BROKER_NAMESPACE, OPERATOR_NAMESPACE

REKEY = "fabric.tkestack.io/rekey"
GATEWAY = "fabric-gateway"
METRICS_PORT = 9780
_ENDPOINTS = f"/apis/submariner.io/v1/namespaces/{BROKER_NAMESPACE}/endpoints"
_MERGE = "application/merge-patch+json"


# One process in the guest that looks at /proc: a command for each look would cost more than what it looks for.
_KILL = """
import os, sys, time
def pids():
    found = set()
    for p in os.listdir("/proc"):
        try:
            if p.isdigit() and open(f"/proc/{p}/comm").read().strip() == sys.argv[1]:
                found.add(int(p))
        except OSError:
            pass
    return found
while not (there := pids()):
    time.sleep(0.5)
for p in there:
    os.kill(p, 9)
while not pids() - there:
    time.sleep(0.5)
"""


def share(times: int) -> int:
    """How often a scenario does what it repeats: FABRIC_SHARE per cent of it, for a run that has little time."""
    return math.ceil(times * int(os.environ.get("FABRIC_SHARE", "100")) / 100)


class GatewayNode:
    """The gateway of a cluster that has one: its agent, its objects, its kernel."""

    def __init__(self, cluster: Cluster, node: Node) -> None:
        self.cluster = cluster
        self.node = node
        self.name = node.name
        self._path = f"/apis/submariner.io/v1/namespaces/{OPERATOR_NAMESPACE}/gateways/{node.name}"

    # --- objects ---

    def object(self) -> dict[str, Any]:
        return self.cluster.kube.api("GET", self._path)

    def keys(self) -> dict[str, Any]:
        """Gateway.status.keys."""
        return self.object().get("status", {}).get("keys", {})

    def rekeys(self) -> int:
        """Generations that this process has drawn after its first."""
        return int(self.keys().get("rekeys", 0))

    def instance(self) -> str:
        return self.keys().get("instance", "")

    def rejected(self) -> list[dict[str, Any]]:
        return self.keys().get("rejected", [])

    def rekey(self, word: str) -> None:
        """The command to draw a new generation; `word` has to be new."""
        self.cluster.kube.api("PATCH", self._path, {"metadata": {"annotations": {REKEY: word}}}, _MERGE)

    def connected(self) -> list[str]:
        """Remote clusters with a connection that works."""
        return [c["endpoint"]["cluster_id"] for c in self.object().get("status", {}).get("connections", []) if c["status"] == "connected"]

    def psks(self) -> set[str]:
        """Ids of the PSKs that its live generations list."""
        return {p for g in self.keys().get("generations", []) for p in g.get("pskIDs", [])}

    def metric(self, name: str, label: str = "") -> float:
        """Sum of a metric over its labels, or over those that hold `label` (name="value"); 0 if it is not there."""
        total = 0.0
        for line in self._fetch("/metrics").splitlines():
            match = re.fullmatch(rf"{name}(?:{{(.*)}})? (\S+)(?: \d+)?", line)
            if match and label in (match[1] or ""):
                total += float(match[2])
        return total

    def _fetch(self, path: str) -> str:
        try:
            with self.cluster.kube.namespace.entered():
                connection = http.client.HTTPConnection(self.node.ip, METRICS_PORT, timeout=5)
                connection.connect()
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise LabError(f"{self.name}: {path} of the gateway agent: {error}") from error

    # --- process and kernel ---

    def kill(self) -> None:
        """kill -9 of the agent, whose kernel keeps what it had; returns when the kubelet has started another."""
        self.node.run(["/usr/bin/python3", "-I", "-S", "-c", _KILL, GATEWAY], timeout=180)

    def xfrm_stat(self) -> dict[str, int]:
        """The kernel's counters of what IPsec refused or dropped."""
        return {name: int(value) for name, value in (line.split() for line in self.node.run("cat /proc/net/xfrm_stat").stdout.splitlines() if line.strip())}

    def policies(self) -> list[tuple[str, ...]]:
        """Selector, index and time of addition of each: what is written anew has another time."""
        return re.findall(r"^src (\S+ dst \S+)|\bindex (\d+)|\badd (\S+ \S+)", self.node.run("ip -s xfrm policy").stdout, re.M)

    def watch_sas(self) -> SaWatch:
        return SaWatch(self)


@dataclass(frozen=True)
class SaEvent:
    kind: str  # "there" (at the start), "added", "updated", "deleted" or "expired"
    source: str
    target: str
    spi: str
    key: str  # a hash of the key: none of the key itself is kept

    @property
    def name(self) -> tuple[str, str]:
        """What identifies an SA in a kernel."""
        return self.target, self.spi


_HEAD = re.compile(r"^(Deleted |Updated |Expired )?src (\S+) dst (\S+)", re.M)


_WARM_UP = "127.0.0.1"  # of the SA by which an agent makes its kernel load the ciphers, and which carries nothing


def sa_events(text: str, first: str = "added") -> list[SaEvent]:
    """What `ip xfrm monitor SA` or `ip xfrm state` wrote of SAs between nodes; those without a prefix are of the kind `first`."""
    heads = list(_HEAD.finditer(text))
    events = []
    for head, after in zip(heads, [*heads[1:], None]):
        block = text[head.start():after.start() if after else None]
        spi, key = re.search(r"spi (0x[0-9a-f]+)", block), re.search(r"aead \S+ 0x([0-9a-f]+) ", block)
        if spi and key and head[3] != _WARM_UP:
            events.append(SaEvent((head[1] or first).strip().lower(), head[2], head[3], spi[1], hashlib.sha256(key[1].encode()).hexdigest()[:16]))
    return events


class SaWatch:
    """Every change of a kernel's SAs from `__enter__` on, in order, as the kernel told it."""

    def __init__(self, gateway: GatewayNode) -> None:
        self.gateway = gateway
        self._monitor: Running | None = None
        self._before: list[SaEvent] = []

    def __enter__(self) -> SaWatch:
        # Its socket must hold what comes while the guest has no processor.
        self._monitor = self.gateway.node.start("echo listening; exec ip -rcvbuf 8388608 xfrm monitor SA")
        wait_for("ip xfrm monitor", lambda: "listening" in self._monitor.stdout, timeout=10, every=0.05)
        time.sleep(0.3)  # exec, and the socket
        self._before = sa_events(self.gateway.node.run("ip xfrm state").stdout, "there")
        return self

    def __exit__(self, *_: object) -> None:
        if self._monitor:
            self._monitor.stop()

    def events(self) -> list[SaEvent]:
        """The SAs that were there, then what happened."""
        assert self._monitor
        if self._monitor.done:
            raise LabError(f"ip xfrm monitor on {self.gateway.name} has ended: {self._monitor.wait(1).stderr}")
        there = {e.name for e in self._before}
        happened = sa_events(self._monitor.stdout)
        # What was added between the start of the monitor and the list is in both.
        while happened and happened[0].kind == "added" and happened[0].name in there:
            happened.pop(0)
        return self._before + happened

    def count(self, kind: str) -> int:
        return sum(e.kind == kind for e in self.events())

    def faults(self, gaps: bool = True) -> list[str]:
        """SAs that came twice, keys that were used twice, and, with `gaps`, moments at which a peer had none in one direction. Empty is good."""
        found = []
        live: dict[tuple[str, str], SaEvent] = {}
        names: set[tuple[str, str]] = set()
        keys: dict[str, tuple[str, str]] = {}
        for e in self.events():
            if e.kind in ("there", "added"):
                if e.name in names:
                    found.append(f"SA {e.target} {e.spi} was added twice")
                if e.key in keys:
                    found.append(f"one key for SA {keys[e.key]} and SA {e.name}")
                names.add(e.name)
                keys[e.key] = e.name
                live[e.name] = e
            elif e.kind in ("deleted", "expired"):
                live.pop(e.name, None)
                if gaps and not any((o.source, o.target) == (e.source, e.target) for o in live.values()):
                    found.append(f"no SA was left from {e.source} to {e.target} when {e.spi} went")
        return found


def same_counters(before: dict[str, dict[str, int]], after: dict[str, dict[str, int]]) -> list[str]:
    """What grew in /proc/net/xfrm_stat, by node. Empty is good."""
    return [f"{node} {name} +{after[node][name] - count}" for node, counters in before.items() for name, count in counters.items() if after[node][name] != count]


# --- records at the broker ---


def endpoint_of(hub: Cluster, cluster: str) -> dict[str, Any]:
    """The Endpoint of a cluster with one gateway, as the broker holds it."""
    found = [e for e in hub.kube.api("GET", _ENDPOINTS)["items"] if e["spec"]["cluster_id"] == cluster]
    if len(found) != 1:
        raise LabError(f"the broker has {len(found)} Endpoints of cluster {cluster}")
    return found[0]


def endpoint_path(name: str) -> str:
    return f"{_ENDPOINTS}/{name}"


def wait_rekeys(gateways: dict[GatewayNode, int], timeout: float = 60) -> None:
    """Until every gateway counts at least so many generations."""
    def probe() -> bool:
        short = {g.name: f"{g.rekeys()} of {n}" for g, n in gateways.items() if g.rekeys() < n}
        if short:
            raise LabError(f"generations drawn: {short}")
        return True
    wait_for("the rekeys", probe, timeout, every=0.3)
