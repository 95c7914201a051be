"""A light guest with Debian's distribution kernel in QEMU: what User Mode Linux lacks (nftables, WireGuard, 47-bit address space)."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from . import paths
from .command import run
from .errors import LabError

EMULATOR = "/usr/bin/qemu-system-x86_64"
# What it takes to reach the host's files.
_BOOT_MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
_PROBE_SECONDS = 5


def kernel() -> Path:
    """The folder of Debian's kernel (vmlinux, lib/modules/RELEASE); downloads it if it is not in the cache."""
    found = run([str(paths.CHECKOUT / "hack/setup"), "--kernel"], timeout=600, check=False)
    if not found.ok:
        raise LabError(f"no kernel for QEMU: {found.stderr.strip()}", "hack/setup")
    return Path(found.stdout.strip().splitlines()[-1])


def require() -> None:
    if not shutil.which(EMULATOR):
        raise LabError("qemu-system-x86_64 is not installed", "hack/setup")


@cache
def accelerated() -> bool:
    """Whether KVM really runs guests. /dev/kvm may be there and refuse (nested machines), so a virtual machine is made once."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    # An empty machine that is paused at once: it says "ready" on the monitor, or the error of KVM.
    probe = [EMULATOR, "-accel", "kvm", "-cpu", "host", "-nodefaults", "-display", "none", "-S", "-monitor", "stdio"]
    try:
        return subprocess.run(probe, input=b"quit\n", capture_output=True, timeout=_PROBE_SECONDS).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def command_line(folder: Path, memory: str, cpus: int, arguments: Mapping[str, str]) -> list[str]:
    """The emulator's command line for a guest whose state is in `folder`, with an initramfs written there."""
    base = kernel()
    release = next((base / "lib/modules").iterdir()).name
    (folder / "initramfs").write_bytes(_initramfs(base / "lib/modules" / release))
    processor = ["-accel", "kvm", "-cpu", "host"] if accelerated() else ["-accel", "tcg,thread=multi", "-cpu", "max,la57=off"]
    append = ["console=ttyS0", "quiet", "loglevel=3", "panic=-1", "mitigations=off",
              *(f"lab.{key}={value}" for key, value in {**arguments, "modules": str(base / "lib/modules" / release)}.items()), "lab.end=1"]
    return [EMULATOR, *processor, "-smp", str(cpus), "-m", memory, "-nodefaults",
            "-display", "none", "-no-reboot", "-serial", "stdio", "-kernel", str(base / "vmlinux"), "-initrd", str(folder / "initramfs"), "-append", " ".join(append),
            "-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap",
            "-virtfs", f"local,path={folder},mount_tag=lab,security_model=none"]


def _initramfs(modules: Path) -> bytes:
    """busybox, the modules that reach the host's files, and inside/initramfs.sh."""
    archive = io.BytesIO()
    for name in ("bin", "dev", "proc", "host", "memory", "modules"):
        _add(archive, name, 0o040755, b"")
    _add(archive, "bin/busybox", 0o100755, Path("/usr/bin/busybox").read_bytes())
    _add(archive, "init", 0o100755, (paths.INSIDE / "initramfs.sh").read_bytes())
    files = _with_dependencies(modules)
    for file in files:
        _add(archive, f"modules/{file.name}", 0o100644, file.read_bytes())
    _add(archive, "modules/order", 0o100644, "".join(f"{file.name}\n" for file in files).encode())
    _add(archive, "TRAILER!!!", 0, b"")
    return archive.getvalue()


def _with_dependencies(modules: Path) -> list[Path]:
    """The boot modules and what they need, in an order in which they load. One that is built into the kernel is left out."""
    lines = (line.split(":") for line in (modules / "modules.dep").read_text().splitlines())
    needs = {Path(name).stem: (name, rest.split()) for name, rest in lines}
    wanted = [name for boot in _BOOT_MODULES if boot in needs for name in (*reversed(needs[boot][1]), needs[boot][0])]
    return [modules / name for name in dict.fromkeys(wanted)]


def _add(archive: io.BytesIO, name: str, mode: int, content: bytes) -> None:
    """A member in the format `newc` (Documentation/driver-api/early-userspace/buffer-format.rst)."""
    number = archive.tell() + 1  # any unique inode
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
    archive.write(b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0")
    archive.write(bytes(-archive.tell() % 4) + content)
    archive.write(bytes(-archive.tell() % 4))
