"""What a lab looks like: clusters, nodes and every address, as pure values.

Cluster number i (hub 0, a 1, b 2, ...) has nodes in 172.20.i.0/24 and fd20:i::/64, pods in 10.i.0.0/16 and
fd10:i::/48, services in 10.(100+i).0.0/16 and fd10:(100+i)::/112 unless its spec says otherwise.
"""

from __future__ import annotations

import string
from dataclasses import asdict, dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

Networks = tuple[str, str]  # IPv4, IPv6


@dataclass(frozen=True)
class NodeSpec:
    name: str
    index: int  # within its cluster, from 0
    ips: Networks  # addresses without prefix length
    pod_cidrs: Networks
    mac: str
    console_ip: str  # reachable even when the node is cut off from its cluster


@dataclass(frozen=True)
class ClusterSpec:
    """One cluster. Prefixes left empty are computed from `number`."""

    name: str
    number: int
    nodes: int = 2
    pods: Networks = ("", "")
    services: Networks = ("", "")
    node_network: Networks = ("", "")
    coredns: bool = False
    labels: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (self.name.isalnum() and self.name.islower() and len(self.name) <= 8):
            raise ValueError(f"cluster name {self.name!r}: lower case letters and digits, at most 8")
        i = self.number
        defaults = {"pods": (f"10.{i}.0.0/16", f"fd10:{i}::/48"), "services": (f"10.{100 + i}.0.0/16", f"fd10:{100 + i}::/112"),
                    "node_network": (f"172.20.{i}.0/24", f"fd20:{i}::/64")}
        for name, default in defaults.items():
            given = getattr(self, name)
            value = tuple(str(ip_network(g or d)) for g, d in zip(given, default))
            object.__setattr__(self, name, value)

    @property
    def gateway_ips(self) -> Networks:
        """Addresses of the lab's router on the cluster's bridge; the control plane listens there too."""
        return (str(ip_network(self.node_network[0])[1]), str(ip_network(self.node_network[1])[1]))

    @property
    def api_port(self) -> int:
        return 6443 + self.number

    @property
    def api_url(self) -> str:
        return f"https://{self.gateway_ips[0]}:{self.api_port}"

    @property
    def first_service_ip(self) -> str:
        return str(ip_network(self.services[0])[1])

    @property
    def dns_ip(self) -> str:
        return str(ip_network(self.services[0])[10])

    @property
    def bridge(self) -> str:
        return f"br-{self.name}"

    @property
    def pod_prefix_lengths(self) -> tuple[int, int]:
        """Lengths of one node's pod prefixes: Kubernetes' defaults, /24 and /64."""
        return (24, 64)

    def node_specs(self) -> list[NodeSpec]:
        pods4, pods6 = IPv4Network(self.pods[0]), IPv6Network(self.pods[1])
        len4, len6 = self.pod_prefix_lengths
        nodes = []
        for n in range(self.nodes):
            each4 = IPv4Network((int(pods4[0]) + (n << (32 - len4)), len4))
            each6 = IPv6Network((int(pods6[0]) + (n << (128 - len6)), len6))
            ips = tuple(str(ip_network(net)[0x11 + n if ":" in net else 11 + n]) for net in self.node_network)
            nodes.append(NodeSpec(f"{self.name}-n{n + 1}", n, ips, (str(each4), str(each6)),
                                  f"02:00:00:00:{self.number:02x}:{n + 1:02x}", f"192.0.2.{10 + self.number * 16 + n}"))
        return nodes


@dataclass(frozen=True)
class LabSpec:
    clusters: tuple[ClusterSpec, ...]
    node_memory: str = "2G"

    def __post_init__(self) -> None:
        if len({c.name for c in self.clusters}) != len(self.clusters) or len({c.number for c in self.clusters}) != len(self.clusters):
            raise ValueError("two clusters share a name or a number")
        if any(c.nodes > 15 for c in self.clusters) or len(self.clusters) > 15:
            raise ValueError("at most 15 clusters of 15 nodes")

    def cluster(self, name: str) -> ClusterSpec:
        return next(c for c in self.clusters if c.name == name)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(value: dict[str, Any]) -> LabSpec:
        clusters = []
        for c in value["clusters"]:
            pairs = {k: tuple(c[k]) for k in ("pods", "services", "node_network")}
            clusters.append(ClusterSpec(**{**c, **pairs}))
        return LabSpec(tuple(clusters), value["node_memory"])


def standard(clusters: int = 2, nodes: int = 2, hub: bool = True, hub_nodes: int = 1, coredns: bool = False,
             **overrides: dict[str, Any]) -> LabSpec:
    """hub and `clusters` joined clusters named a, b, c, ...; `overrides` maps a cluster's name to fields of its ClusterSpec."""
    specs = []
    if hub:
        specs.append(ClusterSpec("hub", 0, **{"nodes": hub_nodes, "coredns": coredns, **overrides.pop("hub", {})}))
    for i, name in enumerate(string.ascii_lowercase[:clusters], start=1):
        specs.append(ClusterSpec(name, i, **{"nodes": nodes, "coredns": coredns, **overrides.pop(name, {})}))
    if overrides:
        raise ValueError(f"no such cluster: {', '.join(overrides)}")
    return LabSpec(tuple(specs))
