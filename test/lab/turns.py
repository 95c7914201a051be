"""Whose lab is whose when several programs run scenarios at once."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import TextIO


class Turn:
    """The right to use the labs of one name, from `take` to `give_back` or the end of the program, however it ends."""

    def __init__(self, name: str, lock: TextIO) -> None:
        self.name = name
        self._lock = lock

    @staticmethod
    def take(name: str, folder: Path) -> Turn | None:
        """None while another program has it. The file stays: removing it would let two programs hold one name."""
        folder.mkdir(parents=True, exist_ok=True)
        lock = open(folder / f".{name}.turn", "w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return None
        return Turn(name, lock)

    def give_back(self) -> None:
        self._lock.close()


def names(wanted: str) -> list[str]:
    """The name wanted, and those to fall back on."""
    return [wanted, *(f"{wanted}-{i}" for i in range(2, 6))]
