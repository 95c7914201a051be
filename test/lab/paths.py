"""Where things are on the machine: the checkout, the tools, the caches, the state of a lab."""

from __future__ import annotations

import os
from pathlib import Path

from .command import run
from .errors import LabError

CHECKOUT = Path(__file__).resolve().parents[2]
INSIDE = Path(__file__).resolve().parent / "inside"
# On memory: etcd, the guests' memory and their logs should not wait for a disk.
_DEFAULT_STATE = "/dev/shm/fabric-lab"


def state_root() -> Path:
    return Path(os.environ.get("FABRIC_LAB_DIR") or _DEFAULT_STATE)


def cache_root() -> Path:
    if given := os.environ.get("FABRIC_CACHE"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fabric"


def tools(build: bool = True) -> Path:
    """The folder of Kubernetes, etcd, containerd, helm and CoreDNS; builds them if need be."""
    result = run([str(CHECKOUT / "hack/tools"), *([] if build else ["--print"])], timeout=3600, check=False)
    if not result.ok:
        raise LabError(f"the tools of the lab are not there: {result.stderr.strip()}", "hack/tools")
    return Path(result.stdout.strip().splitlines()[-1])


def require_machine() -> None:
    """Root and the programs of hack/setup."""
    if os.geteuid() != 0:
        raise LabError("the lab makes network namespaces and needs root", "sudo hack/lab ...")
    absent = [p for p in ("/usr/bin/linux.uml", "/usr/sbin/runc", "/usr/lib/cni/bridge", "/usr/sbin/ipset", "/usr/bin/busybox",
                          "/usr/bin/tcpdump", "/usr/bin/openssl", "/usr/bin/nsenter")
              if not Path(p).exists()]
    if absent:
        raise LabError(f"not installed: {', '.join(absent)}", "hack/setup")
