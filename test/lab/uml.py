"""Starting and ending User Mode Linux guests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from . import paths
from .processes import Processes, end, with_argument

KERNEL = "/usr/bin/linux.uml"


def command_line(umid: str, folder: Path, memory: str, arguments: Mapping[str, str], devices: Sequence[str] = ()) -> list[str]:
    """The guest's command line. `arguments` reach inside/boot.sh as lab.KEY=VALUE; no value may hold spaces."""
    for key, value in arguments.items():
        if not value or any(c.isspace() for c in value):
            raise ValueError(f"guest argument {key}={value!r} is empty or holds spaces")
    return [KERNEL, f"mem={memory}", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={paths.INSIDE / 'boot.sh'}",
            "con=null", "con0=fd:0,fd:1", "quiet", "loglevel=3", f"umid={umid}", f"uml_dir={folder / 'uml'}", *devices,
            *(f"lab.{key}={value}" for key, value in arguments.items()), "lab.end=1"]


def environment() -> dict[str, str]:
    """A guest's memory is a file below TMPDIR; on a disk it would be written back for ever."""
    return {"TMPDIR": "/dev/shm"}


def end_guest(umid: str, processes: Processes, name: str) -> None:
    """Ends a guest and its helper processes, which would hold its taps. Not running is fine."""
    processes.stop(name, grace=0)
    for _ in range(3):  # a helper may start another while we look
        if not (left := with_argument(f"umid={umid}")):
            return
        end(left, grace=0)
