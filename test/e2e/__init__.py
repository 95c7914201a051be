"""Fabric on the lab's clusters, as its users see it: installation, joining, traffic, leaving."""
