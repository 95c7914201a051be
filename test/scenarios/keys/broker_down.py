"""While the broker's control plane is down, both sides rekey twice, by records through the tunnel, and lose nothing."""

from __future__ import annotations

from e2e.joined import SHAPE, Joined, Watched
from e2e.keys import GatewayNode

from lab import LabError, wait_for

LAB = SHAPE
ROUNDS = 2


def live(gateway: GatewayNode) -> list[str]:
    return [g["generation"] for g in gateway.keys().get("generations", [])]


def wait_moved_on(gateway: GatewayNode, from_: list[str]) -> None:
    """Until one generation is left, and a new one: every peer has proved it and the old one is drained."""
    def probe() -> bool:
        now = live(gateway)
        if len(now) != 1 or now[0] in from_:
            raise LabError(f"{gateway.name} had generations {from_}, now has {now}")
        return True
    wait_for(f"the rekey of {gateway.name}", probe, timeout=60, every=0.3)


def test_rekeying_goes_on_without_the_broker(joined: Joined, watched: Watched) -> None:
    joined.hub.stop_control_plane()
    try:
        for i in range(ROUNDS):
            before = {g: live(g) for g in joined.both}
            for gateway in joined.both:
                gateway.rekey(f"broker-down-{i}-{before[gateway]}")
            for gateway in joined.both:
                wait_moved_on(gateway, before[gateway])
        assert not joined.hub.kube.ready()
    finally:
        joined.hub.start_control_plane()
    joined.wait_connected()
    watched.verdict(f"{ROUNDS} rekeys of both sides without the broker")
