"""One end of a flood: sends numbered datagrams at fixed rates and accounts for every one that arrives.

Run in the network namespace of a pod: flood_in_pod.py '{"port": 9000, "size": 200, "flows": [{"id": 1, "to": "10.2.0.5", "rate": 1000}]}'.
stdin: "go" begins the sending, "stop" ends it, the end of stdin ends the program. stdout: a JSON line twice a second and at the end,
{"sent": {flow: packets}, "refused": sends that the kernel refused, "overflow": packets that this program was too slow to take,
"silence": longest time without an arrival in s, "received": {flow: {"next", "unique", "twice", "late", "missing",
"outage": of the longest hole in s, "holes": [[first, packets, seconds]]}}}.
"""

import json
import os
import select
import socket
import struct
import sys
import time

HEADER = struct.Struct(">IHQQ")  # magic, flow, number, sender's clock in ns
MAGIC = 0xFAB21C00
TICK = 0.005  # seconds; a wake-up costs more than a packet
BURST = 100  # packets of one flow in one tick after a pause of the whole guest
HOLES_KEPT, HOLES_SHOWN = 1000, 5
FORCE_SEND_BUFFER, FORCE_RECEIVE_BUFFER = 32, 33  # SO_SNDBUFFORCE, SO_RCVBUFFORCE: the module socket does not name them
# A guest may be without a processor for seconds, and a small packet takes several KiB of the buffer.
BUFFER = 256 << 20
MEMORY_INFORMATION, DROPS = 55, 8  # SO_MEMINFO, and the place of the drops in it


class Outgoing:
    def __init__(self, flow: dict) -> None:
        self.id, self.rate, self.sent = flow["id"], flow["rate"], 0
        self.to = flow["to"] if ":" in flow["to"] else f"::ffff:{flow['to']}"


class Incoming:
    """Numbers seen of one flow. A hole is closed again by packets that come late."""

    def __init__(self) -> None:
        self.next = self.unique = self.twice = self.late = self.clock = 0
        self.missing: set[int] = set()
        self.holes: list[list] = []

    def take(self, number: int, clock: int) -> None:
        if number >= self.next:
            if number > self.next:
                self.missing.update(range(self.next, number))
                if len(self.holes) < HOLES_KEPT:
                    self.holes.append([self.next, number - self.next, (clock - self.clock) / 1e9 if self.clock else 0.0])
            self.next, self.clock = number + 1, clock
        elif number in self.missing:
            self.missing.remove(number)
            self.late += 1
        else:
            self.twice += 1
            return
        self.unique += 1

    def figures(self) -> dict:
        still = [h for h in self.holes if any(n in self.missing for n in range(h[0], h[0] + h[1]))]
        return {"next": self.next, "unique": self.unique, "twice": self.twice, "late": self.late, "missing": len(self.missing),
                "outage": max((h[2] for h in still), default=0.0), "holes": still[:HOLES_SHOWN]}


def overflow(box: socket.socket) -> int:
    return struct.unpack_from("=I", box.getsockopt(socket.SOL_SOCKET, MEMORY_INFORMATION, 64), 4 * DROPS)[0]


def main() -> None:
    ask = json.loads(sys.argv[1])
    port, padding = ask["port"], bytes(max(0, ask["size"] - HEADER.size))
    outgoing = [Outgoing(f) for f in ask["flows"]]
    incoming: dict[int, Incoming] = {}
    box = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    box.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    box.setsockopt(socket.SOL_SOCKET, FORCE_RECEIVE_BUFFER, BUFFER)
    box.setsockopt(socket.SOL_SOCKET, FORCE_SEND_BUFFER, BUFFER)
    box.bind(("::", port))
    box.setblocking(False)
    refused, silence, last = 0, 0.0, None

    def report() -> None:
        print(json.dumps({"sent": {o.id: o.sent for o in outgoing}, "refused": refused, "overflow": overflow(box), "silence": silence,
                          "received": {flow: i.figures() for flow, i in incoming.items()}}), flush=True)

    sending, since = False, time.monotonic()
    next_report = next_tick = since
    watched = [box, 0]
    while True:
        now = time.monotonic()
        if sending and now >= next_tick:
            next_tick = max(next_tick + TICK, now - TICK)
            for o in outgoing:
                for _ in range(min(BURST, int((now - since) * o.rate) - o.sent)):
                    try:
                        box.sendto(HEADER.pack(MAGIC, o.id, o.sent, time.monotonic_ns()) + padding, (o.to, port))
                    except OSError:
                        refused += 1
                    o.sent += 1
        if now >= next_report:
            next_report = now + 0.5
            report()
        ready, _, _ = select.select(watched, [], [], max(0.0, (next_tick if sending else next_report) - time.monotonic()))
        if 0 in ready:
            if not (text := os.read(0, 4096)):
                break
            sending = b"go" in text
            if sending:
                next_tick = since = time.monotonic()
        if box in ready:
            try:
                for _ in range(64):
                    packet = box.recv(2048)
                    magic, flow, number, clock = HEADER.unpack_from(packet)
                    if magic == MAGIC:
                        incoming.setdefault(flow, Incoming()).take(number, clock)
            except BlockingIOError:
                pass
            arrived = time.monotonic()
            if last is not None and sending:
                silence = max(silence, arrived - last)
            last = arrived
    report()


if __name__ == "__main__":
    main()
