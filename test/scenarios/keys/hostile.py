"""Forged, replayed and oversized records, written by another member or by the broker's administrator, are refused and counted, and move no packet."""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable
from typing import Any

import pytest
from e2e.deployment import OPERATOR_NAMESPACE
from e2e.joined import SHAPE, Joined, Watched
from e2e.keys import GatewayNode, endpoint_of, endpoint_path, wait_rekeys

from lab import LabError, wait_for
from lab.kube import ApiError, Kube

LAB = SHAPE
REJECTED = "fabric_records_rejected_total"
MERGE = "application/merge-patch+json"
Config = dict[str, str]


def token_of(joined: Joined, cluster: str) -> str:
    """What a thief of one member's broker credentials has."""
    secret = joined.lab[cluster].kube.api("GET", f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/secrets/submariner-broker-secret")
    return base64.b64decode(secret["data"]["token"]).decode()


def flipped(text: str, byte: int) -> str:
    """Base64 of a record with one bit of one byte changed, counted from the end: the signature is last, the MACs are before it."""
    record = bytearray(base64.b64decode(text))
    record[byte] ^= 1
    return base64.b64encode(record).decode()


FORGERIES: list[tuple[str, str, Callable[[Config], Config]]] = [
    ("wrong signature", "bad_signature", lambda c: c | {"fabric-state": flipped(c["fabric-state"], -1)}),
    ("wrong MAC", "bad_mac", lambda c: c | {"fabric-state": flipped(c["fabric-state"], -70)}),
    ("wrong signature of keys", "bad_signature", lambda c: c | {"fabric-keys": flipped(c["fabric-keys"].split(",")[0], -1)}),
    ("not base64", "malformed", lambda c: c | {"fabric-keys": "%%%"}),
    ("nothing but zeros", "malformed", lambda c: c | {"fabric-state": base64.b64encode(bytes(100_000)).decode()}),
    ("a long record", "oversized", lambda c: c | {"fabric-keys": base64.b64encode(bytes(4_000)).decode()}),
    ("many records", "oversized", lambda c: c | {"fabric-keys": ",".join([c["fabric-keys"].split(",")[0]] * 500)}),
]


def attack(writer: Kube, victim: dict[str, Any], config: Config, reason: str, readers: list[GatewayNode]) -> None:
    """Writes until every reader has counted a refusal for this reason: the owner of the record mends it within moments."""
    label = f'reason="{reason}"'
    before = {r: r.metric(REJECTED, label) for r in readers}

    def refused() -> bool:
        writer.api("PATCH", endpoint_path(victim["metadata"]["name"]), {"spec": {"backend_config": config}}, MERGE)
        return all(r.metric(REJECTED, label) > before[r] for r in readers)
    wait_for(f"the refusal ({reason}) to be counted", refused, timeout=30, every=0.5)


def check_reported(readers: list[GatewayNode], endpoint: str, reasons: set[str]) -> None:
    def reported() -> bool:
        for reader in readers:
            if missing := reasons - {r["reason"] for r in reader.rejected() if r["endpoint"] == endpoint and r["count"] > 0}:
                raise LabError(f"{reader.name} does not report {missing}")
        return True
    wait_for(f"Gateway.status.keys.rejected to name {endpoint}", reported, timeout=20)


def check_still_believed(joined: Joined, name: str) -> None:
    """The owner has put its own records back, and others follow them: a rekey of it goes through."""
    gateway = joined.gateways[name]
    drawn = gateway.rekeys()
    gateway.rekey(f"hostile-{drawn}")
    wait_rekeys({gateway: drawn + 1})
    joined.wait_connected()


def test_a_member_cannot_write_records_of_another(joined: Joined, watched: Watched) -> None:
    thief = joined.hub.kube.as_owner_of(token_of(joined, "c"))
    victim, own = endpoint_of(joined.hub, "b"), endpoint_of(joined.hub, "c")
    with pytest.raises(ApiError) as refusal:
        thief.api("PATCH", endpoint_path(victim["metadata"]["name"]), {"spec": {"backend_config": own["spec"]["backend_config"]}}, MERGE)
    assert refusal.value.status in (403, 422) and "c" in refusal.value.what
    forged = copy.deepcopy(victim)
    forged["metadata"] = {"name": own["metadata"]["name"] + "-x", "namespace": victim["metadata"]["namespace"]}
    with pytest.raises(ApiError) as refusal:
        thief.api("POST", endpoint_path("").rstrip("/"), forged)
    assert refusal.value.status in (403, 422)
    with pytest.raises(ApiError) as refusal:
        thief.api("PATCH", endpoint_path(own["metadata"]["name"]), {"spec": {"cluster_id": "b"}}, MERGE)
    assert refusal.value.status in (403, 422)
    with pytest.raises(ApiError) as refusal:
        thief.api("DELETE", endpoint_path(victim["metadata"]["name"]))
    assert refusal.value.status in (403, 422)
    # The same token may write what is its own: the refusals are not for want of any right.
    thief.api("PATCH", endpoint_path(own["metadata"]["name"]), {"metadata": {"annotations": {"scenario": "hostile"}}}, MERGE)
    watched.verdict("records of b written by c")


def test_forged_records_of_a_members_own_are_refused_and_counted(joined: Joined, watched: Watched) -> None:
    thief = joined.hub.kube.as_owner_of(token_of(joined, "c"))
    own = endpoint_of(joined.hub, "c")
    for name, reason, forge in FORGERIES:
        print(f"c writes: {name}", flush=True)
        attack(thief, own, forge(own["spec"]["backend_config"]), reason, joined.both)
    check_reported(joined.both, own["metadata"]["name"], {reason for _, reason, _ in FORGERIES})
    check_still_believed(joined, "c")
    print("c replays", flush=True)
    attack(thief, own, own["spec"]["backend_config"], "stale_generation", joined.both)
    check_still_believed(joined, "c")
    watched.verdict(f"{len(FORGERIES) + 1} forgeries of c by c")


def test_the_brokers_administrator_can_forge_nothing_either(joined: Joined, watched: Watched) -> None:
    admin, a = joined.hub.kube, joined.gateways["a"]
    before_rekey = endpoint_of(joined.hub, "b")
    check_still_believed(joined, "b")
    foreign = endpoint_of(joined.hub, "c")["spec"]["backend_config"]
    old = before_rekey["spec"]["backend_config"]
    for name, reason, config in (("records of another cluster", "foreign_gateway", foreign), ("an old copy", "stale_generation", old),
                                 *((name, reason, forge(old)) for name, reason, forge in FORGERIES)):
        print(f"the administrator writes into b: {name}", flush=True)
        attack(admin, before_rekey, config, reason, [a])
    admin.api("DELETE", endpoint_path(before_rekey["metadata"]["name"]))
    check_reported([a], before_rekey["metadata"]["name"], {"foreign_gateway", "stale_generation", *(reason for _, reason, _ in FORGERIES)})
    wait_for("b to announce itself again", lambda: endpoint_of(joined.hub, "b"), timeout=30)
    check_still_believed(joined, "b")
    watched.verdict("forgeries of b by the administrator, and its Endpoint deleted")
