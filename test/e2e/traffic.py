"""Pods that answer on every node of every cluster, and the checks that they reach each other unmodified."""

from __future__ import annotations

import ipaddress
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from lab.command import wait_for
from lab.errors import LabError
from lab.images import TOOLS
from lab.kube import Kube, pod_ips

PORT = 80

# Answers with the address that the request came from; busybox's httpd runs it as a CGI program.
SERVER = r"""mkdir -p /www/cgi-bin
printf '#!/bin/sh\nprintf "Content-Type: text/plain\\r\\n\\r\\n%%s %%s\\n" "$REMOTE_ADDR" "$(hostname)"\n' > /www/cgi-bin/whoami
chmod +x /www/cgi-bin/whoami
exec busybox httpd -f -p [::]:80 -h /www"""


@dataclass(frozen=True)
class Target:
    """Something that a pod may reach: a pod or a ClusterIP service, on a node of a cluster."""

    cluster: str
    node: str
    kind: str  # "pod" or "service"
    address: str

    @property
    def family(self) -> str:
        return "IPv6" if ":" in self.address else "IPv4"

    @property
    def url(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"http://{host}:{PORT}/cgi-bin/whoami"


@dataclass(frozen=True)
class Outcome:
    """What one pod saw of one target. `seen` is the source address that the target saw, "" if nothing came back."""

    source_cluster: str
    source_node: str
    source_ip: str
    target: Target
    pings: bool  # always true for a service: nobody answers for its address
    seen: str
    answered_by: str

    @property
    def reached(self) -> bool:
        return bool(self.seen) or (self.pings and self.target.kind == "pod")

    @property
    def ok(self) -> bool:
        return self.pings and self.seen == self.source_ip and self.answered_by == f"echo-{self.target.node}"

    def __str__(self) -> str:
        verdict = "ok" if self.ok else f"FAILED: ping {'answered' if self.pings else 'lost'}, saw '{self.seen}' from {self.source_ip}, answered by '{self.answered_by}'"
        return f"{self.source_node} -> {self.target.node} {self.target.kind} {self.target.family}: {verdict}"


def pod_manifest(node: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"echo-{node}", "labels": {"app": "echo", "node": node}},
            "spec": {"nodeName": node, "terminationGracePeriodSeconds": 0, "tolerations": [{"operator": "Exists"}],
                     "containers": [{"name": "echo", "image": TOOLS, "imagePullPolicy": "Never", "command": ["sh", "-c", SERVER],
                                     "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1}}]}}


def service_manifest(node: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"echo-{node}"},
            "spec": {"selector": {"app": "echo", "node": node}, "ipFamilyPolicy": "PreferDualStack", "ports": [{"port": PORT}]}}


class Traffic:
    """Echo pods and services of some clusters. Construct, start(), then check() as often as wanted."""

    def __init__(self, kubes: dict[str, Kube], nodes: dict[str, list[str]]) -> None:
        self._kubes = kubes
        self._nodes = nodes
        self._targets: dict[str, list[Target]] = {}
        self._addresses: dict[str, dict[str, str]] = {}  # node -> family -> address of its pod

    def start(self) -> None:
        """Pods and services run in every cluster when this returns."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(self._start_cluster, self._kubes))

    def _start_cluster(self, cluster: str) -> None:
        kube, nodes = self._kubes[cluster], self._nodes[cluster]
        kube.apply(*(pod_manifest(n) for n in nodes), *(service_manifest(n) for n in nodes))
        pods = {p["metadata"]["labels"]["node"]: p for p in kube.wait_pods(len(nodes), selector="app=echo")}
        targets = []
        for node in nodes:
            service = kube.get("service", f"echo-{node}")
            assert service is not None
            for kind, addresses in (("pod", pod_ips(pods[node])), ("service", service["spec"]["clusterIPs"])):
                if len(addresses) != 2:
                    raise LabError(f"{kind} echo-{node} of cluster {cluster} has addresses {addresses}, not one of each family")
                targets += [Target(cluster, node, kind, a) for a in addresses]
            self._addresses[node] = {("IPv6" if ":" in a else "IPv4"): a for a in pod_ips(pods[node])}
        self._targets[cluster] = targets

    def pod_address(self, node: str, family: str) -> str:
        return self._addresses[node][family]

    def targets(self, cluster: str) -> list[Target]:
        return self._targets[cluster]

    def check(self, sources: str, destinations: str, patience: int = 10) -> list[Outcome]:
        """Every pod of one cluster tries every target of another. `patience` is in seconds, for each answer."""
        with ThreadPoolExecutor() as pool:
            rows = pool.map(lambda node: self._check_from(sources, node, self._targets[destinations], patience), self._nodes[sources])
            return [row for per_node in rows for row in per_node]

    def check_all(self, patience: int = 10) -> list[Outcome]:
        """Every ordered pair of clusters, every placement, both families."""
        return [row for a in self._kubes for b in self._kubes if a != b for row in self.check(a, b, patience)]

    def wait_all(self, timeout: float = 60) -> list[Outcome]:
        """Waits until everything reaches everything; returns that run's rows."""
        def probe() -> list[Outcome]:
            rows = self.check_all()
            bad = [str(r) for r in rows if not r.ok]
            if bad:
                raise LabError(f"{len(bad)} of {len(rows)} placements fail: " + "; ".join(bad[:6]))
            return rows
        return wait_for("every placement to answer", probe, timeout, every=0.5)

    def _check_from(self, cluster: str, node: str, targets: list[Target], patience: int) -> list[Outcome]:
        # One exec for all targets, and two targets at a time: starting a process in a node of the lab costs tens of
        # milliseconds, and the answering side starts one for each request.
        lines = []
        for i, t in enumerate(targets):
            ping = "true" if t.kind == "service" else f"ping -n -q -c 1 -W {patience} {t.address} >/dev/null 2>&1"
            lines.append(f'(p=lost; {ping} && p=answered; echo "{i} $p $(fetch \'{t.url}\' {patience} 2>/dev/null)") &')
            if i % 2:
                lines.append("wait")
        result = self._kubes[cluster].exec(f"echo-{node}", "\n".join([*lines, "wait"]), timeout=30 + 2 * patience * len(targets))
        answers = {}
        for line in result.stdout.splitlines():
            words = line.split()
            if len(words) >= 2 and words[0].isdigit():
                answers[int(words[0])] = words[1:]
        rows = []
        for i, target in enumerate(targets):
            ping, seen, by = (answers.get(i, []) + ["lost", "", ""])[:3] if i in answers else ("lost", "", "")
            rows.append(Outcome(cluster, node, self._addresses[node][target.family], target, ping == "answered", normal_address(seen), by))
        return rows


def normal_address(text: str) -> str:
    """httpd writes [fd10:1::5] and [::ffff:10.1.0.5]; an address in its usual form, or "" for anything else."""
    try:
        address = ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return ""
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)
