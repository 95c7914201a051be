"""Commands and their results, the same for the host, the guests and the pods."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from .errors import Hopeless, LabError

T = TypeVar("T")
Argv = str | Sequence[str]


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    rc: int
    stdout: str
    stderr: str
    command: str = ""

    @property
    def ok(self) -> bool:
        return self.rc == 0

    def check(self) -> Result:
        """Returns itself, or raises LabError with the command's own words."""
        if self.rc != 0:
            words = (self.stderr.strip() or self.stdout.strip())[-2000:]
            raise LabError(f"exit code {self.rc} from: {self.command}\n{words}")
        return self


def words(argv: Argv) -> list[str]:
    """A string is a bash script, a list is run as it is."""
    return ["bash", "-c", argv] if isinstance(argv, str) else list(argv)


def run(argv: Argv, *, stdin: str | None = None, timeout: float = 120, check: bool = True,
        env: dict[str, str] | None = None, cwd: str | None = None) -> Result:
    """Runs a command on the host; `timeout` in seconds."""
    shown = argv if isinstance(argv, str) else shlex.join(argv)
    try:
        done = subprocess.run(words(argv), input=stdin, capture_output=True, text=True, timeout=timeout, env=env, cwd=cwd,
                              stdin=subprocess.DEVNULL if stdin is None else None, errors="replace")
    except subprocess.TimeoutExpired as late:
        raise LabError(f"no end after {timeout:.0f} s: {shown}") from late
    except FileNotFoundError as absent:
        raise LabError(f"no such program: {absent.filename}", "hack/setup") from absent
    result = Result(done.returncode, done.stdout, done.stderr, shown)
    return result.check() if check else result


def wait_for(what: str, probe: Callable[[], T], timeout: float = 60, every: float = 0.2) -> T:
    """Calls `probe` until it returns something true and returns that.

    LabError raised by the probe counts as "not yet" (Hopeless does not). After `timeout` seconds the last answer is in the error.
    """
    deadline = time.monotonic() + timeout
    last: object = None
    while True:
        try:
            answer = probe()
            if answer:
                return answer
            last = answer
        except Hopeless:
            raise
        except LabError as error:
            last = error
        if time.monotonic() > deadline:
            raise LabError(f"waited {timeout:.0f} s for: {what}; last seen: {last!r}"[:3000])
        time.sleep(every)
