"""Every wrong input ends in a condition that names the object, the value and the remedy, and the join goes on by itself once it is mended."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from e2e.deployment import BROKER_INFO, BROKER_NAMESPACE, JOIN, Deployment
from e2e.image import fabric_image

from lab import Lab, LabError

Content = dict[str, Any]


@pytest.fixture(scope="module")
def deployment(lab: Lab) -> Iterator[Deployment]:
    found = Deployment(lab, fabric_image(), print)
    found.load_image()
    found.install_operators()
    found.deploy_broker()
    yield found
    found.purge()


def with_content(text: str, change: Callable[[Content], None]) -> str:
    """broker-info whose JSON was changed."""
    manifest = yaml.safe_load(text)
    content = json.loads(base64.urlsafe_b64decode(manifest["data"]["brokerInfo"]))
    change(content)
    return with_value(text, base64.urlsafe_b64encode(json.dumps(content).encode()).decode())


def with_value(text: str, value: str) -> str:
    manifest = yaml.safe_load(text)
    manifest["data"]["brokerInfo"] = value
    return yaml.safe_dump(manifest)


def unreachable(content: Content) -> None:
    content["brokerURL"] = "https://172.20.0.1:9"


def powerless(content: Content) -> None:
    content["clientToken"]["data"]["token"] = base64.b64encode(b"not.a.token").decode()


BROKEN_INFO: list[tuple[str, Callable[[str], str], tuple[str, ...]]] = [
    ("broken base64", lambda t: with_value(t, "%%%not base64%%%"), (BROKER_INFO, "base64")),
    ("broken JSON", lambda t: with_value(t, base64.urlsafe_b64encode(b'{"brokerURL": ').decode()), (BROKER_INFO, "JSON")),
    ("missing PSK", lambda t: with_content(t, lambda c: c.pop("ipsecPSK")), (BROKER_INFO, "ipsecPSK")),
    ("unreachable broker", lambda t: with_content(t, unreachable), ("172.20.0.1:9",)),
    ("token without rights", lambda t: with_content(t, powerless), ("token",)),
]


def test_a_join_waits_for_its_broker_info_and_names_what_is_wrong_with_it(deployment: Deployment) -> None:
    cluster, good = deployment.lab["a"], deployment.broker_info()
    deployment.apply_join(cluster)
    deployment.wait_message(cluster, BROKER_INFO, BROKER_NAMESPACE)
    for name, broken, words in BROKEN_INFO:
        deployment.copy_broker_info(cluster, broken(good))
        found = deployment.wait_message(cluster, *words)
        print(f"{name}: {found['type']}={found['status']} {found['reason']}: {found['message']}")
        assert not any(secret in found["message"] for secret in secrets_of(good)), name
    deployment.copy_broker_info(cluster, good)
    deployment.wait_condition(cluster, JOIN, "Joined")


def secrets_of(text: str) -> list[str]:
    """What must never be read in a message."""
    content = json.loads(base64.urlsafe_b64decode(yaml.safe_load(text)["data"]["brokerInfo"]))
    token, psk = content["clientToken"]["data"]["token"], content["ipsecPSK"]["data"]["psk"]
    return [token, psk, base64.b64decode(token).decode()]


@pytest.mark.parametrize("value", ["Not_A_Label", "-a", "a" * 64])
def test_a_wrong_cluster_id_is_refused_when_it_is_applied(deployment: Deployment, value: str) -> None:
    manifest = deployment.join_manifest(deployment.lab["b"], clusterID=value)
    with pytest.raises(LabError, match="clusterID"):
        deployment.lab["b"].kube.kubectl("apply", "-f", "-", stdin=json.dumps(manifest))


def test_overlapping_prefixes_are_refused_with_both_names_and_both_prefixes(deployment: Deployment) -> None:
    a, b = deployment.lab["a"], deployment.lab["b"]
    deployment.copy_broker_info(a)
    deployment.apply_join(a)
    deployment.wait_condition(a, JOIN, "Joined")
    taken = a.spec.services[0]
    deployment.copy_broker_info(b)
    deployment.apply_join(b, clusterCIDR=taken)
    found = deployment.wait_message(b, taken, "'a'", "'b'")
    assert "globalnet" in found["message"].lower() or "change" in found["message"].lower(), found
    # Mended in place: the same object, with the field taken out.
    deployment.remove_join_field(b, "clusterCIDR")
    deployment.wait_joined()
