"""Programs a lab starts on the host: recorded on disk so that a later `down` can end them after a crash."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from .errors import LabError


def start_time(pid: int) -> str:
    """The kernel's start time of a process (clock ticks since boot); "" if it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


class Processes:
    """The register: one file per program holding "pid start-time", so a reused id is never killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self, name: str, argv: Sequence[str], log: Path, env: dict[str, str] | None = None, cwd: Path | None = None) -> int:
        """Starts a program in a session of its own; its output is appended to `log`. Returns its id."""
        self.folder.mkdir(parents=True, exist_ok=True)
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "ab") as output:
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
                                     env={**os.environ, **(env or {})}, cwd=cwd)
        (self.folder / name).write_text(f"{child.pid} {start_time(child.pid)}\n")
        child.returncode = 0  # it outlives this program on purpose; silences Popen's complaint
        return child.pid

    def pid(self, name: str) -> int | None:
        """The id of a running program, or None."""
        try:
            pid, started = (self.folder / name).read_text().split()
        except (OSError, ValueError):
            return None
        _reap(int(pid))
        return int(pid) if start_time(int(pid)) == started else None

    def running(self) -> dict[str, int]:
        names = sorted(p.name for p in self.folder.iterdir()) if self.folder.is_dir() else []
        return {name: pid for name in names if (pid := self.pid(name))}

    def stop(self, name: str, grace: float = 3.0) -> None:
        """Ends a program: SIGTERM, SIGKILL after `grace` seconds. Not running is fine."""
        if pid := self.pid(name):
            end([pid], grace)
        (self.folder / name).unlink(missing_ok=True)


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass


def end(pids: Iterable[int], grace: float) -> None:
    """Ends processes, and raises LabError if one survives SIGKILL for 5 seconds."""
    alive = {pid: started for pid in pids if (started := start_time(pid))}
    for number, limit in ((signal.SIGTERM, grace), (signal.SIGKILL, 5.0)):
        if number == signal.SIGTERM and grace <= 0:
            continue
        for pid in alive:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        deadline = time.monotonic() + limit
        while alive and time.monotonic() < deadline:
            for pid in alive:
                _reap(pid)
            alive = {pid: started for pid, started in alive.items() if start_time(pid) == started}
            if alive:
                time.sleep(0.02)
    if alive:
        raise LabError(f"processes {sorted(alive)} survive SIGKILL")


def with_argument(argument: str) -> list[int]:
    """Ids of processes one of whose arguments is exactly `argument` (guests carry umid=...)."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            arguments = Path(f"/proc/{entry}/cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        # Helper processes of a guest show its command line as one string with spaces.
        if argument in arguments or any(argument in a.split(" ") for a in arguments[:1]):
            found.append(int(entry))
    return found
