"""SAs and policies flushed by hand come back within a bounded time, with new keys, and meanwhile no packet leaves in clear."""

from __future__ import annotations

import time
from collections.abc import Callable

from e2e.deployment import stopwatch
from e2e.flood import Flood
from e2e.joined import SHAPE, Joined
from e2e.keys import GatewayNode

LAB = SHAPE
BOUND = 60.0  # seconds, generous: the figures are printed


def flush_sas(gateway: GatewayNode) -> None:
    gateway.node.run("ip xfrm state flush")


def flush_policies(gateway: GatewayNode) -> None:
    gateway.node.run("ip xfrm policy flush")


def test_what_was_flushed_comes_back_and_nothing_is_sent_in_clear(joined: Joined, note: Callable[[str], None]) -> None:
    a, b = joined.both
    steps: list[tuple[str, list[Callable[[], None]]]] = [
        ("SAs of a", [lambda: flush_sas(a)]), ("policies of b", [lambda: flush_policies(b)]),
        ("policies and SAs of both", [lambda: flush_policies(a), lambda: flush_policies(b), lambda: flush_sas(a), lambda: flush_sas(b)])]
    with a.watch_sas() as at_a, b.watch_sas() as at_b, joined.lab.capture(a.cluster, "flush") as capture, Flood(joined.lab, joined.pods) as flood:
        assert flood.run_for(2).lost == 0
        for what, actions in steps:
            elapsed = stopwatch()
            for action in actions:
                action()
            flood.wait_flowing(BOUND)
            note(f"{what} flushed: everything flows again after {elapsed():.1f} s")
            joined.wait_connected()
            time.sleep(2)
        figures = flood.end()
        faults = at_a.faults(gaps=False) + at_b.faults(gaps=False)
    note(f"flushes: {figures}")
    assert figures.outage < BOUND
    summary = joined.lab.summarise(capture)
    assert summary.esp > 0 and not summary.clear, summary.clear[:5]
    assert not faults, faults
