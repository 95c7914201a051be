"""A gateway moves with its label: traffic goes by the new node, and the old one keeps nothing of it in the kernel, at the broker or in any status."""

from __future__ import annotations

from e2e.deployment import BROKER_NAMESPACE, JOIN, OPERATOR_NAMESPACE, Deployment, difference, stopwatch
from e2e.image import fabric_image
from e2e.traffic import Traffic

from lab import Cluster, Lab, LabError, Node, wait_for

LABEL = "submariner.io/gateway"


def of_fabric(node: Node) -> list[str]:
    """SAs and policies. Nobody else in these clusters uses xfrm."""
    return [line for line in node.run("ip xfrm state; ip xfrm policy").stdout.splitlines() if line.startswith("src ")]


def known_gateways(deployment: Deployment, cluster: Cluster) -> set[str]:
    """The nodes that anything names as a gateway of this cluster: its own objects, the broker, and the peers' copies."""
    names = {g["metadata"]["name"] for g in cluster.kube.list("gateways.submariner.io", OPERATOR_NAMESPACE)}
    for kube, ns in [(deployment.hub.kube, BROKER_NAMESPACE), *((m.kube, OPERATOR_NAMESPACE) for m in deployment.members)]:
        endpoints = kube.list("endpoints.submariner.io", ns)
        names |= {e["spec"]["hostname"] for e in endpoints if e["spec"]["cluster_id"] == cluster.name}
    return names


def wait_moved(deployment: Deployment, cluster: Cluster, old: Node, new: Node) -> None:
    def probe() -> bool:
        if (names := known_gateways(deployment, cluster)) != {new.name}:
            raise LabError(f"gateways of {cluster.name}: {', '.join(sorted(names))}")
        if left := of_fabric(old):
            raise LabError(f"{old.name} still has {len(left)} SAs and policies")
        return True
    wait_for("the old gateway to be forgotten", probe, 60)


def test_a_gateway_moves_with_its_label(lab: Lab) -> None:
    deployment = Deployment(lab, fabric_image(), print)
    traffic = Traffic({c.name: c.kube for c in lab.joined}, {c.name: [n.name for n in c.nodes] for c in lab.joined})
    try:
        deployment.load_image()
        traffic.start()
        deployment.install_operators()
        before = {c.name: deployment.kernel_state(c) for c in lab.joined}
        deployment.deploy_broker()
        for member in lab.joined:
            deployment.join(member)
        deployment.wait_joined()
        traffic.wait_all()
        cluster = lab.joined[0]
        [old] = [n for n in cluster.nodes if n.name in deployment.gateway_nodes(cluster)]
        [new] = [n for n in cluster.nodes if n is not old]
        assert of_fabric(old) and not of_fabric(new)

        elapsed = stopwatch()
        cluster.kube.kubectl("label", "node", new.name, f"{LABEL}=true")
        cluster.kube.kubectl("label", "node", old.name, f"{LABEL}-")
        wait_moved(deployment, cluster, old, new)
        traffic.wait_all()
        print(f"moved, and every placement answers, after {elapsed():.1f} s", flush=True)
        assert of_fabric(new)
        deployment.wait_condition(cluster, JOIN)
        deployment.wait_joined()

        for member in lab.joined:
            deployment.leave(member)
            left = difference(before[member.name], deployment.kernel_state(member))
            assert not left, left[:10]
    finally:
        deployment.purge()
