"""Pods run on every node and reach the pods and services of their own cluster in both families, and no pod of another.

What every other scenario stands on: without Fabric the clusters are real, and separate.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from lab import Lab, workload
from lab.workload import Probe


@pytest.fixture(scope="module")
def probes(lab: Lab) -> dict[str, list[Probe]]:
    with ThreadPoolExecutor(len(lab.clusters)) as pool:
        return dict(zip(lab.clusters, pool.map(workload.deploy_probes, lab.clusters.values())))


def test_every_node_is_ready_with_the_pod_prefixes_the_lab_gave_it(lab: Lab) -> None:
    for cluster in lab.clusters.values():
        assert cluster.not_ready() == []
        given = {n["metadata"]["name"]: n["spec"]["podCIDRs"] for n in cluster.kube.api("GET", "/api/v1/nodes")["items"]}
        assert given == {n.name: list(n.spec.pod_cidrs) for n in cluster.nodes}


def test_a_pod_runs_on_every_node_with_an_address_of_each_family(lab: Lab, probes: dict[str, list[Probe]]) -> None:
    for name, cluster in lab.clusters.items():
        assert [p.node for p in probes[name]] == [n.name for n in cluster.nodes]
        assert all(len(p.ips) == 2 for p in probes[name])


def test_pods_of_one_cluster_reach_each_other_and_their_service(lab: Lab, probes: dict[str, list[Probe]]) -> None:
    for name, cluster in lab.clusters.items():
        expected: dict[str, str | None] = {ip: f"{name} {p.node}" for p in probes[name] for ip in p.ips}
        expected |= {ip: None for ip in workload.service_ips(cluster)}
        for probe in probes[name]:
            workload.wait_answers(probe, expected)
            workload.wait_pings(probe, [ip for p in probes[name] for ip in p.ips])


def test_pods_of_different_clusters_do_not_reach_each_other(lab: Lab, probes: dict[str, list[Probe]]) -> None:
    for name in lab.clusters:
        others = [c for c in lab.clusters if c != name]
        targets = [ip for c in others for p in probes[c] for ip in p.ips] + [ip for c in others for ip in workload.service_ips(lab[c])]
        for probe in probes[name]:
            answers = probe.ask(targets)
            assert set(answers.values()) == {""}, f"from {probe.node}: {answers}"


def test_the_sender_is_seen_as_a_pod_within_its_cluster(lab: Lab, probes: dict[str, list[Probe]]) -> None:
    first, second = probes["a"]
    capture = lab.capture(lab["a"], "unmasqueraded", "icmp or icmp6")
    with capture:
        workload.wait_pings(first, second.ips)
    pairs = {line.split(" ", 1)[1] for line in lab.summarise(capture).clear}
    assert {f"{a} > {b}" for a, b in zip(first.ips, second.ips)} <= pairs
