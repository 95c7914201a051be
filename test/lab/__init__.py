"""Real Kubernetes clusters on one machine: see README.md."""

from .capture import Capture, Summary
from .cluster import Cluster
from .command import Result, wait_for
from .errors import LabError
from .lab import Lab
from .node import Node
from .spec import ClusterSpec, LabSpec, standard
from .turns import Turn

__all__ = ["Capture", "Cluster", "ClusterSpec", "Lab", "LabError", "LabSpec", "Node", "Result", "Summary", "Turn", "standard", "wait_for"]
