"""A flood of numbered packets between pods of different clusters, in both directions and families, that accounts for each packet."""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

from lab import Lab, LabError, paths, wait_for
from lab.command import run
from lab.console import Running
from lab.errors import Hopeless
from lab.nodefiles import guest_path
from lab.workload import Probe

SOURCE = Path(__file__).with_name("flood_in_pod.cpp")
PORT = 9000
SIZE = 200  # bytes of payload
RATE4, RATE6 = 1000, 100  # packets a second in each direction of a pair
SETTLE = 5.0  # seconds without an arrival after which nothing is on its way any more


@dataclass(frozen=True)
class Flow:
    id: int
    source: Probe
    target: Probe
    address: str
    rate: int

    def __str__(self) -> str:
        return f"{self.source.cluster.name}>{self.target.cluster.name} IPv{6 if ':' in self.address else 4}"


@dataclass(frozen=True)
class Figures:
    """Of all flows together, since the flood began. `lost` is exact once the flood has ended, and excludes what is on its way before."""

    seconds: float
    sent: int
    received: int
    lost: int
    twice: int
    refused: int
    overflow: int  # of the lost, those that the flood itself was too slow to take: a fault of the harness
    outage: float  # longest time, by the sender's clock, between two packets of one flow that arrived with lost ones between them
    silence: float  # longest time in which nothing arrived at one pod, waiting for a processor included
    losses: tuple[str, ...]

    def __str__(self) -> str:
        text = f"{self.sent} packets sent in {self.seconds:.1f} s ({self.sent / max(self.seconds, 0.001):.0f}/s), {self.lost} lost, longest outage {self.outage * 1000:.0f} ms, longest silence {self.silence * 1000:.0f} ms"
        if self.overflow:
            text += f"; {self.overflow} lost by the harness, whose machine is too slow"
        return text + (f"; lost on {', '.join(self.losses[:8])}" if self.losses else "")


def program() -> Path:
    """The program that runs in the pods, built when its source has changed. Static: the guests' libraries are none of its business."""
    built = paths.cache_root() / "flood" / hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]
    if not built.exists():
        built.parent.mkdir(parents=True, exist_ok=True)
        unfinished = built.with_name(f".{built.name}.{os.getpid()}")
        run(["clang++-19", "-std=c++23", "-O2", "-static", "-o", str(unfinished), str(SOURCE)])
        unfinished.rename(built)
    return built


class Flood:
    """`with Flood(lab, [pod of a, pod of b]) as flood: ...; figures = flood.end()`. Every pod sends to every pod of another cluster, at
    a tenth of the rate where a pod beyond the first two takes part: guests have little processor time."""

    def __init__(self, lab: Lab, pods: list[Probe]) -> None:
        self._lab = lab
        self._pods = pods
        self._program = program()
        pairs = [(s, t, a) for s in pods for t in pods if s.cluster.name != t.cluster.name for a in t.ips]
        self.flows = [Flow(i, s, t, a, (RATE6 if ":" in a else RATE4) // (1 if {s, t} <= set(pods[:2]) else 10)) for i, (s, t, a) in enumerate(pairs)]
        self._ends: dict[str, Running] = {}
        self._since = self._until = 0.0
        self._final: Figures | None = None

    def start(self) -> Flood:
        """Returns when something of every flow has arrived."""
        for pod in self._pods:
            self._ends[pod.node] = self._start(pod)
        # Every end listens before the first one sends.
        wait_for("the ends of the flood", lambda: all(last_line(end) or _died(end) for end in self._ends.values()), timeout=30, every=0.1)
        for end in self._ends.values():
            end.write("go\n")
        self._since = time.monotonic()

        def flowing() -> bool:
            received = {flow for end in self._ends.values() for flow, n in last_line(end).get("received", {}).items() if n["unique"]}
            silent = [str(f) for f in self.flows if str(f.id) not in received]
            if silent:
                raise LabError(f"nothing arrives on {', '.join(silent)}")
            return True
        wait_for("the flood to reach its ends", flowing, timeout=20, every=0.2)
        return self

    def _start(self, pod: Probe) -> Running:
        node = self._lab.node(pod.node)
        arguments = [str(word) for f in self.flows if f.source is pod for word in (f.id, f.address, f.rate)]
        script = (f'for n in /run/netns/cni-*; do nsenter --net=$n ip -o -4 addr show | grep -qF " {pod.ips[0]}/" && '
                  f'exec nsenter --net=$n nice -n -15 "$0" "$@"; done; echo "no pod {pod.ips[0]}" >&2; exit 1')
        return node.start(["bash", "-c", script, guest_path(self._program), str(PORT), str(SIZE), *arguments], conversation=True)

    def figures(self) -> Figures:
        """So far. Holes in the numbers are counted as lost once a later packet has come."""
        return self._final or self._sum(final=False)

    def lost(self) -> int:
        return self.figures().lost

    def wait_flowing(self, timeout: float) -> None:
        """Until packets sent from now on have arrived on every flow."""
        sent = {f: last_line(self._ends[f.source.node])["sent"][str(f.id)] + f.rate for f in self.flows}  # what the report of half a second ago lacks

        def probe() -> bool:
            silent = [str(f) for f in self.flows if last_line(self._ends[f.target.node])["received"].get(str(f.id), {"next": 0})["next"] <= sent[f]]
            if silent:
                raise LabError(f"nothing new on {', '.join(silent)}")
            return True
        wait_for("every flow", probe, timeout, every=0.1)

    def run_for(self, seconds: float) -> Figures:
        """Lets the flood run and returns the figures at the end of that time."""
        time.sleep(seconds)
        return self.figures()

    def end(self) -> Figures:
        """Stops the senders, waits for what is on its way, and returns the exact figures."""
        if self._final:
            return self._final
        self._sum(final=False)  # none of the ends has died
        for end in self._ends.values():
            end.write("stop\n")
        self._until = time.monotonic()
        self._wait_arrived()
        for end in self._ends.values():
            end.end_input()
        for node, end in self._ends.items():
            if not end.wait(20).ok:
                raise LabError(f"the flood on {node} ended with an error: {end.stdout[-500:]}")
        self._final = self._sum(final=True)
        return self._final

    def _wait_arrived(self) -> None:
        """Until everything sent has arrived, or nothing arrives any more."""
        time.sleep(0.6)  # the senders' last reports
        received, changed = -1, time.monotonic()
        while time.monotonic() - changed < SETTLE:
            now = self._sum(final=True)
            if now.received == now.sent:
                return
            if now.received != received:
                received, changed = now.received, time.monotonic()
            time.sleep(0.2)

    def _sum(self, final: bool) -> Figures:
        lines = {node: last_line(end) for node, end in self._ends.items()}
        dead = [node for node, end in self._ends.items() if end.done and not final]
        if dead:
            raise LabError(f"the flood on {', '.join(dead)} has died")
        sent = received = lost = twice = 0
        outage, losses = 0.0, []
        for flow in self.flows:
            out = lines[flow.source.node].get("sent", {}).get(str(flow.id), 0)
            into = lines[flow.target.node].get("received", {}).get(str(flow.id), {"unique": 0, "twice": 0, "missing": 0, "outage": 0.0, "holes": []})
            gone = out - into["unique"] if final else into["missing"]
            sent, received, lost, twice = sent + out, received + into["unique"], lost + gone, twice + into["twice"]
            outage = max(outage, into["outage"])
            if gone:
                losses.append(f"{flow}: {gone} (first {into['holes'][:3]})")
        return Figures((self._until or time.monotonic()) - self._since, sent, received, lost, twice, sum(line.get("refused", 0) for line in lines.values()), sum(line.get("overflow", 0) for line in lines.values()), outage,
                       max(line.get("silence", 0.0) for line in lines.values()), tuple(losses))

    def __enter__(self) -> Flood:
        return self.start()

    def __exit__(self, *_: object) -> None:
        for end in self._ends.values():
            end.stop()


def _died(end: Running) -> bool:
    if end.done:
        raise Hopeless(f"a flood did not start: {end.wait(1).stderr[-500:]}")
    return False


def last_line(end: Running) -> dict:
    lines = end.stdout.rsplit("\n", 2)
    return json.loads(lines[-2]) if len(lines) > 1 else {}
