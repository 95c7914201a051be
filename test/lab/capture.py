"""What crosses a bridge: captures with tcpdump and counts packets by what an observer would see."""

from __future__ import annotations

import struct
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path

from .command import wait_for
from .errors import LabError
from .netns import Namespace
from .processes import Processes

ESP, UDP, TCP, ICMP, ICMP6 = 50, 17, 6, 1, 58
NATT_PORTS = (4500, 4490)  # RFC 3948, and the lab's usual alternative
_ETHERNET = 1
_NAMES = {ESP: "esp", UDP: "udp", TCP: "tcp", ICMP: "icmp", ICMP6: "icmp6"}


@dataclass
class Summary:
    """Packets by kind. `clear` are packets with a pod or service address outside ESP: what must not be there."""

    kinds: Counter[str] = field(default_factory=Counter)
    clear: list[str] = field(default_factory=list)
    spis: Counter[int] = field(default_factory=Counter)

    @property
    def esp(self) -> int:
        """ESP packets, bare and in UDP."""
        return self.kinds["esp"] + self.kinds["esp-in-udp"]


@dataclass(frozen=True)
class Packet:
    source: IPv4Address | IPv6Address
    target: IPv4Address | IPv6Address
    protocol: int
    payload: bytes


def packets(pcap: bytes) -> Iterator[Packet]:
    """IP packets of a pcap file with Ethernet frames; anything else (ARP) is skipped."""
    if len(pcap) < 24:
        return
    order = "<" if struct.unpack("<I", pcap[:4])[0] in (0xA1B2C3D4, 0xA1B23C4D) else ">"
    if struct.unpack(order + "I", pcap[20:24])[0] & 0xFFFF != _ETHERNET:
        raise LabError("the capture does not hold Ethernet frames")
    at = 24
    while at + 16 <= len(pcap):
        size = struct.unpack(order + "I", pcap[at + 8:at + 12])[0]
        frame = pcap[at + 16:at + 16 + size]
        at += 16 + size
        if packet := decode(frame):
            yield packet


def decode(frame: bytes) -> Packet | None:
    kind, body = struct.unpack(">H", frame[12:14])[0] if len(frame) >= 14 else 0, frame[14:]
    if kind == 0x0800 and len(body) >= 20:
        return Packet(IPv4Address(body[12:16]), IPv4Address(body[16:20]), body[9], body[(body[0] & 15) * 4:])
    if kind == 0x86DD and len(body) >= 40:
        protocol, rest = body[6], body[40:]
        while protocol in (0, 43, 60) and len(rest) >= 8:  # extension headers before the payload (RFC 8200)
            protocol, rest = rest[0], rest[(rest[1] + 1) * 8:]
        return Packet(IPv6Address(body[8:24]), IPv6Address(body[24:40]), protocol, rest)
    return None


def kind_of(packet: Packet, natt_ports: Iterable[int] = NATT_PORTS) -> tuple[str, int]:
    """Name of the packet's kind, and the SPI of ESP (else 0)."""
    payload = packet.payload
    if packet.protocol == ESP and len(payload) >= 8:
        return "esp", struct.unpack(">I", payload[:4])[0]
    if packet.protocol == UDP and len(payload) >= 12:
        source, target = struct.unpack(">HH", payload[:4])
        if source in natt_ports or target in natt_ports:
            spi = struct.unpack(">I", payload[8:12])[0]
            return ("esp-in-udp", spi) if spi else ("udp-non-esp-marker", 0)
    return _NAMES.get(packet.protocol, f"protocol {packet.protocol}"), 0


def summarise(pcap: Path, secret: Iterable[str], natt_ports: Iterable[int] = NATT_PORTS) -> Summary:
    """Counts a capture. `secret` are prefixes (of pods and services) whose addresses must not be seen in clear,
    neither in the outer header nor, for VXLAN, IP in IP and other wrappings, as raw bytes in the payload."""
    networks = [ip_network(s) for s in secret]
    summary = Summary()
    for packet in packets(pcap.read_bytes()):
        kind, spi = kind_of(packet, natt_ports)
        summary.kinds[kind] += 1
        if spi:
            summary.spis[spi] += 1
        elif any(a in n for a in (packet.source, packet.target) for n in networks if n.version == a.version):
            summary.clear.append(f"{kind} {packet.source} > {packet.target}")
        elif kind.startswith(("udp", "protocol")) and (inner := wrapped(packet.payload, networks)):
            summary.clear.append(f"{kind} {packet.source} > {packet.target} around {inner}")
    return summary


def wrapped(payload: bytes, networks: list) -> str:
    """The first plausible IPv4 or IPv6 header within 64 bytes of the payload whose addresses are both secret."""
    for at in range(min(64, len(payload))):
        version = payload[at] >> 4
        if version == 4 and payload[at] == 0x45 and len(payload) >= at + 20:
            pair = (ip_address(payload[at + 12:at + 16]), ip_address(payload[at + 16:at + 20]))
        elif version == 6 and len(payload) >= at + 40:
            pair = (ip_address(payload[at + 8:at + 24]), ip_address(payload[at + 24:at + 40]))
        else:
            continue
        if all(any(a in n for n in networks if n.version == a.version) for a in pair):
            return f"{pair[0]} > {pair[1]}"
    return ""


class Capture:
    """tcpdump on one device of the lab's namespace, from start() to stop()."""

    def __init__(self, namespace: Namespace, processes: Processes, device: str, file: Path, filter: str = "") -> None:
        self.namespace, self.device, self.file = namespace, device, file
        self._processes, self._filter = processes, filter
        self._name = f"capture.{device}.{file.stem}"

    def start(self) -> Capture:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.unlink(missing_ok=True)
        log = self.file.with_suffix(".log")
        log.unlink(missing_ok=True)
        argv = ["tcpdump", "-i", self.device, "-U", "-n", "-s", "256", "-B", "8192", "--immediate-mode", "-Z", "root", "-w", str(self.file), *self._filter.split()]
        self._processes.start(self._name, self.namespace.argv(argv), log)
        wait_for(f"tcpdump on {self.device}: {log}", lambda: "listening on" in log.read_text(), timeout=10, every=0.02)
        return self

    def stop(self) -> Path:
        time.sleep(0.1)  # what was sent just now is still on its way through the packet socket
        self._processes.stop(self._name)
        return self.file

    def __enter__(self) -> Capture:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
