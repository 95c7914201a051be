"""A hundred rekeys at random moments on both sides of a tunnel lose none of a thousand packets a second in each direction."""

from __future__ import annotations

import random
import time

from e2e.joined import SHAPE, Joined, Watched
from e2e.keys import GatewayNode, share, wait_rekeys

from lab.cluster import in_parallel

LAB = SHAPE
REKEYS_EACH = share(50)


def rekey_at_random(gateway: GatewayNode, dice: random.Random) -> None:
    """One command after the other: two within one draw would count as one."""
    drawn = gateway.rekeys()
    for i in range(1, REKEYS_EACH + 1):
        time.sleep(dice.uniform(0, 0.8))
        gateway.rekey(f"scenario-{dice.getrandbits(64):x}")
        wait_rekeys({gateway: drawn + i})


def test_rekeys_lose_nothing(joined: Joined, watched: Watched, dice: random.Random) -> None:
    before = {g: g.rekeys() for g in joined.both}
    policies = {g: g.policies() for g in joined.both}
    assert all(policies.values())
    own_dice = {g: random.Random(dice.getrandbits(64)) for g in joined.both}
    a, b = joined.both
    with a.watch_sas() as at_a, b.watch_sas() as at_b:
        in_parallel(lambda g: rekey_at_random(g, own_dice[g]), joined.both)
        time.sleep(2)  # the last of them is still being drained
        faults = at_a.faults() + at_b.faults()
        added = {"a": at_a.count("added"), "b": at_b.count("added")}
    drawn = sum(g.rekeys() - before[g] for g in joined.both)
    watched.verdict(f"{drawn} rekeys, SAs added {added}")
    assert drawn >= 2 * REKEYS_EACH
    assert min(added.values()) >= 2 * REKEYS_EACH, "a rekey adds SAs in both directions"
    assert not faults, faults
    assert {g: g.policies() for g in joined.both} == policies, "a rekey touches no policy"
