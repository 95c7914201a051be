"""The parts of the lab that need no root: addresses, captures, waiting, archives."""

from __future__ import annotations

import io
import json
import struct
import tarfile
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest

from lab import LabError, LabSpec, Turn, standard, wait_for
from lab import capture, oci, turns
from lab.errors import Hopeless
from lab.nodefiles import network_batch
from lab.spec import ClusterSpec

POD_A, POD_B = "10.1.0.2", "10.2.0.2"
SECRET = ["10.1.0.0/16", "10.2.0.0/16", "fd10:1::/48", "fd10:2::/48"]


def ipv4(source: str, target: str, protocol: int, payload: bytes) -> bytes:
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), 0, 0, 64, protocol, 0) + ip_address(source).packed + ip_address(target).packed + payload


def udp(source: int, target: int, payload: bytes) -> bytes:
    return struct.pack(">HHHH", source, target, 8 + len(payload), 0) + payload


def pcap(tmp_path: Path, *packets: bytes) -> Path:
    frames = [bytes(12) + (b"\x86\xdd" if p[0] >> 4 == 6 else b"\x08\x00") + p for p in packets]
    file = tmp_path / "x.pcap"
    file.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + b"".join(struct.pack("<IIII", 0, 0, len(f), len(f)) + f for f in frames))
    return file


def test_the_standard_lab_has_no_overlapping_prefixes() -> None:
    spec = standard(clusters=5)
    prefixes = [ip_network(p) for c in spec.clusters for p in (*c.pods, *c.services, *c.node_network)]
    for i, a in enumerate(prefixes):
        assert not any(a.version == b.version and a.overlaps(b) for b in prefixes[i + 1:])


def test_every_node_has_its_own_addresses_inside_the_prefixes_of_its_cluster() -> None:
    nodes = [(c, n) for c in standard(clusters=3, nodes=4).clusters for n in c.node_specs()]
    for c, n in nodes:
        assert all(ip_address(ip) in ip_network(net) for ip, net in zip(n.ips, c.node_network))
        assert all(ip_network(cidr).subnet_of(ip_network(net)) for cidr, net in zip(n.pod_cidrs, c.pods))
    for value in (lambda n: n.ips, lambda n: n.pod_cidrs, lambda n: n.mac, lambda n: n.console_ip):
        assert len({value(n) for _, n in nodes}) == len(nodes)


def test_a_spec_survives_json() -> None:
    spec = standard(clusters=2, a={"pods": ("10.9.0.0/16", "")}, hub={"labels": {"x": "y"}})
    assert LabSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
    assert spec.cluster("a").pods == ("10.9.0.0/16", "fd10:1::/48")


@pytest.mark.parametrize("name", ["", "A", "with-dash", "muchtoolong"])
def test_a_name_that_would_not_fit_a_device_is_refused(name: str) -> None:
    with pytest.raises(ValueError):
        ClusterSpec(name, 1)


def test_a_node_routes_to_the_pods_of_every_other_node_of_its_cluster() -> None:
    cluster = standard(nodes=3).cluster("a")
    first, *others = cluster.node_specs()
    batch = network_batch(cluster, first)
    for other in others:
        assert f"route add {other.pod_cidrs[0]} via {other.ips[0]}" in batch and f"route add {other.pod_cidrs[1]} via {other.ips[1]}" in batch
    assert not any(first.pod_cidrs[0] in line for line in batch)


def test_esp_bare_and_in_udp_is_counted_and_nothing_is_clear(tmp_path: Path) -> None:
    esp = struct.pack(">II", 0x1001, 1) + bytes(40)
    file = pcap(tmp_path, ipv4("172.20.1.11", "172.20.2.11", 50, esp), ipv4("172.20.1.11", "172.20.2.11", 17, udp(4500, 4500, esp)))
    summary = capture.summarise(file, SECRET)
    assert summary.kinds == {"esp": 1, "esp-in-udp": 1} and summary.esp == 2 and summary.spis == {0x1001: 2} and summary.clear == []


def test_a_probe_with_a_non_esp_marker_is_not_esp(tmp_path: Path) -> None:
    summary = capture.summarise(pcap(tmp_path, ipv4("172.20.1.11", "172.20.2.11", 17, udp(4500, 4500, bytes(4) + b"probe...."))), SECRET)
    assert summary.esp == 0 and summary.kinds == {"udp-non-esp-marker": 1}


@pytest.mark.parametrize("packet", [
    ipv4(POD_A, POD_B, 1, bytes(8)),
    ipv4(POD_A, "172.20.2.11", 6, bytes(20)),
    ipv4("172.20.1.11", "172.20.2.11", 4, ipv4(POD_A, POD_B, 1, bytes(8))),
    ipv4("172.20.1.11", "172.20.2.11", 17, udp(5000, 4800, bytes(8) + bytes(12) + b"\x08\x00" + ipv4(POD_A, POD_B, 1, bytes(8)))),
], ids=["bare", "one address", "ip in ip", "vxlan"])
def test_a_pod_address_outside_esp_is_clear(tmp_path: Path, packet: bytes) -> None:
    assert len(capture.summarise(pcap(tmp_path, packet), SECRET).clear) == 1


def test_waiting_ends_with_the_last_answer_and_at_once_if_it_is_hopeless() -> None:
    answers = iter([False, LabError("not yet"), "done"])

    def probe() -> object:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert wait_for("it", probe, timeout=5, every=0) == "done"
    with pytest.raises(LabError, match="waited 0 s for: it; last seen: False"):
        wait_for("it", lambda: False, timeout=0, every=0)

    def dead() -> bool:
        raise Hopeless("dead")
    with pytest.raises(Hopeless):
        wait_for("it", dead, timeout=60)


def test_an_archive_is_an_oci_layout_and_the_same_each_time(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").write_text("text")
    for name in ("1", "2"):
        oci.write_archive(root, tmp_path / name, "lab.local/x:1", ["/bin/x"])
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()
    with tarfile.open(tmp_path / "1") as tar:
        index = json.load(tar.extractfile("index.json"))
        manifest = json.load(tar.extractfile("blobs/sha256/" + index["manifests"][0]["digest"].removeprefix("sha256:")))
        layer = tar.extractfile("blobs/sha256/" + manifest["layers"][0]["digest"].removeprefix("sha256:")).read()
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        assert tar.getnames() == ["file"]


def test_a_name_has_one_user_at_a_time(tmp_path: Path) -> None:
    first = Turn.take("x", tmp_path)
    assert first and Turn.take("x", tmp_path) is None
    second = Turn.take("x-2", tmp_path)
    assert second and second.name == "x-2"
    first.give_back()
    assert Turn.take("x", tmp_path)
    assert len(set(turns.names("x"))) > 1 and turns.names("x")[0] == "x"
