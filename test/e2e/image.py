"""The image under test."""

from __future__ import annotations

import os
from pathlib import Path

from lab.command import run

TOP = Path(__file__).resolve().parents[2]


def fabric_image() -> Path:
    """The OCI archive in FABRIC_IMAGE, or the one that hack/image builds (again only if something changed)."""
    given = os.environ.get("FABRIC_IMAGE")
    return Path(given) if given else Path(run([str(TOP / "hack/image")], timeout=3600).stdout.splitlines()[-1])
