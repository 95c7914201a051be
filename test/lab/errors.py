"""The one error of the lab: what went wrong, and what to do about it."""

from __future__ import annotations


class LabError(Exception):
    """An error a person can act on. `remedy` completes the sentence "try: ...".

    Raised for the machine (not root, tools absent), for the lab's state (already up, not up) and for commands
    that failed or took too long. Programming errors stay ordinary Python exceptions.
    """

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(f"{what}\n  try: {remedy}" if remedy else what)
        self.what = what
        self.remedy = remedy


class Hopeless(LabError):
    """An error that waiting longer cannot mend: a guest that has died, a program that has exited."""
