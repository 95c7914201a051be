"""The network between the clusters: the router in the lab's namespace, with its filters and address translation."""

from __future__ import annotations

from .cluster import Cluster
from .command import run
from .netns import Namespace

_TABLE = "lab_wan"


class Wan:
    """Every change rewrites one nftables table, so that the rules are always those of the fields below."""

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        self._filters: list[str] = []
        self._dnat: list[str] = []
        self._snat: list[str] = []

    def block(self, a: Cluster, b: Cluster | None = None, match: str = "") -> None:
        """Drops forwarded packets between `a` and `b` (None: everyone), both ways.

        `match` narrows it in nft's words: "udp dport 4500", "meta l4proto esp".
        """
        pairs = ((a, b), (b, a)) if b else ((a, None), (None, a))
        for source, target in pairs:
            words = [f'iifname "{source.spec.bridge}"' if source else "", f'oifname "{target.spec.bridge}"' if target else "", match, "counter drop"]
            self._filters.append(" ".join(w for w in words if w))
        self._write()

    def block_one_way(self, source: Cluster, target: Cluster, match: str = "") -> None:
        self._filters.append(f'iifname "{source.spec.bridge}" oifname "{target.spec.bridge}" {match} counter drop')
        self._write()

    def nat(self, cluster: Cluster, public: str = "", forward: dict[tuple[str, int], tuple[str, int]] | None = None) -> str:
        """Puts a cluster behind address translation; returns its public address.

        Others see `public` (default 198.51.100.(10+number)) and cannot reach the private addresses; only the ports in `forward`,
        {("udp", 4500): (node ip, 4500)}, lead in. The cluster's own API server stays reachable.
        """
        public = public or f"198.51.100.{10 + cluster.spec.number}"
        bridge, network = cluster.spec.bridge, cluster.spec.node_network[0]
        for (protocol, port), (ip, to_port) in (forward or {}).items():
            self._dnat.append(f'iifname != "{bridge}" ip daddr {public} {protocol} dport {port} dnat ip to {ip}:{to_port}')
        self._snat.append(f'iifname "{bridge}" oifname != "{bridge}" ip saddr {network} snat ip to {public}')
        self._filters.append(f'oifname "{bridge}" iifname != "{bridge}" ct state new ct status & dnat == 0 counter drop')
        self._write()
        # The address has to be this router's own, or nobody would answer for it.
        self.namespace.ip(f"addr replace {public}/32 dev lo")
        return public

    def clear(self) -> None:
        """Back to plain forwarding; forgets translations in use."""
        self._filters, self._dnat, self._snat = [], [], []
        self.namespace.run(f"nft 'add table inet {_TABLE}; delete table inet {_TABLE}'; "
                           "ip -o -4 addr show dev lo | awk '/198\\.51\\.100\\./{print $4}' | xargs -rn1 ip addr del dev lo")

    def rules(self) -> str:
        """The table with its counters, as nft shows it."""
        return self.namespace.run(["nft", "list", "table", "inet", _TABLE], check=False).stdout

    def _write(self) -> None:
        chains = {"forward": ("filter", 0, self._filters), "prerouting": ("nat", -100, self._dnat), "postrouting": ("nat", 100, self._snat)}
        text = [f"add table inet {_TABLE}", f"delete table inet {_TABLE}", f"table inet {_TABLE} {{"]
        for hook, (kind, priority, rules) in chains.items():
            text += [f"chain {hook} {{ type {kind} hook {hook} priority {priority};", *rules, "}"]
        run(self.namespace.argv(["nft", "-f", "-"]), stdin="\n".join([*text, "}"]) + "\n")
