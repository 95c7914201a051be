"""Fabric installed, joined and removed by the commands that a user would type."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from lab import Capture, Cluster, Lab, LabError, wait_for
from lab.cluster import in_parallel
from lab.kube import condition

TOP = Path(__file__).resolve().parents[2]
SAMPLES = TOP / "crd/samples"
CHART = TOP / "charts/fabric-operator"
OPERATOR_NAMESPACE = "submariner-operator"
BROKER_NAMESPACE = "submariner-k8s-broker"
BROKER_INFO = "submariner-broker-info"
GATEWAY_LABEL = "submariner.io/gateway"
BROKER = "deploy-broker-sample"
JOIN = "join-broker-sample"
AGENTS = ("fabric-gateway", "fabric-routeagent")

Say = Callable[[str], None]


def sample(name: str) -> dict[str, Any]:
    return yaml.safe_load((SAMPLES / f"{name}.yaml").read_text())


class Deployment:
    """Fabric on a lab: the broker in `hub`, every other cluster a member under its own name."""

    def __init__(self, lab: Lab, image: Path, say: Say = lambda _: None) -> None:
        self.lab = lab
        self.hub = lab["hub"]
        self.members = lab.joined
        self.gateway_flags: list[str] = []  # limits of test beds, for the agents of every member
        self._image = image
        self._say = say

    # --- as a user would ---

    def load_image(self) -> None:
        self.lab.load_image(self._image)

    def install_operators(self) -> None:
        in_parallel(self.install_operator, self.lab.clusters.values())

    def install_operator(self, cluster: Cluster) -> None:
        flags = ["--set-json", f"gateway.extraArgs={json.dumps(self.gateway_flags)}"] if self.gateway_flags else []
        cluster.kube.helm("upgrade", "--install", "fabric", str(CHART), "--namespace", OPERATOR_NAMESPACE, "--create-namespace", "--set",
                          "image.repository=localhost/fabric", *flags, "--wait", "--timeout", "90s")
        self._say(f"{cluster.name}: helm install fabric")

    def deploy_broker(self) -> None:
        self.hub.kube.kubectl("apply", "-f", str(SAMPLES / "broker.yaml"))
        self.wait_condition(self.hub, BROKER)
        self._say(f"hub: fabric/{BROKER} is Ready")

    def broker_info(self) -> str:
        """The ConfigMap as `kubectl get -o yaml` prints it."""
        return self.hub.kube.kubectl("get", "cm", BROKER_INFO, "-n", BROKER_NAMESPACE, "-o", "yaml").stdout

    def copy_broker_info(self, cluster: Cluster, text: str | None = None) -> None:
        """What a person does with the file: the namespace, and the ConfigMap without what the other API server added."""
        copy = yaml.safe_load(text or self.broker_info())
        copy["metadata"] = {k: v for k, v in copy["metadata"].items() if k in ("name", "namespace", "labels")}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": BROKER_NAMESPACE}}
        cluster.kube.kubectl("apply", "-f", "-", stdin=json.dumps(namespace) + "\n---\n" + json.dumps(copy))

    def join_manifest(self, cluster: Cluster, **fields: Any) -> dict[str, Any]:
        manifest = sample("join")
        manifest["spec"]["joinConfig"].update({"clusterID": cluster.name, **fields})
        return manifest

    def apply_join(self, cluster: Cluster, **fields: Any) -> None:
        cluster.kube.kubectl("apply", "-f", "-", stdin=json.dumps(self.join_manifest(cluster, **fields)))

    def join(self, cluster: Cluster) -> None:
        self.copy_broker_info(cluster)
        self.apply_join(cluster)

    def wait_joined(self, timeout: float = 90) -> None:
        in_parallel(lambda c: self.wait_condition(c, JOIN, timeout=timeout), self.members)
        wanted = f"{len(self.members) - 1}/{len(self.members) - 1}"
        for cluster in self.members:
            wait_for(f"{cluster.name}: {wanted} connections", lambda: self.connections(cluster) == wanted, timeout)

    def is_joined(self) -> bool:
        try:
            return all(condition(self.fabric(c), "Ready") == "True" for c in self.members)
        except LabError:
            return False

    def up(self) -> None:
        """All of it, from clusters without Fabric to joined ones."""
        self.load_image()
        self.install_operators()
        self.deploy_broker()
        for cluster in self.members:
            self.join(cluster)
        self.wait_joined()

    def remove_join_field(self, cluster: Cluster, field: str) -> None:
        patch = [{"op": "remove", "path": f"/spec/joinConfig/{field}"}]
        cluster.kube.kubectl("patch", "fabric", JOIN, "--type=json", "-p", json.dumps(patch))

    def purge(self) -> None:
        """Whatever is left of Fabric in any cluster, for the next scenario; members first, as they say good-bye to the broker."""
        in_parallel(lambda c: c.kube.kubectl("delete", "fabric", "--all", "--timeout=90s", timeout=100, check=False), self.members)
        self.hub.kube.kubectl("delete", "fabric", "--all", "--timeout=60s", timeout=70, check=False)
        for cluster in self.lab.clusters.values():
            cluster.kube.kubectl("delete", "namespace", BROKER_NAMESPACE, "--ignore-not-found", "--timeout=60s", timeout=70, check=False)

    def leave(self, cluster: Cluster, timeout: float = 90) -> None:
        cluster.kube.kubectl("delete", "fabric", JOIN, "--timeout", f"{timeout:.0f}s", timeout=timeout + 10)

    # --- what they read ---

    def fabric(self, cluster: Cluster, name: str = JOIN) -> dict[str, Any]:
        found = cluster.kube.get("fabrics.operator.tkestack.io", name)
        if found is None:
            raise LabError(f"{cluster.name}: no fabric/{name}")
        return found

    def table(self, cluster: Cluster) -> str:
        return cluster.kube.kubectl("get", "fabric").stdout

    def connections(self, cluster: Cluster) -> str:
        return self.fabric(cluster).get("status", {}).get("connectionSummary", "")

    def wait_condition(self, cluster: Cluster, name: str, kind: str = "Ready", status: str = "True", timeout: float = 90) -> None:
        try:
            cluster.kube.kubectl("wait", f"--for=condition={kind}={status}", f"fabric/{name}", f"--timeout={timeout:.0f}s", timeout=timeout + 10)
        except LabError as error:
            raise LabError(f"{cluster.name}: {error.what}\n{self.explain(cluster, name)}") from error

    def wait_message(self, cluster: Cluster, *words: str, name: str = JOIN, timeout: float = 60) -> dict[str, str]:
        """Until one condition's message holds all of these words; returns the condition."""
        def probe() -> dict[str, str]:
            conditions = self.fabric(cluster, name).get("status", {}).get("conditions", [])
            for found in conditions:
                if all(w in found.get("message", "") for w in words):
                    return found
            raise LabError("; ".join(f"{c['type']}={c['status']} {c.get('reason')}: {c.get('message')}" for c in conditions) or "no conditions")
        return wait_for(f"{cluster.name}: a condition of {name} that says {words}", probe, timeout)

    def explain(self, cluster: Cluster, name: str = JOIN) -> str:
        """What a person would look at next: conditions, pods, the last words of each."""
        lines = []
        found = cluster.kube.get("fabrics.operator.tkestack.io", name)
        for c in (found or {}).get("status", {}).get("conditions", []):
            lines.append(f"  {c['type']}={c['status']} {c.get('reason')}: {c.get('message')}")
        for pod in cluster.kube.pods(OPERATOR_NAMESPACE):
            pod_name = pod["metadata"]["name"]
            lines.append(f"  pod {pod_name}: Ready={condition(pod, 'Ready')}")
            lines += [f"    {line}" for line in cluster.kube.kubectl("logs", "-n", OPERATOR_NAMESPACE, pod_name, "--tail=12", check=False).stdout.splitlines()]
        return "\n".join(lines)

    def gateway_nodes(self, cluster: Cluster) -> list[str]:
        return sorted(n["metadata"]["name"] for n in cluster.kube.list("nodes", selector=f"{GATEWAY_LABEL}=true"))

    def move_gateway(self, cluster: Cluster, old: str, new: str) -> None:
        cluster.kube.kubectl("label", "node", new, f"{GATEWAY_LABEL}=true")
        cluster.kube.kubectl("label", "node", old, f"{GATEWAY_LABEL}-")

    def known_gateways(self, cluster: Cluster) -> set[str]:
        """The nodes that anything names as a gateway of this cluster: its own objects, the broker, and the peers' copies."""
        names = {g["metadata"]["name"] for g in cluster.kube.list("gateways.submariner.io", OPERATOR_NAMESPACE)}
        for kube, ns in [(self.hub.kube, BROKER_NAMESPACE), *((m.kube, OPERATOR_NAMESPACE) for m in self.members)]:
            endpoints = kube.list("endpoints.submariner.io", ns)
            names |= {e["spec"]["hostname"] for e in endpoints if e["spec"]["cluster_id"] == cluster.name}
        return names

    def memory(self, cluster: Cluster) -> dict[str, dict[str, int]]:
        """Resident KiB of each of our programs, by node."""
        script = ('for p in /proc/[0-9]*; do read -r name < $p/comm 2>/dev/null || continue; case $name in fabric-*) '
                  "echo $(tr '\\0' ' ' < $p/cmdline | cut -d' ' -f1) $(sed -n 's/^VmRSS:[^0-9]*\\([0-9]*\\).*/\\1/p' $p/status);; esac; done")
        return {node.name: {Path(line.split()[0]).name: int(line.split()[1]) for line in node.run(script).stdout.splitlines() if len(line.split()) == 2}
                for node in cluster.nodes}

    # --- the wire and the kernel ---

    @contextmanager
    def wan_capture(self, cluster: Cluster, name: str = "wan") -> Iterator[Capture]:
        """Everything that enters or leaves a cluster, and nothing that stays inside: frames from or to the lab's router,
        except those of the router's own API server."""
        router = json.loads(self.lab.namespace.run(["ip", "-j", "link", "show", "dev", cluster.spec.bridge]).stdout)[0]["address"]
        own = " and ".join(f"not host {ip}" for ip in cluster.spec.gateway_ips)
        with self.lab.capture(cluster, name, f"ether host {router} and {own}") as capture:
            yield capture

    def sa_packets(self, cluster: Cluster) -> int:
        """Packets counted on all SAs of a cluster's gateways."""
        total = 0
        for name in self.gateway_nodes(cluster):
            state = self.lab.node(name).run("ip -s xfrm state").stdout
            total += sum(int(n) for n in re.findall(r"(\d+)\(packets\)", state))
        return total

    def sas_and_policies(self, node: str) -> list[str]:
        """Those of a node; nobody else in these clusters uses xfrm."""
        return [line for line in self.lab.node(node).run("ip xfrm state; ip xfrm policy").stdout.splitlines() if line.startswith("src ")]

    def kernel_state(self, cluster: Cluster) -> dict[str, dict[str, str]]:
        """Of every node, without what changes by itself: counters, ages, lifetimes, timers of bridges."""
        return {node.name: {kind: normal(text) for kind, text in node.kernel_state().items()} for node in cluster.nodes}


def normal(text: str) -> str:
    lines = (re.sub(r"\[\d+:\d+\]", "", re.sub(r" (expires|age|valid_lft|preferred_lft|\w+_timer) +\S+", "", line)).rstrip() for line in text.splitlines())
    return "\n".join(sorted(line for line in lines if line and not line.startswith("#")))


def difference(before: dict[str, dict[str, str]], after: dict[str, dict[str, str]]) -> list[str]:
    """Lines that came or went, by node and kind; empty when nothing is left behind."""
    changes = []
    for node in before:
        for kind, text in before[node].items():
            old, new = set(text.splitlines()), set(after.get(node, {}).get(kind, "").splitlines())
            changes += [f"{node} {kind}: - {line}" for line in sorted(old - new)] + [f"{node} {kind}: + {line}" for line in sorted(new - old)]
    return changes


def stopwatch() -> Callable[[], float]:
    """Seconds since now."""
    since = time.monotonic()
    return lambda: time.monotonic() - since
