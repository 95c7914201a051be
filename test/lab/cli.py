"""The command line of the lab: hack/lab."""

from __future__ import annotations

import argparse
import ast
import os
import sys
from pathlib import Path

from . import guest, paths
from .errors import LabError
from .lab import Lab
from .spec import standard

SCENARIOS = paths.CHECKOUT / "test/scenarios"


def _up(options: argparse.Namespace) -> int:
    spec = standard(options.clusters, options.nodes, hub=not options.no_hub, coredns=options.coredns)
    lab = Lab.up(options.name, spec, say=lambda line: print(line, flush=True))
    for cluster in lab.clusters.values():
        print(f"KUBECONFIG of {cluster.name}: {cluster.kube.kubeconfig} (within the namespace {lab.namespace.name})")
    return 0


def _down(options: argparse.Namespace) -> int:
    print(f"lab {options.name} is gone" if Lab.destroy(options.name) else f"there is no lab {options.name}")
    return 0


def _status(options: argparse.Namespace) -> int:
    lab = Lab.open(options.name)
    print(f"lab {lab.name}: state {lab.state}, namespace {lab.namespace.name}")
    good = True
    for cluster in lab.clusters.values():
        ready = cluster.kube.ready()
        missing = cluster.not_ready() if ready else [n.name for n in cluster.nodes]
        print(f"{cluster.name}: control plane {'ready' if ready else 'DOWN'} at {cluster.spec.api_url}, "
              f"pods {' '.join(cluster.spec.pods)}, services {' '.join(cluster.spec.services)}")
        for node in cluster.nodes:
            state = "not booted" if not node.running else "not Ready" if node.name in missing else "Ready"
            print(f"  {node.name} {state}, {node.ip} {node.ip6}, pods {' '.join(node.spec.pod_cidrs)}")
        good = good and ready and not missing
    return 0 if good else 1


def _shell(options: argparse.Namespace) -> int:
    node = Lab.open(options.name).node(options.node)
    command = _after_dashes(options.command)
    if not command and sys.stdin.isatty():
        return node.console.interactive(["bash", "-i"])
    if command and sys.stdin.isatty() and sys.stdout.isatty():
        return node.console.interactive(command)
    script = " ".join(command) if len(command) == 1 else command or ["bash"]
    given = None if sys.stdin.isatty() or command else sys.stdin.read()
    result = node.run(script, stdin=given, timeout=options.timeout, check=False)
    sys.stdout.write(result.stdout)
    sys.stderr.write(result.stderr)
    return result.rc


def _kubectl(options: argparse.Namespace) -> int:
    kube = Lab.open(options.name).cluster(options.cluster).kube
    argv = kube.namespace.argv([str(kube.tools / options.program), f"--kubeconfig={kube.kubeconfig}", *_after_dashes(options.arguments)])
    os.execvp(argv[0], argv)


def _guest(options: argparse.Namespace) -> int:
    guest.require(options.qemu)
    streams = {"stdout": sys.stdout, "stderr": sys.stderr}

    def show(name: str, text: str) -> None:
        streams[name].write(text)
        streams[name].flush()

    command = _after_dashes(options.command)
    if not command:
        raise LabError("no command for the guest", "hack/lab guest -- CMD ...")
    return guest.run(command[0] if len(command) == 1 else command, timeout=options.timeout, memory=options.memory,
                     in_qemu=options.qemu, cpus=options.cpus, on_output=show).rc


def sentence(file: Path) -> str:
    """What a scenario shows: the first sentence of its docstring."""
    text = " ".join((ast.get_docstring(ast.parse(file.read_text())) or "").split())
    return text.split(". ")[0].rstrip(".") + "." if text else "(says nothing about itself)"


def scenarios(name: str = "") -> list[Path]:
    """Files of a scenario (AREA/NAME), of an area, or all. A scenario may be a folder with scenario.py."""
    base = SCENARIOS / name
    if base.with_suffix(".py").is_file() and name:
        return [base.with_suffix(".py")]
    found = [f for f in sorted(base.glob("**/*.py")) if not f.name.startswith(("_", "conftest"))] if base.is_dir() else []
    if name and not found:
        raise LabError(f"there is no scenario {name}", "hack/lab list")
    return found


def _list(_: argparse.Namespace) -> int:
    for file in scenarios():
        name = file.relative_to(SCENARIOS).with_suffix("")
        print(f"{str(name.parent if name.name == 'scenario' else name):32} {sentence(file)}")
    return 0


def _run(options: argparse.Namespace) -> int:
    paths.require_machine()
    files = [str(f) for name in options.scenario for f in scenarios("" if name == "all" else name)]
    environment = {**os.environ, "FABRIC_LAB_NAME": options.name, "FABRIC_LAB_KEEP": "1" if options.keep else ""}
    argv = [sys.executable, "-s", "-m", "pytest", "-c", str(SCENARIOS / "pytest.ini"), f"--rootdir={SCENARIOS}", "-p", "no:cacheprovider", *_after_dashes(options.pytest), *files]
    os.execve(sys.executable, argv, environment)


def _after_dashes(arguments: list[str]) -> list[str]:
    return arguments[1:] if arguments[:1] == ["--"] else arguments


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hack/lab", description="Real Kubernetes clusters on this machine; see test/lab/README.md.")
    parser.add_argument("--name", default=os.environ.get("FABRIC_LAB_NAME", "default"), help="several labs may run under different names")
    sub = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, call, text: str) -> argparse.ArgumentParser:
        part = sub.add_parser(name, help=text, description=text)
        part.set_defaults(call=call)
        return part

    up = command("up", _up, "bring up the clusters hub, a, b, ...")
    up.add_argument("--clusters", type=int, default=2, help="joined clusters, named a, b, c, ... (default 2)")
    up.add_argument("--nodes", type=int, default=2, help="nodes of each joined cluster (default 2)")
    up.add_argument("--no-hub", action="store_true", help="without the hub cluster")
    up.add_argument("--coredns", action="store_true", help="with CoreDNS in every cluster")
    command("down", _down, "take the lab down and remove every trace")
    command("status", _status, "say what runs; exit code 1 unless everything is Ready")
    run = command("run", _run, "run scenarios in a lab (the one that is up, or one of their own)")
    run.add_argument("scenario", nargs="+", help="AREA/NAME, AREA or all")
    run.add_argument("--keep", action="store_true", help="leave a lab that was brought up for the scenario")
    run.add_argument("--pytest", nargs=argparse.REMAINDER, default=[], help="the rest goes to pytest")
    command("list", _list, "list the scenarios and what each shows")
    shell = command("shell", _shell, "a shell or a command on a node")
    shell.add_argument("--timeout", type=float, default=600)
    shell.add_argument("node")
    shell.add_argument("command", nargs=argparse.REMAINDER)
    for program in ("kubectl", "helm"):
        part = command(program, _kubectl, f"{program} as administrator of a cluster")
        part.set_defaults(program=program)
        part.add_argument("cluster")
        part.add_argument("arguments", nargs=argparse.REMAINDER)
    alone = command("guest", _guest, "run a command in a fresh kernel with ESP (no Kubernetes)")
    alone.add_argument("--timeout", type=float, default=600)
    alone.add_argument("--memory", default="1G")
    alone.add_argument("--qemu", action="store_true", help="Debian's kernel in QEMU, with nftables, instead of User Mode Linux")
    alone.add_argument("--cpus", type=int, default=1, help="processors of a guest in QEMU (default 1)")
    alone.add_argument("command", nargs=argparse.REMAINDER)
    return parser


def main(argv: list[str]) -> int:
    options = _parser().parse_args(argv)
    try:
        return options.call(options)
    except LabError as error:
        print(f"hack/lab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
