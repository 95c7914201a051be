"""What the scenarios about keys share: one lab, joined once, and the flood."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator

import pytest
from e2e.deployment import Deployment
from e2e.flood import Flood
from e2e.image import fabric_image
from e2e.joined import CALM, LIMITS, Joined, Watched

from lab import Lab, workload
from lab.cluster import in_parallel
from lab.workload import Probe

# For work on a scenario: takes a lab that an earlier run left joined as it stands, and leaves it joined.
AS_IS = bool(os.environ.get("FABRIC_AS_IS"))

_joined: Joined | None = None


@pytest.fixture(scope="session")
def _area(lab_stays: Callable[[Lab], bool]) -> Iterator[None]:
    yield
    if _joined and lab_stays(_joined.lab) and not AS_IS:
        _joined.deployment.purge()


@pytest.fixture(scope="module")
def joined(lab: Lab, _area: None) -> Joined:
    """Every member joined and connected. The scenarios of the area use it one after the other and leave it so."""
    global _joined
    if _joined is None or _joined.lab.state != lab.state:
        deployment = Deployment(lab, fabric_image(), print)
        deployment.gateway_flags = LIMITS
        if not AS_IS or not deployment.is_joined():
            deployment.up()
        pods: dict[str, Probe] = {}
        in_parallel(lambda c: pods.update({c.name: workload.deploy_probes(c)[0]}), deployment.members)
        _joined = Joined(lab, deployment, [pods[c.name] for c in deployment.members])
    _joined.wait_connected()
    return _joined


@pytest.fixture
def note(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Keeps a line for the end of the run, where what passed is silent otherwise."""
    return lambda line: record_property("measured", line)


@pytest.fixture
def watched(joined: Joined, note: Callable[[str], None]) -> Iterator[Watched]:
    """The flood between a and b, c with a tenth of it, shown to lose nothing while nothing happens."""
    with Flood(joined.lab, joined.pods) as flood:
        flood.run_for(CALM)
        calm = flood.figures()
        print(f"\ncontrol: {calm}", flush=True)
        assert calm.lost == 0, f"the harness loses packets while nothing happens: {calm}"
        yield Watched(joined, flood, note)


@pytest.fixture
def dice() -> random.Random:
    """Random moments; FABRIC_SEED repeats a run."""
    seed = os.environ.get("FABRIC_SEED") or str(random.SystemRandom().randrange(10**9))
    print(f"\nseed: FABRIC_SEED={seed}")
    return random.Random(seed)
