"""One network namespace of the host: links, rules and programs of a lab live in it."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .command import Argv, Result, run, words
from .errors import LabError

CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


class Namespace:
    """A named namespace below /run/netns. Not created by the constructor."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.path = Path("/run/netns") / name

    def exists(self) -> bool:
        return self.path.exists()

    def create(self) -> None:
        run(["ip", "netns", "add", self.name])
        # Forwarding makes the namespace the wide area network between the clusters.
        self.run("ip link set lo up; sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 "
                 "net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.all.accept_dad=0")

    def delete(self) -> None:
        run(["ip", "netns", "delete", self.name], check=False)

    def argv(self, argv: Argv) -> list[str]:
        """The command line that runs `argv` here. (`ip netns exec` would also make a mount namespace.)"""
        return ["nsenter", f"--net={self.path}", "--", *words(argv)]

    def run(self, argv: Argv, **options) -> Result:
        return run(self.argv(argv), **options)

    def ip(self, *lines: str, check: bool = True) -> Result:
        """Runs iproute2 commands (without the leading "ip") as one batch."""
        return run(["ip", "-n", self.name, "-force", "-batch", "-"] if not check else ["ip", "-n", self.name, "-batch", "-"],
                   stdin="\n".join(lines) + "\n", check=check)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """The calling thread works in the namespace; sockets it opens stay there."""
        with open(f"/proc/self/task/{threading.get_native_id()}/ns/net") as before, open(self.path) as here:
            self._setns(here.fileno())
            try:
                yield
            finally:
                self._setns(before.fileno())

    @staticmethod
    def _setns(fd: int) -> None:
        if _libc.setns(fd, CLONE_NEWNET) != 0:
            raise LabError(f"setns: {os.strerror(ctypes.get_errno())}", "run as root")

    def processes(self) -> list[int]:
        """Ids of every process that is in this namespace."""
        if not self.exists():
            return []
        try:
            inode = os.stat(self.path).st_ino
        except OSError:
            return []
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    if os.stat(f"/proc/{entry}/ns/net").st_ino == inode:
                        found.append(int(entry))
                except OSError:
                    continue  # gone, or a kernel thread
        return found


def batch_for_bridge(name: str, addresses: Sequence[str]) -> list[str]:
    lines = [f"link add {name} type bridge", f"link set {name} up"]
    return lines + [f"addr add {a} dev {name}{' nodad' if ':' in a else ''}" for a in addresses]
