"""A whole lab: bring up, find again, take down."""

from __future__ import annotations

import fcntl
import json
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from . import coredns, images, nodefiles, paths, uml
from .capture import Capture, Summary, summarise
from .cluster import Cluster, in_parallel
from .errors import LabError
from .netns import Namespace, batch_for_bridge
from .node import CONSOLE_BRIDGE, Node
from .processes import Processes, end
from .spec import LabSpec
from .wan import Wan

Say = Callable[[str], None]


class Lab:
    """Made by `up` or `open`. Its state is below `state`; several labs may run, each in a namespace of its own."""

    def __init__(self, name: str, spec: LabSpec, tools: Path) -> None:
        if not (name.replace("-", "").isalnum() and name.islower() and len(name) <= 20):
            raise LabError(f"lab name {name!r}", "lower case letters, digits and dashes, at most 20")
        self.name = name
        self.spec = spec
        self.state = paths.state_root() / name
        self.tools = tools
        self.namespace = Namespace(f"lab-{name}")
        self.processes = Processes(self.state / "processes")
        self.clusters = {c.name: Cluster(name, c, self.namespace, self.state, self.processes, tools, spec.node_memory) for c in spec.clusters}
        self.wan = Wan(self.namespace)

    # --- life ---

    @staticmethod
    def up(name: str, spec: LabSpec, say: Say = lambda _: None) -> Lab:
        """Brings up a new lab and returns when all nodes are Ready. On failure the lab stays, for a look at its logs."""
        paths.require_machine()
        lab = Lab(name, spec, paths.tools())
        with lab._locked():
            if lab._file.exists() or lab.namespace.exists():
                raise LabError(f"lab {name} is already up", f"hack/lab --name {name} status, or: hack/lab --name {name} down")
            lab._file.write_text(json.dumps({"spec": spec.to_json(), "tools": str(lab.tools)}))
            lab._bring_up(say)
        return lab

    @staticmethod
    def open(name: str) -> Lab:
        """A lab that is up."""
        file = paths.state_root() / name / "lab.json"
        if not file.exists():
            raise LabError(f"lab {name} is not up", f"hack/lab --name {name} up")
        stored = json.loads(file.read_text())
        return Lab(name, LabSpec.from_json(stored["spec"]), Path(stored["tools"]))

    @staticmethod
    def exists(name: str) -> bool:
        return (paths.state_root() / name / "lab.json").exists()

    @staticmethod
    def destroy(name: str) -> bool:
        """Removes every trace of a lab, also of one that crashed halfway. False if there was none."""
        state, namespace = paths.state_root() / name, Namespace(f"lab-{name}")
        there = state.exists() or namespace.exists()
        processes = Processes(state / "processes")
        running = processes.running()
        nodes = [n.name.removeprefix("guest.") for n in (state / "processes").glob("guest.*")]
        in_parallel(lambda node: uml.end_guest(f"lab-{name}-{node}", processes, f"guest.{node}"), nodes)
        for program in ("kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"):
            in_parallel(lambda entry: processes.stop(entry, grace=0.3), [r for r in running if r.endswith(f".{program}")])
        in_parallel(lambda entry: processes.stop(entry, grace=0.3), processes.running())
        end(namespace.processes(), grace=0.3)
        if namespace.exists():
            namespace.delete()
        shutil.rmtree(state, ignore_errors=True)
        return there

    def down(self) -> None:
        Lab.destroy(self.name)

    def _bring_up(self, say: Say) -> None:
        since = time.monotonic()

        def report(what: str) -> None:
            say(f"[{time.monotonic() - since:5.1f} s] {what}")

        archives = [images.archive(images.TOOLS)]
        images.archive(images.PAUSE)
        if any(c.coredns for c in self.spec.clusters):
            archives.append(images.archive(images.COREDNS))
        self._make_network()
        report(f"network {self.namespace.name} and images are there")

        def start(cluster: Cluster) -> None:
            cluster.control.pki.create()
            for node in cluster.nodes:
                nodefiles.write(node.folder, cluster.spec, node.spec, cluster.control, self.tools, archives)
                node.attach()
                node.boot(wait=False)
            cluster.control.start()
            report(f"{cluster.name}: control plane is ready")
            if cluster.spec.coredns:
                coredns.deploy(cluster)
            cluster.wait_ready()
            report(f"{cluster.name}: {len(cluster.nodes)} nodes are Ready")

        in_parallel(start, self.clusters.values())
        in_parallel(lambda node: node.wait_booted(), self.nodes)
        report(f"lab {self.name} is up: {len(self.nodes)} nodes in {len(self.clusters)} clusters")

    def _make_network(self) -> None:
        self.namespace.create()
        lines = batch_for_bridge(CONSOLE_BRIDGE, [f"{nodefiles.CONSOLE_HOST}/24"])
        for cluster in self.spec.clusters:
            lengths = [n.split("/")[1] for n in cluster.node_network]
            lines += batch_for_bridge(cluster.bridge, [f"{ip}/{length}" for ip, length in zip(cluster.gateway_ips, lengths)])
        self.namespace.ip(*lines)

    @property
    def _file(self) -> Path:
        return self.state / "lab.json"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Two `up` of one name at once: the second is told so."""
        self.state.mkdir(parents=True, exist_ok=True)
        with open(self.state / "lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LabError(f"lab {self.name} is being brought up by another program") from None
            yield

    # --- parts ---

    @property
    def nodes(self) -> list[Node]:
        return [node for cluster in self.clusters.values() for node in cluster.nodes]

    @property
    def joined(self) -> list[Cluster]:
        """Every cluster but the hub."""
        return [c for c in self.clusters.values() if c.name != "hub"]

    def cluster(self, name: str) -> Cluster:
        if name not in self.clusters:
            raise LabError(f"lab {self.name} has no cluster {name}", f"one of {', '.join(self.clusters)}")
        return self.clusters[name]

    def __getitem__(self, name: str) -> Cluster:
        return self.cluster(name)

    def node(self, name: str) -> Node:
        """By its full name, "a-n1"."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise LabError(f"lab {self.name} has no node {name}", f"one of {', '.join(n.name for n in self.nodes)}")

    def load_image(self, archive: Path, clusters: list[Cluster] | None = None) -> None:
        """Imports an OCI archive on all nodes (of some clusters) at once."""
        nodes = [n for c in clusters or self.clusters.values() for n in c.nodes]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda node: node.load_image(archive), nodes))

    # --- observation ---

    def capture(self, cluster: Cluster, name: str = "wan", filter: str = "") -> Capture:
        """A capture of everything on a cluster's bridge: `with lab.capture(lab["a"]) as c: ...`, then lab.summarise(c)."""
        return Capture(self.namespace, self.processes, cluster.spec.bridge, self.state / "captures" / f"{name}-{cluster.name}.pcap", filter)

    def summarise(self, capture: Capture) -> Summary:
        """Counts a capture; the pod and service prefixes of all clusters are secret."""
        return summarise(capture.file, [p for c in self.spec.clusters for p in (*c.pods, *c.services)])
