"""Pods for scenarios: one per node that answers with its name, and questions asked from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from . import images
from .cluster import Cluster
from .command import wait_for
from .errors import LabError
from .kube import pod_ips

PORT = 8080


@dataclass(frozen=True)
class Probe:
    """A running test pod."""

    cluster: Cluster
    name: str
    node: str
    ips: tuple[str, ...]  # IPv4 first

    def ask(self, targets: Iterable[str], port: int = PORT, timeout: int = 3) -> dict[str, str]:
        """Fetches http://TARGET:port/ for all targets at once from this pod: answer by target, "" where there was none."""
        targets = list(targets)
        script = "".join(f"(a=$(fetch http://{host(t)}:{port}/ {timeout} 2>/dev/null); echo '{t}' \"$a\") &\n" for t in targets) + "wait\n"
        lines = self.cluster.kube.exec(self.name, script, timeout=60, check=True).stdout.splitlines()
        answers = dict(line.partition(" ")[::2] for line in lines)
        return {t: answers[t].strip() for t in targets}

    def ping(self, targets: Iterable[str], count: int = 3) -> dict[str, int]:
        """Lost packets by target, of `count` sent 0.2 s apart."""
        targets = list(targets)
        script = "".join(f"(r=$(ping -n -q -i 0.2 -W 2 -c {count} {t} 2>&1); echo '{t}' $(echo \"$r\" | sed -n 's/.* \\([0-9]*\\) received.*/\\1/p')) &\n"
                         for t in targets) + "wait\n"
        lines = self.cluster.kube.exec(self.name, script, timeout=60 + count, check=True).stdout.splitlines()
        received = {line.split()[0]: int(line.split()[1]) if len(line.split()) > 1 else 0 for line in lines if line.strip()}
        return {t: count - received[t] for t in targets}


def host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def deploy_probes(cluster: Cluster, name: str = "probe", timeout: float = 120) -> list[Probe]:
    """A DaemonSet of pods that answer http on PORT with "CLUSTER NODE", and a dual-stack Service; in order of nodes."""
    container = {"name": "probe", "image": images.TOOLS, "imagePullPolicy": "Never",
                 "command": ["sh", "-c", f'echo "{cluster.name} $NODE" > /www/index.html; exec busybox httpd -f -p [::]:{PORT} -h /www'],
                 "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
                 "readinessProbe": {"httpGet": {"path": "/", "port": PORT}, "periodSeconds": 1, "timeoutSeconds": 5}}
    labels = {"app": name}
    cluster.kube.apply(
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name, "namespace": "default"},
         "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
             "terminationGracePeriodSeconds": 0, "tolerations": [{"operator": "Exists"}], "containers": [container]}}}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"},
         "spec": {"selector": labels, "ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv4", "IPv6"], "ports": [{"port": PORT}]}})
    pods = cluster.kube.wait_pods(len(cluster.nodes), selector=f"app={name}", timeout=timeout)
    probes = [Probe(cluster, p["metadata"]["name"], p["spec"]["nodeName"], tuple(pod_ips(p))) for p in pods]
    return sorted(probes, key=lambda p: p.node)


def service_ips(cluster: Cluster, name: str = "probe", namespace: str = "default") -> tuple[str, ...]:
    """Cluster addresses of a Service, IPv4 first."""
    service = cluster.kube.api("GET", f"/api/v1/namespaces/{namespace}/services/{name}")
    return tuple(sorted(service["spec"]["clusterIPs"], key=lambda ip: ":" in ip))


def wait_pings(probe: Probe, targets: Iterable[str], timeout: float = 60) -> None:
    """Pings until a round loses nothing: a busy machine stops a guest for longer than ping waits."""
    targets = list(targets)

    def probe_once() -> bool:
        lost = {target: count for target, count in probe.ping(targets).items() if count}
        if lost:
            raise LabError(f"from {probe.node}: pings lost: {lost}")
        return True
    wait_for(f"pings from {probe.node}", probe_once, timeout)


def wait_answers(probe: Probe, expected: dict[str, str | None], timeout: float = 60) -> dict[str, str]:
    """Asks until every target gives the expected answer (None: any answer); kube-proxy and routes need a moment."""
    def probe_once() -> dict[str, str]:
        answers = probe.ask(expected)
        wrong = {t: answers[t] for t, e in expected.items() if not answers[t] or (e is not None and answers[t] != e)}
        if wrong:
            raise LabError(f"from {probe.node}: {wrong}")
        return answers
    return wait_for(f"answers at {probe.node}", probe_once, timeout)
