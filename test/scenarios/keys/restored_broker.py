"""A broker restored from an older snapshot, with records of generations that are gone, causes no outage, and rekeying goes on."""

from __future__ import annotations

from e2e.joined import SHAPE, Joined, Watched
from e2e.keys import endpoint_of, wait_rekeys

from lab import wait_for

LAB = SHAPE
REKEYS = 3


def rekey(joined: Joined, word: str) -> None:
    drawn = {g: g.rekeys() for g in joined.both}
    for gateway in joined.both:
        gateway.rekey(f"{word}-{drawn[gateway]}")
    wait_rekeys({g: n + 1 for g, n in drawn.items()})


def test_an_older_broker_is_no_outage(joined: Joined, watched: Watched) -> None:
    hub = joined.hub
    snapshot = hub.snapshot()
    old = {g: endpoint_of(hub, g.cluster.name)["spec"]["backend_config"] for g in joined.both}
    for i in range(REKEYS):
        rekey(joined, f"before-restore-{i}")
    hub.restore(snapshot)
    # What stands there is of the past: the very records of then.
    assert all(endpoint_of(hub, g.cluster.name)["metadata"]["name"] for g in joined.both)
    for i in range(REKEYS):
        rekey(joined, f"after-restore-{i}")
    joined.wait_connected()
    wait_for("current records at the broker", lambda: all(endpoint_of(hub, g.cluster.name)["spec"]["backend_config"]["fabric-keys"] != old[g]["fabric-keys"] for g in joined.both),
             timeout=90, every=0.5)
    watched.verdict(f"a broker {REKEYS} generations old")
