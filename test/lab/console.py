"""Client of the exec agent in a guest (inside/agent.py): commands with stdin, both outputs and exit code."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shlex
import signal
import socket
import struct
import sys
import termios
import threading
import time
import tty

from .command import Argv, Result, words
from .errors import LabError
from .netns import Namespace

AGENT_PORT = 1000


class Running:
    """A command under way in a guest. Closing it kills its process group."""

    def __init__(self, connection: socket.socket, shown: str) -> None:
        self._connection = connection
        self._out: list[bytes] = []
        self._err: list[bytes] = []
        self._rc: int | None = None
        self.command = shown
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            for kind, payload in frames(self._connection):
                if kind == b"o":
                    self._out.append(payload)
                elif kind == b"e":
                    self._err.append(payload)
                else:
                    self._rc = json.loads(payload)["rc"]
        except (OSError, EOFError):
            pass

    @property
    def stdout(self) -> str:
        """What has arrived so far."""
        return b"".join(self._out).decode(errors="replace")

    @property
    def done(self) -> bool:
        return not self._reader.is_alive()

    def wait(self, timeout: float = 60) -> Result:
        """The result; after `timeout` seconds the command is killed and LabError raised."""
        self._reader.join(timeout)
        if self._reader.is_alive():
            self.stop()
            raise LabError(f"no end after {timeout:.0f} s: {self.command}\n{self.stdout[-1000:]}")
        if self._rc is None:
            raise LabError(f"the guest went away during: {self.command}")
        return Result(self._rc, self.stdout, b"".join(self._err).decode(errors="replace"), self.command)

    def write(self, text: str) -> None:
        """To the stdin of a conversation."""
        send_frame(self._connection, b"i", text.encode())

    def end_input(self) -> None:
        """Ends the stdin of a conversation, for commands that stop at its end."""
        send_frame(self._connection, b"i", b"")

    def stop(self) -> str:
        """Kills the command and returns what it wrote to stdout."""
        try:
            self._connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._reader.join(5)
        self._connection.close()
        return self.stdout

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Console:
    """The way into one guest. It does not depend on the guest's cluster network."""

    def __init__(self, namespace: Namespace, address: str, name: str) -> None:
        self.namespace = namespace
        self.address = address
        self.name = name

    def _connect(self, request: dict, timeout: float) -> socket.socket:
        try:
            with self.namespace.entered():
                connection = socket.create_connection((self.address, AGENT_PORT), timeout=timeout)
        except OSError as error:
            raise LabError(f"guest {self.name} does not answer: {error}", f"hack/lab status; is {self.name} booted?") from error
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(json.dumps(request).encode() + b"\n")
        return connection

    def start(self, argv: Argv, stdin: str | None = None, env: dict[str, str] | None = None, cwd: str = "/", conversation: bool = False) -> Running:
        """Starts a command; a string is a bash script. stdin: text, or None for an empty one; a conversation stays open after it."""
        shown = f"on {self.name}: {argv if isinstance(argv, str) else shlex.join(argv)}"
        connection = self._connect({"argv": words(argv), "env": env or {}, "cwd": cwd}, timeout=5)
        running = Running(connection, shown)
        try:
            if stdin:
                send_frame(connection, b"i", stdin.encode())
            if not conversation:
                send_frame(connection, b"i", b"")
        except OSError:
            pass  # it ended before it read its input
        return running

    def run(self, argv: Argv, *, stdin: str | None = None, timeout: float = 60, check: bool = True, env: dict[str, str] | None = None) -> Result:
        """Runs a command to its end. Costs one fork in the guest, about 30 ms."""
        running = self.start(argv, stdin, env)
        try:
            result = running.wait(timeout)
        finally:
            running.stop()
        return result.check() if check else result

    def answers(self) -> bool:
        try:
            self._connect({"argv": ["true"]}, timeout=1).close()
            return True
        except LabError:
            return False

    def interactive(self, argv: list[str]) -> int:
        """Joins this program's terminal to a command; returns its exit code."""
        connection = self._connect({"argv": argv, "tty": True, "env": {"TERM": os.environ.get("TERM", "dumb")}}, timeout=5)

        def resize(*_: object) -> None:
            send_frame(connection, b"w", fcntl.ioctl(0, termios.TIOCGWINSZ, b"\0" * 8))

        before = termios.tcgetattr(0)
        signal.signal(signal.SIGWINCH, resize)
        resize()
        tty.setraw(0)
        rc = 1
        try:
            incoming = frames(connection)
            while True:
                readable, _, _ = select.select([0, connection], [], [])
                if 0 in readable:
                    send_frame(connection, b"i", os.read(0, 4096))
                if connection in readable:
                    kind, payload = next(incoming)
                    if kind == b"x":
                        rc = json.loads(payload)["rc"]
                        break
                    os.write(1, payload)
        except (EOFError, StopIteration, OSError) as error:
            print(f"\r\nlost {self.name}: {error}", file=sys.stderr)
        finally:
            termios.tcsetattr(0, termios.TCSADRAIN, before)
        return rc


def send_frame(connection: socket.socket, kind: bytes, payload: bytes) -> None:
    connection.sendall(kind + struct.pack(">I", len(payload)) + payload)


def frames(connection: socket.socket):
    """Yields (kind, payload) until the agent closes the connection. Reads no byte beyond the current frame."""
    while True:
        head = _exactly(connection, 5)
        if head is None:
            return
        payload = _exactly(connection, struct.unpack(">I", head[1:])[0])
        if payload is None:
            raise EOFError("connection closed within a frame")
        yield head[:1], payload


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    parts, left = [], size
    while left:
        chunk = connection.recv(left)
        if not chunk:
            return None
        parts.append(chunk)
        left -= len(chunk)
    return b"".join(parts)


def wait_until_answers(console: Console, timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while not console.answers():
        if time.monotonic() > deadline:
            raise LabError(f"guest {console.name} does not answer after {timeout:.0f} s", "its console is in nodes/NAME/console.log of the lab's folder")
        time.sleep(0.1)
