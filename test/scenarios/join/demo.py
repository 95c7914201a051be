"""Two clusters join and every placement of pods and services reaches every other over IPv4 and IPv6, through ESP only, with unmodified sources; a gateway moves with its label; leaving restores the nodes.

This is hack/demo with assertions.
"""

from __future__ import annotations

from e2e.demo import Demo
from e2e.image import fabric_image

from lab import Lab


def test_the_main_job_end_to_end(lab: Lab) -> None:
    demo = Demo(lab, fabric_image())
    try:
        verdict = demo.run()
    finally:
        demo.deployment.purge()
    assert verdict.passed, f"\n{verdict}"
