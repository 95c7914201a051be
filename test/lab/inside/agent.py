"""Exec agent of a guest: runs commands sent over TCP, streams their output, returns their exit code.

Start: agent.py ADDRESS:PORT. It listens in the namespace `console` and runs commands in the namespace it was
started in. A connection carries one JSON line {"argv", "env", "cwd", "tty"}, then frames (1 byte kind,
4 bytes length, payload). Kinds from the client: i stdin (empty: end), w window size; from the agent: o stdout,
e stderr, x JSON {"rc"}. Closing the connection kills the command's process group.
"""

import ctypes
import fcntl
import json
import os
import pty
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading

CLONE_NEWNET = 0x40000000


def send(conn: socket.socket, lock: threading.Lock, kind: bytes, payload: bytes) -> None:
    with lock:
        conn.sendall(kind + struct.pack(">I", len(payload)) + payload)


def pump(fd: int, kind: bytes, conn: socket.socket, lock: threading.Lock) -> None:
    """Copies a descriptor to the client until its end; a closed pty says EIO instead."""
    try:
        while chunk := os.read(fd, 65536):
            send(conn, lock, kind, chunk)
    except OSError:
        pass


def read_frames(conn: socket.socket, rest, child: subprocess.Popen, stdin: int, terminal: bool) -> None:
    try:
        while len(head := rest.read(5)) == 5:
            kind, size = head[:1], struct.unpack(">I", head[1:])[0]
            payload = rest.read(size)
            if kind == b"i" and payload:
                os.write(stdin, payload)
            elif kind == b"i" and not terminal:
                os.close(stdin)
            elif kind == b"w" and terminal:
                fcntl.ioctl(stdin, termios.TIOCSWINSZ, payload)
    except OSError:
        pass
    # End of the connection: the client is gone, so is the reason for the command.
    if child.poll() is None:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def serve(conn: socket.socket) -> None:
    lock, rest = threading.Lock(), conn.makefile("rb")
    try:
        ask = json.loads(rest.readline())
        env = {**os.environ, **ask.get("env", {})}
        common = dict(cwd=ask.get("cwd") or "/", env=env, start_new_session=True)
        if ask.get("tty"):
            master, slave = pty.openpty()
            child = subprocess.Popen(["setsid", "--ctty", *ask["argv"]], stdin=slave, stdout=slave, stderr=slave, **common)
            os.close(slave)
            outputs, stdin = [(master, b"o")], master
        else:
            child = subprocess.Popen(ask["argv"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **common)
            outputs = [(child.stdout.fileno(), b"o"), (child.stderr.fileno(), b"e")]
            stdin = os.dup(child.stdin.fileno())
            child.stdin.close()
    except (OSError, ValueError, KeyError) as error:
        send(conn, lock, b"e", f"{error}\n".encode())
        send(conn, lock, b"x", b'{"rc": 127}')
        conn.close()
        return
    pumps = [threading.Thread(target=pump, args=(fd, kind, conn, lock), daemon=True) for fd, kind in outputs]
    threading.Thread(target=read_frames, args=(conn, rest, child, stdin, bool(ask.get("tty"))), daemon=True).start()
    for thread in pumps:
        thread.start()
    rc = child.wait()
    for thread in pumps:
        thread.join(timeout=1)  # a background grandchild may hold the pipe for ever
    try:
        send(conn, lock, b"x", json.dumps({"rc": rc if rc >= 0 else 128 - rc}).encode())
        conn.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    conn.close()


def listen(address: str) -> socket.socket:
    """Opens the socket in the namespace `console`; a socket keeps the namespace it was made in."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net") as own, open("/run/netns/console") as console:
        if libc.setns(console.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns console")
        host, port = address.rsplit(":", 1)
        server = socket.create_server((host, int(port)), backlog=64)
        libc.setns(own.fileno(), CLONE_NEWNET)
    return server


def main() -> None:
    server = listen(sys.argv[1])
    while True:
        conn, _ = server.accept()
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=serve, args=(conn,), daemon=True).start()


if __name__ == "__main__":
    main()
