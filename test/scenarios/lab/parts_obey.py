"""Nodes, links and control planes of the lab fail and recover on command, and the kernels have ESP, sets and the legacy tables.

Scenarios about failure rest on this: a cut that does not cut, or that does not heal, would prove nothing.
"""

from __future__ import annotations

import pytest

from lab import Lab, LabError, Node, wait_for
from lab.capture import packets
from lab.command import Result


def ping(source: Node, target: str, count: int = 2) -> Result:
    return source.run(["ping", "-n", "-q", "-i", "0.2", "-W", "1", "-c", str(count), target], check=False)


def reaches(source: Node, target: str) -> bool:
    return ping(source, target).ok


def test_a_command_on_a_node_returns_both_outputs_and_its_exit_code(lab: Lab) -> None:
    result = lab.node("a-n1").run("cat; echo out; echo err >&2; exit 7", stdin="in\n", check=False)
    assert (result.rc, result.stdout, result.stderr) == (7, "in\nout\n", "err\n")
    assert lab.node("a-n1").run("head -c 3000000 /dev/zero | tr '\\0' x").stdout == "x" * 3000000
    with pytest.raises(LabError, match="no end after 1 s"):
        lab.node("a-n1").run("sleep 1000", timeout=1)
    wait_for("the command to be killed", lambda: not lab.node("a-n1").run("pgrep -fx 'sleep 1000'", check=False).ok, timeout=10)


def test_the_kernel_takes_esp_sets_and_legacy_rules(lab: Lab) -> None:
    key = "0x" + "11" * 36
    aead = {"gcm": "'rfc4106(gcm(aes))'", "chacha": "'rfc7539esp(chacha20,poly1305)'"}
    node = lab.node("b-n2")
    node.run("ip netns add trial")
    try:
        for i, algorithm in enumerate(aead.values()):
            for family, (source, target) in enumerate((("192.0.2.1", "192.0.2.2"), ("2001:db8::1", "2001:db8::2"))):
                node.run(f"ip -n trial xfrm state add src {source} dst {target} proto esp spi {0x1000 + 2 * i + family:#x} reqid 7 "
                         f"mode tunnel aead {algorithm} {key} 128 flag esn replay-window 128")
        node.run("ip netns exec trial bash -ec 'ipset create s4 hash:net; ipset create s6 hash:net family inet6; "
                 "iptables -t nat -I POSTROUTING -m set --match-set s4 dst -j ACCEPT; ip6tables -t nat -I POSTROUTING -m set --match-set s6 dst -j ACCEPT; "
                 "iptables -t mangle -A FORWARD -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss 1300; ip6tables -t mangle -A FORWARD -m policy --dir out --pol ipsec -j ACCEPT'")
        assert node.run("ip -n trial xfrm state count").stdout.split()[-1] == "4"
    finally:
        node.run("ip netns delete trial")


def test_nodes_of_different_clusters_reach_each_other_and_a_block_stops_exactly_what_it_names(lab: Lab) -> None:
    a, b = lab.node("a-n1"), lab.node("b-n1")
    assert reaches(a, b.ip) and reaches(a, b.ip6)
    try:
        lab.wan.block(lab["a"], lab["b"], "meta l4proto icmp")
        assert not reaches(a, b.ip) and not reaches(b, a.ip)
        assert reaches(a, b.ip6)
        assert reaches(a, lab.node("hub-n1").ip)
    finally:
        lab.wan.clear()
    assert reaches(a, b.ip)


def test_a_cluster_behind_nat_is_seen_under_its_public_address_only(lab: Lab) -> None:
    a, b = lab.node("a-n1"), lab.node("b-n1")
    try:
        public = lab.wan.nat(lab["a"], forward={("udp", 4500): (a.ip, 4500)})
        with lab.capture(lab["b"], "nat", "icmp") as capture:
            assert reaches(a, b.ip)
        sources = {str(p.source) for p in packets(capture.file.read_bytes())}
        assert sources == {public, b.ip}
        assert not reaches(b, a.ip)
        with a.start(["tcpdump", "-n", "-l", "-c", "1", "-i", "vec0", "udp port 4500"]) as listening:
            wait_for("a forwarded packet", lambda: (b.run(f"echo x > /dev/udp/{public}/4500"), listening.done)[1], timeout=20)
            assert f"{b.ip}." in listening.stdout and f"> {a.ip}.4500" in listening.stdout
    finally:
        lab.wan.clear()
    assert reaches(b, a.ip)


def test_an_isolated_node_can_still_be_asked_and_comes_back(lab: Lab) -> None:
    first, second = lab["a"].nodes
    second.isolate()
    try:
        assert not reaches(first, second.ip)
        assert not reaches(second, first.ip)
    finally:
        second.rejoin()
    wait_for("the node to be reached again", lambda: reaches(first, second.ip), timeout=20)


def test_delay_on_a_node_is_felt(lab: Lab) -> None:
    node = lab.node("b-n1")
    node.impair("delay 300ms")
    try:
        times = ping(node, lab.node("b-n2").ip).stdout.split(" = ")[1].split("/")
        assert float(times[0]) >= 300
    finally:
        node.impair("")


def test_a_killed_node_is_gone_and_boots_to_ready(lab: Lab) -> None:
    cluster, node = lab["b"], lab.node("b-n2")

    def boot_id() -> str:
        return cluster.kube.api("GET", f"/api/v1/nodes/{node.name}")["status"]["nodeInfo"]["bootID"]

    before = boot_id()
    node.kill()
    assert not node.running and not reaches(lab.node("b-n1"), node.ip)
    node.boot()
    # Ready alone proves nothing yet: the API server still holds what the dead kubelet said.
    wait_for("the kubelet of the new boot to report", lambda: boot_id() != before, timeout=90)
    cluster.wait_ready()


def test_a_control_plane_stops_and_comes_back_with_its_objects(lab: Lab) -> None:
    hub = lab["hub"]
    hub.kube.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept", "namespace": "default"}, "data": {"k": "v"}})
    hub.stop_control_plane()
    try:
        assert not hub.kube.ready()
        assert lab["a"].kube.ready()
    finally:
        hub.start_control_plane()
    kept = hub.kube.get("configmap", "kept")
    assert kept and kept["data"] == {"k": "v"}
    hub.wait_ready()
