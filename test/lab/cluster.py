"""One cluster of a lab: its control plane and its nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from .command import wait_for
from .controlplane import ControlPlane
from .errors import Hopeless, LabError
from .kube import Kube, condition
from .netns import Namespace
from .node import Node
from .processes import Processes
from .spec import ClusterSpec

T = TypeVar("T")


def in_parallel(call: Callable[[T], object], items: Iterable[T]) -> None:
    """Calls for every item at once; raises the first error after all have ended."""
    items = list(items)
    if items:
        with ThreadPoolExecutor(len(items)) as pool:
            futures = [pool.submit(call, item) for item in items]
        for future in futures:
            future.result()


class Cluster:
    """`kube` talks to the API server, `control` starts and stops it, `nodes` are in the order of their numbers."""

    def __init__(self, lab_name: str, spec: ClusterSpec, namespace: Namespace, state: Path, processes: Processes, tools: Path, memory: str) -> None:
        self.name = spec.name
        self.spec = spec
        self.control = ControlPlane(spec, namespace, state / "clusters" / spec.name, processes, tools)
        self.nodes = [Node(lab_name, spec, node, namespace, state, processes, memory) for node in spec.node_specs()]

    @property
    def kube(self) -> Kube:
        return self.control.kube

    def node(self, name: str) -> Node:
        """By full name ("a-n1") or short ("n1")."""
        for node in self.nodes:
            if name in (node.name, node.name.removeprefix(f"{self.name}-")):
                return node
        raise LabError(f"cluster {self.name} has no node {name}", f"one of {', '.join(n.name for n in self.nodes)}")

    def not_ready(self) -> list[str]:
        """Names of nodes that are not Ready, or whose guest is dead (the API server learns that 40 s late)."""
        nodes = {n["metadata"]["name"]: n for n in self.kube.api("GET", "/api/v1/nodes")["items"]}
        return [n.name for n in self.nodes if not n.running or condition(nodes.get(n.name, {}), "Ready") != "True"]

    def wait_ready(self, timeout: float = 120) -> None:
        """Until every node is Ready and the cluster can run pods (the default service account exists)."""
        def probe() -> bool:
            for node in self.nodes:
                if not node.running:
                    raise Hopeless(f"guest {node.name} has died; the end of its console:\n{node.log('console')[-1500:]}")
            if missing := self.not_ready():
                raise LabError(f"not Ready: {', '.join(missing)}")
            return bool(self.kube.api("GET", "/api/v1/namespaces/default/serviceaccounts/default"))
        wait_for(f"nodes of cluster {self.name}", probe, timeout)

    def load_image(self, archive: Path) -> None:
        """Imports an OCI archive on all nodes at once."""
        in_parallel(lambda node: node.load_image(archive), self.nodes)

    def stop_control_plane(self) -> None:
        """The API server is gone (a broker that is down); the nodes run on."""
        self.control.stop(grace=1.0)

    def start_control_plane(self) -> None:
        self.control.start()

    def snapshot(self, name: str = "snapshot") -> Path:
        """The objects as they are now, for `restore`."""
        return self.control.snapshot(name)

    def restore(self, snapshot: Path) -> None:
        """Stops the control plane if it runs, and starts it with the objects of an earlier day.

        As etcd's manual asks for, the cluster's own kubelets and kube-proxies start again: they would wait for changes after versions
        that have not been given out yet. Nobody does that for clients elsewhere.
        """
        self.control.stop(grace=1.0)
        self.control.restore(snapshot)
        self.control.start()
        in_parallel(lambda node: node.run("kill $(pidof kubelet kube-proxy)", check=False), [n for n in self.nodes if n.running])
