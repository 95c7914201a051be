"""The PSK of three joined clusters rotates without losing a packet, waits for a cluster that lags behind, and survives the death of the broker's operator halfway."""

from __future__ import annotations

import base64
import json
from typing import Any

from e2e.deployment import BROKER, BROKER_NAMESPACE, OPERATOR_NAMESPACE
from e2e.joined import SHAPE, Joined, Watched
from e2e.keys import endpoint_of

from lab import Cluster, LabError, wait_for

LAB = SHAPE
SECRET = "submariner-ipsec-psk"
LAGGARD = "c"


def psk_secret(cluster: Cluster, namespace: str) -> dict[str, bytes]:
    data = cluster.kube.api("GET", f"/api/v1/namespaces/{namespace}/secrets/{SECRET}").get("data", {})
    return {key: base64.b64decode(value) for key, value in data.items()}


def number(secret: dict[str, bytes]) -> int:
    return int(secret.get("number", b"1"))


def rotation(joined: Joined) -> dict[str, Any]:
    return joined.deployment.fabric(joined.hub, BROKER).get("status", {}).get("pskRotation", {})


def set_number(joined: Joined, value: int) -> None:
    joined.hub.kube.kubectl("patch", "fabric", BROKER, "--type=merge", "-p", json.dumps({"spec": {"brokerConfig": {"pskNumber": value}}}))


def operator_pod(joined: Joined) -> str:
    pods = [p["metadata"]["name"] for p in joined.hub.kube.pods(OPERATOR_NAMESPACE) if "fabric-operator" in p["metadata"]["name"] and "deletionTimestamp" not in p["metadata"]]
    return pods[0] if pods else ""


def test_a_rotation_waits_for_the_last_and_loses_nothing(joined: Joined, watched: Watched) -> None:
    hub, laggard = joined.hub, joined.lab[LAGGARD]
    before = psk_secret(hub, BROKER_NAMESPACE)
    wanted = number(before) + 1
    old_ids = set().union(*(g.psks() for g in joined.gateways.values()))
    assert len(old_ids) == 1, old_ids
    laggard.stop_control_plane()  # its operator cannot hand the new PSK on
    try:
        set_number(joined, wanted)

        def only_the_laggard_is_missing() -> bool:
            now = rotation(joined)
            if now.get("number") == wanted and [w for w in now.get("waitingFor", []) if LAGGARD in w] and now.get("membersReady", 0) == len(joined.gateways) - 1:
                return True
            raise LabError(f"status.pskRotation is {now}")
        wait_for("everybody but the laggard", only_the_laggard_is_missing, timeout=120, every=0.5)
        half = psk_secret(hub, BROKER_NAMESPACE)
        assert (number(half), half.get("previous")) == (wanted, before["psk"]), "the old PSK is kept while somebody needs it"
        killed = operator_pod(joined)
        hub.kube.kubectl("delete", "pod", "-n", OPERATOR_NAMESPACE, killed, "--grace-period=0", "--force")
        hub.kube.wait_pods(1, OPERATOR_NAMESPACE, "app.kubernetes.io/name=fabric-operator")
        assert operator_pod(joined) != killed
        half = psk_secret(hub, BROKER_NAMESPACE)
        assert (number(half), half.get("previous")) == (wanted, before["psk"]), "a new operator does not start again"
    finally:
        laggard.start_control_plane()
    joined.deployment.wait_condition(hub, BROKER, "PSKRotated", timeout=120)
    joined.wait_connected()

    def old_psk_is_gone() -> bool:
        for cluster, namespace in ((hub, BROKER_NAMESPACE), *((c, OPERATOR_NAMESPACE) for c in joined.deployment.members)):
            secret = psk_secret(cluster, namespace)
            if number(secret) != wanted or "previous" in secret or secret["psk"] == before["psk"]:
                raise LabError(f"Secret of {cluster.name}: number {number(secret)}, keys {sorted(secret)}")
        for name, gateway in joined.gateways.items():
            listed = gateway.psks()
            if listed & old_ids or not all(p.startswith(f"{wanted}:") for p in listed):
                raise LabError(f"{name} lists {listed}")
            if missed := [i for i in old_ids if mentions(endpoint_of(hub, name), i)]:
                raise LabError(f"the Endpoint of {name} lists {missed}")
        return True
    wait_for("the old PSK to be forgotten everywhere", old_psk_is_gone, timeout=120, every=0.5)
    watched.verdict(f"rotation to PSK {wanted}")


def mentions(endpoint: dict[str, Any], psk: str) -> bool:
    """Whether a record lists a PSK, by the bytes of its id."""
    config = endpoint["spec"]["backend_config"]
    records = [base64.b64decode(r) for r in (*config["fabric-keys"].split(","), config["fabric-state"])]
    return any(bytes.fromhex(psk.split(":")[1]) in r for r in records)
