"""Fixtures of the scenarios. Run them with hack/lab run; pytest alone works too, as root with test/ on PYTHONPATH.

A scenario says what lab it needs with a module variable, LAB = lab.standard(clusters=3); the default is hub, a and b.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from lab import Lab, LabError, LabSpec, standard

_current: Lab | None = None  # the lab this run has brought up; the next scenario may use it


def _say(line: str) -> None:
    print(line, flush=True)


def _own(name: str, spec: LabSpec) -> Lab:
    """A lab of this run, with this shape."""
    global _current
    if _current and _current.spec == spec:
        return _current
    if _current:
        _current.down()
        _current = None
    try:
        _current = Lab.up(name, spec, say=_say)
    except LabError:
        if not os.environ.get("FABRIC_LAB_KEEP"):
            Lab.destroy(name)
        raise
    return _current


@pytest.fixture(scope="module")
def lab(request: pytest.FixtureRequest) -> Lab:
    """The lab the scenario asks for: the one that is up if its shape fits, else one brought up now."""
    name = os.environ.get("FABRIC_LAB_NAME", "default")
    spec = getattr(request.module, "LAB", None) or standard()
    if _current is None and Lab.exists(name):
        there = Lab.open(name)
        if there.spec != spec:
            pytest.fail(f"lab {name} is up with another shape than this scenario needs; take it down (hack/lab --name {name} down) or use another --name", pytrace=False)
        return there
    return _own(name, spec)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failed scenario shows the state of its clusters: the lab may be gone when it is read."""
    report = (yield).get_result()
    there = getattr(item, "funcargs", {}).get("lab")
    if report.failed and there:
        for cluster in there.clusters.values():
            try:
                text = cluster.kube.kubectl("get", "nodes,pods", "-A", "-o", "wide", timeout=15, check=False).stdout
                text += cluster.kube.kubectl("get", "events", "-A", "--field-selector=type=Warning", timeout=15, check=False).stdout
            except (LabError, subprocess.SubprocessError) as error:
                text = str(error)
            report.sections.append((f"cluster {cluster.name}", text[-6000:]))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _current and not os.environ.get("FABRIC_LAB_KEEP"):
        _current.down()
