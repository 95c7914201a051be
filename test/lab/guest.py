"""A light guest: one kernel with ESP, no Kubernetes, no network, for one command. Boots in about 4 s.

The kernel is User Mode Linux, or Debian's own in QEMU for what that one lacks (nftables, WireGuard, the address sanitizer).
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from . import paths, qemu, uml
from .command import Argv, Result, words
from .errors import LabError
from .processes import end, with_argument


def run(argv: Argv, *, timeout: float = 300, cwd: str | None = None, env: Mapping[str, str] | None = None, memory: str = "1G",
        in_qemu: bool = False, cpus: int = 1, on_output: Callable[[str, str], None] | None = None) -> Result:
    """Runs a command as root of a fresh guest and returns its outputs and exit code.

    The guest sees the host's files (and may write: it writes to memory of its own). It starts in `cwd` (default: here).
    What the command leaves in /run/out/ is lost with the guest, apart from its output. `on_output` is called with
    ("stdout" or "stderr", text) while the command runs. LabError after `timeout` seconds or if the guest dies.

    The address space of a process in User Mode Linux is 512 GB: programs built with AddressSanitizer or ThreadSanitizer refuse to
    start there; UndefinedBehaviorSanitizer and valgrind work. With `in_qemu` all of them do, several times slower without KVM,
    and `cpus` may be more than one (which costs more than it gives when emulated).
    """
    shown = argv if isinstance(argv, str) else shlex.join(argv)
    with tempfile.TemporaryDirectory(prefix="fabric-guest-", dir="/dev/shm") as name:
        folder = Path(name)
        out = folder / "out"
        out.mkdir()
        # The guest's own /dev/shm hides the host's, so its script comes through a mount of its own.
        exports = "".join(f"export {k}={shlex.quote(v)}\n" for k, v in (env or {}).items())
        (folder / "command").write_text(f"cd {shlex.quote(cwd or os.getcwd())} || exit 126\n{exports}{shlex.join(words(argv))}\n")
        umid = folder.name
        arguments = {"main": str(paths.INSIDE / "run.sh")}
        if in_qemu:
            line = qemu.command_line(folder, memory, cpus, {**arguments, "boot": str(paths.INSIDE / "qemu.sh")})
        else:
            line = uml.command_line(umid, folder, memory, {**arguments, "state": str(folder), "out": str(out)})
        with open(folder / "console.log", "wb") as console:
            guest = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=console, stderr=console,
                                     env={**os.environ, **uml.environment()}, start_new_session=True)
        try:
            _follow(guest, out, time.monotonic() + timeout, on_output or (lambda *_: None))
        finally:
            guest.kill()
            guest.wait()
            end(with_argument(f"umid={umid}"), grace=0)
        outputs = [(out / n).read_text(errors="replace") if (out / n).exists() else "" for n in ("stdout", "stderr")]
        if not (out / "rc").exists():
            text = (folder / "console.log").read_text(errors="replace")[-1500:]
            raise LabError(f"no result within {timeout:.0f} s, or the guest died, running: {shown}\n{''.join(outputs)[-1500:]}\nconsole: {text}")
        return Result(int((out / "rc").read_text()), *outputs, shown)


def _follow(guest: subprocess.Popen, out: Path, deadline: float, on_output: Callable[[str, str], None]) -> None:
    """Until the guest ends or has left its result; passes on what it writes meanwhile."""
    read = {"stdout": 0, "stderr": 0}
    while True:
        # Looked at first: output written before the end is then read below.
        over = guest.poll() is not None or _has_text(out / "rc")
        for name, at in read.items():
            if (out / name).exists():
                with open(out / name, errors="replace") as file:
                    file.seek(at)
                    if text := file.read():
                        on_output(name, text)
                    read[name] = file.tell()
        if over or time.monotonic() > deadline:
            return
        time.sleep(0.05)


def _has_text(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def require(in_qemu: bool = False) -> None:
    """The kernel of the guests; root is not needed for it, but the guest reads files as the caller."""
    if in_qemu:
        qemu.require()
    elif not shutil.which("linux.uml"):
        raise LabError("linux.uml is not installed", "hack/setup")
