"""One Kubernetes node: a guest, its place on the cluster's bridge, and the way into it."""

from __future__ import annotations

from pathlib import Path

from . import uml
from .command import Argv, Result
from .console import Console, Running, wait_until_answers
from .errors import LabError
from .netns import Namespace
from .nodefiles import guest_path
from .processes import Processes
from .spec import ClusterSpec, NodeSpec

CONSOLE_BRIDGE = "br-console"
TAP_QUEUE = 10000  # packets; memory is taken for those that wait


class Node:
    """Lifecycle: attach() once, then boot() and kill() as often as wanted."""

    def __init__(self, lab_name: str, cluster: ClusterSpec, spec: NodeSpec, namespace: Namespace, state: Path, processes: Processes, memory: str) -> None:
        self.name = spec.name
        self.cluster = cluster
        self.spec = spec
        self.namespace = namespace
        self.folder = state / "nodes" / spec.name
        self.umid = f"lab-{lab_name}-{spec.name}"
        self.tap = f"tap-{spec.name}"
        self.console = Console(namespace, spec.console_ip, spec.name)
        self._state = state
        self._processes = processes
        self._memory = memory

    @property
    def ip(self) -> str:
        return self.spec.ips[0]

    @property
    def ip6(self) -> str:
        return self.spec.ips[1]

    def log(self, program: str) -> str:
        """Text of a log: console, kubelet, kube-proxy, containerd, agent, import."""
        path = self.folder / "console.log" if program == "console" else self.folder / "log" / f"{program}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    # --- life ---

    def attach(self) -> None:
        """Makes the taps: one on the cluster's bridge, one for the console."""
        # The queue of a tap holds what a guest without a processor has not read yet; 500 packets would be lost after half a second.
        self.namespace.ip(*(line for tap, bridge in ((self.tap, self.cluster.bridge), (self._console_tap, CONSOLE_BRIDGE))
                            for line in (f"tuntap add {tap} mode tap", f"link set {tap} txqueuelen {TAP_QUEUE} master {bridge} up")))

    @property
    def _console_tap(self) -> str:
        return f"con-{self.name}"

    def boot(self, wait: bool = True) -> None:
        """Boots the guest (from nothing: a guest keeps no state). With `wait`, returns when the console answers."""
        if self.running:
            raise LabError(f"node {self.name} already runs", "node.kill() first")
        devices = [f"vec0:transport=tap,ifname={self.tap},depth=128,gro=1,mac={self.spec.mac}",
                   f"vec1:transport=tap,ifname={self._console_tap},depth=64,gro=1,mac={self.spec.mac.replace('02:', '06:', 1)}"]
        arguments = {"main": str(Path(__file__).parent / "inside/node.sh"), "node": self.name, "state": str(self._state), "out": str(self.folder / "log")}
        argv = uml.command_line(self.umid, self._state, self._memory, arguments, devices)
        self._processes.start(f"guest.{self.name}", self.namespace.argv(argv), self.folder / "console.log", uml.environment())
        if wait:
            self.wait_booted()

    def wait_booted(self, timeout: float = 60) -> None:
        wait_until_answers(self.console, timeout)

    @property
    def running(self) -> bool:
        return self._processes.pid(f"guest.{self.name}") is not None

    def kill(self) -> None:
        """The power fails: the guest and everything in it is gone at once."""
        uml.end_guest(self.umid, self._processes, f"guest.{self.name}")

    # --- network ---

    def isolate(self) -> None:
        """Cuts the node off its cluster and the world; the console keeps working."""
        # Setting the tap down and up would kill the guest's vector device for good.
        self.namespace.ip(f"link set {self.tap} nomaster")

    def rejoin(self) -> None:
        self.namespace.ip(f"link set {self.tap} master {self.cluster.bridge}")

    def impair(self, netem: str) -> None:
        """Delay, loss and so on of what the node sends: tc-netem arguments such as "delay 20ms loss 1%"; "" ends it."""
        self.run(f"tc qdisc replace dev vec0 root netem {netem}" if netem else "tc qdisc del dev vec0 root")

    # --- commands ---

    def run(self, argv: Argv, *, stdin: str | None = None, timeout: float = 60, check: bool = True) -> Result:
        """Runs a command on the node to its end (a string is a bash script)."""
        return self.console.run(argv, stdin=stdin, timeout=timeout, check=check)

    def start(self, argv: Argv, conversation: bool = False) -> Running:
        """Starts a command that goes on; end it with .stop(). In a conversation it is written to (Running.write) and ends with its stdin."""
        return self.console.start(argv, conversation=conversation)

    def load_image(self, archive: Path) -> None:
        """Imports an OCI archive of the host into the node's containerd."""
        self.run(["ctr", "--namespace", "k8s.io", "images", "import", "--local", guest_path(archive.resolve())], timeout=180)

    def write_file(self, path: str, text: str) -> None:
        self.run(["bash", "-c", 'mkdir -p "${1%/*}" && cat > "$1"', "write", path], stdin=text)

    def kernel_state(self) -> dict[str, str]:
        """What programs of ours may have left in the kernel, by command."""
        commands = {"xfrm state": "ip xfrm state", "xfrm policy": "ip xfrm policy", "rules": "ip rule; ip -6 rule",
                    "routes": "ip route show table all; ip -6 route show table all", "links": "ip -d -o link", "addresses": "ip -o addr",
                    "ipset": "ipset save", "iptables": "iptables-save; ip6tables-save",
                    "sysctl": "grep -H . /proc/sys/net/ipv4/conf/*/rp_filter /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding"}
        mark = "\x1e"
        script = "\n".join(f"echo '{mark}{name}'; {{ {command}; }} 2>&1" for name, command in commands.items())
        sections = self.run(script).stdout.split(mark)[1:]
        return {name: text for name, text in (section.split("\n", 1) for section in sections)}
