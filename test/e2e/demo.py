"""The main job, end to end, with a verdict: what hack/demo runs, and what the scenario join/demo asserts."""

from __future__ import annotations

import argparse
import sys
import threading
import time
from pathlib import Path

from lab import Lab, LabError, standard, wait_for
from lab.cluster import in_parallel

from .deployment import Deployment, difference, stopwatch
from .traffic import Outcome, Traffic

PATIENCE = 120.0  # seconds; the figures are printed, and a busy machine takes its time


class Verdict:
    """Rows of a table, each with what was found; the whole passes when every row does."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, bool, str]] = []

    def add(self, what: str, passed: bool, found: str) -> None:
        self.rows.append((what, passed, found))
        print(f"   {'ok    ' if passed else 'FAILED'} {what}: {found}", flush=True)

    @property
    def passed(self) -> bool:
        return bool(self.rows) and all(ok for _, ok, _ in self.rows)

    def __str__(self) -> str:
        width = max(len(what) for what, _, _ in self.rows)
        return "\n".join(f"{what:<{width}}  {'ok' if ok else 'FAILED':<6}  {found}" for what, ok, found in self.rows)


class Demo:
    """Steps in the order of a user's work; each prints what it does and adds rows to the verdict."""

    def __init__(self, lab: Lab, image: Path) -> None:
        self.lab = lab
        self.verdict = Verdict()
        self._elapsed = stopwatch()
        self.deployment = Deployment(lab, image, self.say)
        self.traffic = Traffic({c.name: c.kube for c in lab.joined}, {c.name: [n.name for n in c.nodes] for c in lab.joined})

    def say(self, what: str) -> None:
        print(f"[{self._elapsed():6.1f} s] {what}", flush=True)

    def run(self) -> Verdict:
        self.install()
        self.join()
        self.reach()
        self.inspect()
        self.move()
        self.leave()
        return self.verdict

    def install(self) -> None:
        d = self.deployment
        self.say("importing the image into every node, starting test pods")
        d.load_image()
        self.traffic.start()
        self.say("helm install of the operator into every cluster")
        d.install_operators()
        in_parallel(lambda c: c.kube.wait_pods(1, "submariner-operator"), self.lab.clusters.values())
        self.before = {c.name: d.kernel_state(c) for c in d.members}
        self.isolated = [r for r in self.traffic.check_all(patience=1) if r.reached]
        self.verdict.add("clusters are apart before", not self.isolated, f"{len(self.isolated)} placements answer")

    def join(self) -> None:
        d = self.deployment
        self.say("hub: kubectl apply of the broker")
        d.deploy_broker()
        self.say("hub: kubectl get cm submariner-broker-info, copied to every member")
        text = d.broker_info()
        for cluster in d.members:
            d.copy_broker_info(cluster, text)
        for cluster in d.members[:-1]:
            self.say(f"{cluster.name}: kubectl apply of the join")
            d.apply_join(cluster)
        last = d.members[-1]
        for cluster in d.members[:-1]:
            d.wait_condition(cluster, "join-broker-sample", "AgentsReady")
        first_ping = FirstAnswer(self, last.name)
        self.say(f"{last.name}: kubectl apply of the join; a pod of {d.members[0].name} pings one of {last.name} from now on")
        since = first_ping.start()
        d.apply_join(last)
        answered = first_ping.wait(PATIENCE)
        self.verdict.add("join applied to first ping", answered is not None, f"{answered - since:.1f} s" if answered else f"no answer within {PATIENCE:.0f} s")
        self.say("kubectl wait --for=condition=Ready in every member")
        d.wait_joined()

    def reach(self) -> None:
        d, first = self.deployment, self.deployment.members[0]
        self.say("every pod reaches every pod and service of the other clusters, over both families")
        counted = d.sa_packets(first)
        with d.wan_capture(first) as capture:
            rows = self.traffic.wait_all()
        for family in ("IPv4", "IPv6"):
            for kind in ("pod", "service"):
                self._placements(family, kind, [r for r in rows if r.target.family == family and r.target.kind == kind])
        summary = self.lab.summarise(capture)
        self.verdict.add("ESP on the wire", summary.esp > 0, f"{summary.esp} ESP packets on the WAN")
        self.verdict.add("nothing in clear", not summary.clear, f"{len(summary.clear)} clear packets; kinds {dict(summary.kinds)}")
        grown = d.sa_packets(first) - counted
        self.verdict.add("SA counters grow", grown > 0, f"+{grown} packets on the SAs of {first.name}")

    def _placements(self, family: str, kind: str, rows: list[Outcome]) -> None:
        good = sum(r.ok for r in rows)
        self.verdict.add(f"{kind}s over {family}, source address kept", bool(rows) and good == len(rows), f"{good} of {len(rows)} placements")

    def inspect(self) -> None:
        d = self.deployment
        for cluster in d.members:
            fabric = d.fabric(cluster)
            self.say(f"{cluster.name}: kubectl get fabric\n{d.table(cluster)}")
            self.verdict.add(f"{cluster.name}: fabric is Ready", fabric["status"].get("phase") == "Running", f"connections {d.connections(cluster)}")
        sizes: dict[str, list[int]] = {}
        for cluster in self.lab.clusters.values():
            for programs in d.memory(cluster).values():
                for program, kib in programs.items():
                    sizes.setdefault(program, []).append(kib)
        for program, values in sorted(sizes.items()):
            self.verdict.add(f"memory of {program}", True, f"{max(values) / 1024:.1f} MiB at most, of {len(values)}")

    def move(self) -> None:
        d, cluster = self.deployment, self.deployment.members[0]
        [old] = d.gateway_nodes(cluster)
        new = next(n.name for n in cluster.nodes if n.name != old)
        before = len(d.sas_and_policies(old))
        self.say(f"{cluster.name}: the gateway moves with its label from {old} to {new}")
        elapsed = stopwatch()
        d.move_gateway(cluster, old, new)

        def settled() -> bool:
            known, left = d.known_gateways(cluster), d.sas_and_policies(old)
            if known != {new} or left:
                raise LabError(f"known as gateways: {', '.join(sorted(known))}; {old} has {len(left)} SAs and policies")
            return True
        wait_for("the old gateway to be forgotten", settled, PATIENCE)
        rows = self.traffic.wait_all()
        self.verdict.add(f"{cluster.name}: gateway moved", before > 0, f"{len(rows)} placements after {elapsed():.1f} s; {old} had {before} SAs and policies, now none")
        d.wait_joined()

    def leave(self) -> None:
        d = self.deployment
        self.say("kubectl delete fabric in every member")
        in_parallel(d.leave, d.members)
        for cluster in d.members:
            left = difference(self.before[cluster.name], d.kernel_state(cluster))
            self.verdict.add(f"{cluster.name}: nodes as before", not left, "empty diff" if not left else f"{len(left)} lines differ: {left[:5]}")
        endpoints = self.lab["hub"].kube.list("endpoints.submariner.io", "submariner-k8s-broker")
        self.verdict.add("broker forgot the members", not endpoints, f"{len(endpoints)} Endpoints left")


class FirstAnswer:
    """When a pod of the first member gets its first ping answer from a pod of another cluster."""

    def __init__(self, demo: Demo, cluster: str) -> None:
        source = demo.lab.joined[0]
        target = demo.traffic.pod_address(demo.lab[cluster].nodes[0].name, "IPv4")
        self._at: float | None = None
        self._go = threading.Event()
        script = f"echo started; until ping -n -q -c 1 -W 1 {target} >/dev/null 2>&1; do sleep 0.1; done; echo answered"
        self._thread = threading.Thread(target=self._ask, args=(source, f"echo-{source.nodes[0].name}", script), daemon=True)

    def _ask(self, source, pod: str, script: str) -> None:
        self._go.set()
        result = source.kube.exec(pod, script, timeout=PATIENCE + 30)
        if "answered" in result.stdout:
            self._at = time.monotonic()

    def start(self) -> float:
        self._thread.start()
        self._go.wait()
        return time.monotonic()

    def wait(self, timeout: float) -> float | None:
        self._thread.join(timeout)
        return self._at


def main() -> int:
    parser = argparse.ArgumentParser(prog="hack/demo", description="Joins real clusters with Fabric and shows that it works.")
    parser.add_argument("--clusters", type=int, default=2, metavar="N", help="clusters to join (2)")
    parser.add_argument("--keep", action="store_true", help="leave the lab up, joined, and say how to look around")
    parser.add_argument("--name", default="demo", help="name of the lab (demo)")
    parser.add_argument("--image", type=Path, required=True, help="OCI archive of Fabric's image")
    options = parser.parse_args()
    if options.clusters < 2:
        parser.error("--clusters: at least 2")
    if Lab.exists(options.name):
        print(f"taking down the lab {options.name} of an earlier run")
        Lab.destroy(options.name)
    demo = None
    try:
        lab = Lab.up(options.name, standard(options.clusters), print)
        demo = Demo(lab, options.image)
        if options.keep:
            demo.install(), demo.join(), demo.reach(), demo.inspect(), demo.move()
        else:
            demo.run()
    except LabError as error:
        print(f"\nstopped: {error}", file=sys.stderr)
        if demo is not None:
            demo.verdict.add("ran to its end", False, str(error).splitlines()[0])
            for cluster in demo.lab.clusters.values():
                print(f"--- {cluster.name}\n{demo.deployment.explain(cluster)}", file=sys.stderr)
    finally:
        if options.keep and Lab.exists(options.name):
            print(f"\nThe lab stays up. hack/lab --name {options.name} shell a-n1 is a node's shell, hack/lab --name {options.name} kubectl a get fabric asks\n"
                  f"cluster a, and hack/lab --name {options.name} down takes it down.")
        else:
            Lab.destroy(options.name)
    print()
    if demo is not None and demo.verdict.rows:
        print(demo.verdict)
    passed = demo is not None and demo.verdict.passed
    print(f"\n{'PASSED' if passed else 'FAILED'}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
