"""Fixtures of the scenarios. Run them with hack/lab run; pytest alone works too, as root with test/ on PYTHONPATH.

A scenario says what lab it needs with a module variable, LAB = lab.standard(clusters=3); the default is hub, a and b.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator

import pytest

from lab import Lab, LabError, LabSpec, Turn, paths, standard, turns

_current: Lab | None = None  # the lab this run has brought up; the next scenario may use it
_turn: Turn | None = None  # the name of the lab that this run uses, so that no other run does


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


def _name_for(spec: LabSpec) -> str:
    """The first name that no other run uses and whose lab, if it is up, has the shape wanted."""
    global _turn
    if _turn and _current:
        return _turn.name
    if _turn:
        _turn.give_back()
    for name in turns.names(os.environ.get("FABRIC_LAB_NAME", "default")):
        _turn = Turn.take(name, paths.state_root())
        if _turn and (not Lab.exists(name) or Lab.open(name).spec == spec):
            return name
        if _turn:
            _turn.give_back()
    _turn = None
    raise LabError("every lab that this run might use is in use, or up with another shape than this scenario needs", "hack/lab --name NAME down, or another --name")


@pytest.fixture(scope="module")
def lab(request: pytest.FixtureRequest) -> Lab:
    """The lab the scenario asks for: the one that is up if its shape fits and nobody uses it, else one brought up now."""
    spec = getattr(request.module, "LAB", None) or standard()
    name = _name_for(spec)
    if _current is None and Lab.exists(name):
        return Lab.open(name)
    return _own(name, spec)


@pytest.fixture(scope="session")
def lab_stays() -> Callable[[Lab], bool]:
    """Whether a lab outlives this run, so that what was installed in it has to be removed."""
    return lambda lab: Lab.exists(lab.name) and (lab is not _current or bool(os.environ.get("FABRIC_LAB_KEEP")))


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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What scenarios measured."""
    lines = [f"{report.nodeid}: {line}" for found in terminalreporter.stats.values() for report in found
             for _, line in getattr(report, "user_properties", ()) if getattr(report, "when", "") == "call"]
    if lines:
        terminalreporter.section("figures")
        terminalreporter.write("\n".join(lines) + "\n")
