"""Images the lab itself needs: the sandbox, the tools of test pods, CoreDNS. Cached by content."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from pathlib import Path

from . import oci, paths
from .command import run

PAUSE = "lab.local/pause:1"
TOOLS = "lab.local/tools:1"
COREDNS = "lab.local/coredns:1"

# Real programs where busybox's would say less; everything else in the image is busybox. Every megabyte costs each
# node a fifth of a second of import: a script (inside/fetch) does for curl, whose libraries would be a third of the image.
# The shell is bash: busybox's would run its own ping rather than the one on PATH.
PROGRAMS = ["/bin/bash", "/usr/bin/getent", "/bin/ping", "/bin/ip", "/sbin/tc", "/sbin/bridge", "/usr/sbin/ipset", "/usr/sbin/xtables-legacy-multi", "/usr/sbin/xtables-nft-multi",
            "/usr/sbin/nft", "/usr/sbin/conntrack", "/usr/bin/tcpdump", "/usr/bin/iperf3", "/bin/ss"]
LINKS = {"/usr/sbin/xtables-legacy-multi": ["iptables", "ip6tables", "iptables-save", "ip6tables-save", "iptables-restore", "ip6tables-restore",
                                            "iptables-legacy", "ip6tables-legacy", "iptables-legacy-save", "ip6tables-legacy-save"],
         "/usr/sbin/xtables-nft-multi": ["iptables-nft", "ip6tables-nft", "iptables-nft-save", "ip6tables-nft-save"]}
# glibc loads these by name: a closure of ldd does not show them, and without them busybox crashes on look-ups.
LOADED_BY_NAME = ["libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2", "libc.so.6"]
LIBRARIES = Path("/lib/x86_64-linux-gnu")


def _copy(source: Path, root: Path) -> None:
    target = root / str(source).lstrip("/").replace("lib/", "usr/lib/", 1) if str(source).startswith("/lib") else root / str(source).lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        shutil.copy2(source, target)


def _closure(programs: list[Path]) -> set[Path]:
    """The shared libraries of the programs, at the paths the loader will look for."""
    output = run(["ldd", *map(str, programs)], check=False).stdout
    return {Path(p) for p in re.findall(r"(/lib\S+) \(0x", output)}


def _base(root: Path) -> None:
    for folder in ("usr/bin", "usr/lib", "usr/lib64", "usr/sbin", "etc", "tmp", "www", "proc", "sys", "dev", "run", "var", "root"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    (root / "var/run").symlink_to("/run")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
    (root / "etc/nsswitch.conf").write_text("hosts: files dns\n")
    (root / "etc/protocols").write_text("ip 0 IP\nicmp 1 ICMP\ntcp 6 TCP\nudp 17 UDP\nesp 50 IPSEC-ESP\nipv6-icmp 58 IPv6-ICMP\n")
    (root / "tmp").chmod(0o1777)


def _fill_pause(root: Path) -> None:
    _base(root)
    shutil.copy2("/usr/bin/busybox", root / "usr/bin/busybox")


def _fill_tools(root: Path) -> None:
    _base(root)
    shutil.copy2("/usr/bin/busybox", root / "usr/bin/busybox")
    programs = [Path(p) for p in PROGRAMS if Path(p).exists()]
    for program in programs:
        shutil.copy2(program, root / "usr/bin" / program.name)
        for link in LINKS.get(str(program), []):
            (root / "usr/bin" / link).symlink_to(program.name)
    (root / "usr/bin/sh").symlink_to("bash")
    shutil.copy2(paths.INSIDE / "fetch", root / "usr/bin/fetch")
    extensions = Path("/usr/lib/x86_64-linux-gnu/xtables")
    shutil.copytree(extensions, root / str(extensions).lstrip("/"), symlinks=True)
    for library in _closure(programs) | {LIBRARIES / n for n in LOADED_BY_NAME}:
        _copy(library, root)
    for applet in run(["busybox", "--list"]).stdout.split():
        if not (root / "usr/bin" / applet).exists():
            (root / "usr/bin" / applet).symlink_to("busybox")


def _fill_coredns(root: Path) -> None:
    _base(root)
    shutil.copy2(paths.tools() / "coredns", root / "usr/bin/coredns")


_FILL = {PAUSE: (_fill_pause, ["/bin/busybox", "sleep", "2147483647"]), TOOLS: (_fill_tools, ["/bin/sleep", "2147483647"]),
         COREDNS: (_fill_coredns, ["/bin/coredns", "-conf", "/etc/coredns/Corefile"])}


def _key(name: str) -> str:
    """Changes with this file, the archive writer, and the versions of the packages the programs come from."""
    packages = run("dpkg-query -W bash busybox-static iproute2 ipset iptables nftables iputils-ping tcpdump iperf3 libc6 2>/dev/null", check=False).stdout
    words = [name, packages, Path(__file__).read_text(), Path(oci.__file__).read_text(), (paths.INSIDE / "fetch").read_text()]
    if name == COREDNS:
        words.append(str(paths.tools()))
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:12]


def archive(name: str) -> Path:
    """The archive of one of the lab's images, built on first use."""
    fill, command = _FILL[name]
    short = name.split("/")[1].split(":")[0]
    path = paths.cache_root() / "images" / f"{short}-{_key(name)}.tar"
    if not path.exists():
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "root"
            root.mkdir()
            fill(root)
            oci.write_archive(root, path, name, command, ["PATH=/usr/bin:/usr/sbin:/bin:/sbin"])
    return path
