"""Agents killed fifty times at random points, some of them in the middle of a rekey, lose no packet; no SA is ever added again, and those found in the kernel stay until the new process has taken over."""

from __future__ import annotations

import random
import time
from contextlib import ExitStack

from e2e.joined import SHAPE, Joined, Watched
from e2e.keys import GatewayNode, share

from lab import wait_for
from lab.cluster import in_parallel

LAB = SHAPE
KILLS_EACH = share(17)  # in three clusters at once
IN_REKEY = 0.4  # share of the kills that follow a rekey command


def kill_at_random(gateway: GatewayNode, dice: random.Random) -> int:
    """Returns how many of the kills came just after a command."""
    commands = 0
    for _ in range(KILLS_EACH):
        time.sleep(dice.uniform(0, 3))
        if dice.random() < IN_REKEY:
            commands += 1
            gateway.rekey(f"scenario-{dice.getrandbits(64):x}")
            time.sleep(dice.uniform(0, 0.3))
        gateway.kill()
    return commands


def test_kills_lose_nothing(joined: Joined, watched: Watched, dice: random.Random) -> None:
    gateways = list(joined.gateways.values())
    own_dice = {g: random.Random(dice.getrandbits(64)) for g in gateways}
    before = {g: g.instance() for g in gateways}
    commands: list[int] = []
    with ExitStack() as stack:
        watches = [stack.enter_context(g.watch_sas()) for g in gateways]
        in_parallel(lambda g: commands.append(kill_at_random(g, own_dice[g])), gateways)
        wait_for("new instances", lambda: all(g.instance() not in ("", before[g]) for g in gateways), timeout=60)
        joined.wait_connected()
        time.sleep(3)  # what was adopted is drained
        faults = [fault for w in watches for fault in w.faults()]
        added = sum(w.count("added") for w in watches)
    watched.verdict(f"{KILLS_EACH * len(gateways)} kills, {sum(commands)} of them in a rekey, {added} SAs added")
    assert not faults, faults
