"""Fabric joined for the scenarios about keys: three members with one node each, and limits that let generations follow each other within seconds."""

from __future__ import annotations

from collections.abc import Callable

from lab import Lab, LabError, standard, wait_for
from lab.workload import Probe

from .deployment import Deployment
from .flood import Figures, Flood
from .keys import GatewayNode, same_counters

SHAPE = standard(clusters=3, nodes=1)
# The time between two generations is dominated by these limits, which protect real clusters from drawing too often.
LIMITS = ["--min-between-draws=0.2", "--min-drain=0.5", "--drain-idle=0.5"]
CALM = 3.0  # seconds of the flood before anything happens: the harness itself must lose nothing


class Joined:
    """Fabric in a lab, its gateways by cluster, and a pod for floods in each member."""

    def __init__(self, lab: Lab, deployment: Deployment, pods: list[Probe]) -> None:
        self.lab = lab
        self.hub = lab["hub"]
        self.deployment = deployment
        self.gateways = {c.name: GatewayNode(c, c.nodes[0]) for c in lab.joined}
        self.pods = pods

    @property
    def both(self) -> list[GatewayNode]:
        """The gateways between which the flood is densest."""
        return [self.gateways["a"], self.gateways["b"]]

    def wait_connected(self, timeout: float = 90) -> None:
        def probe() -> bool:
            for name, gateway in self.gateways.items():
                if missing := sorted(set(self.gateways) - {name} - set(gateway.connected())):
                    raise LabError(f"{name} has no connection to {', '.join(missing)}")
            return True
        wait_for("all connections", probe, timeout, every=0.3)


class Watched:
    """A flood under which a scenario does what it does. `verdict` stops it and asserts that nothing was lost; `note` is told the figures."""

    def __init__(self, joined: Joined, flood: Flood, note: Callable[[str], None]) -> None:
        self.flood = flood
        self._note = note
        self._gateways = joined.gateways.values()
        self._counters = self._read()

    def _read(self) -> dict[str, dict[str, int]]:
        return {g.name: g.xfrm_stat() for g in self._gateways}

    def verdict(self, what: str) -> Figures:
        figures = self.flood.end()
        self._note(f"{what}: {figures}")
        assert figures.lost == figures.refused == figures.overflow == 0, f"{what}: {figures}"
        assert not (grown := same_counters(self._counters, self._read())), f"/proc/net/xfrm_stat: {grown}"
        return figures
