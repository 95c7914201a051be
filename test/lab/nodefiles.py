"""Every file a node reads at boot, written by the host: forks are dear in a guest, text is not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from . import images, paths
from .console import AGENT_PORT
from .controlplane import ControlPlane
from .spec import ClusterSpec, NodeSpec

CONSOLE_HOST = "192.0.2.1"  # the host's end of the console network (RFC 5737)


def guest_path(path: Path) -> str:
    """Where a guest sees a file of the host whatever is mounted over it."""
    return f"/run/host{path}"


def network_batch(cluster: ClusterSpec, node: NodeSpec) -> list[str]:
    """Addresses, default routes by the lab's router, and routes to the pods of the other nodes of the cluster."""
    lines = [f"addr add {node.ips[0]}/{_length(cluster.node_network[0])} dev vec0",
             f"addr add {node.ips[1]}/{_length(cluster.node_network[1])} dev vec0 nodad", "link set vec0 up",
             f"route add default via {cluster.gateway_ips[0]}", f"route add default via {cluster.gateway_ips[1]}"]
    for other in cluster.node_specs():
        if other.name != node.name:
            lines += [f"route add {cidr} via {ip}" for cidr, ip in zip(other.pod_cidrs, other.ips)]
    return lines


def masquerade(pods: str) -> str:
    """What flannel and kindnet do: pods leave their cluster under the address of their node. The rule goes last,
    as theirs do, so that a no-masquerade rule has to precede it."""
    return ("*nat\n:LAB-MASQ - [0:0]\n" f"-A POSTROUTING -s {pods} ! -d {pods} -j LAB-MASQ\n"
            f"-A LAB-MASQ -d {'ff00::/8' if ':' in pods else '224.0.0.0/4'} -j RETURN\n-A LAB-MASQ -j MASQUERADE\nCOMMIT\n")


def _cni(node: NodeSpec) -> dict:
    return {"cniVersion": "1.0.0", "name": "lab", "plugins": [
        {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": False, "hairpinMode": True,
         "ipam": {"type": "host-local", "ranges": [[{"subnet": cidr}] for cidr in node.pod_cidrs], "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}},
        {"type": "portmap", "capabilities": {"portMappings": True}}]}


def _containerd() -> str:
    return f"""version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
[plugins."io.containerd.cri.v1.images".pinned_images]
 sandbox = "{images.PAUSE}"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
 runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
 SystemdCgroup = false
[plugins."io.containerd.cri.v1.runtime".cni]
 bin_dirs = ["/usr/lib/cni"]
 conf_dir = "/etc/cni/net.d"
"""


def _kubelet(cluster: ClusterSpec) -> dict:
    return {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "cgroupDriver": "cgroupfs", "failSwapOn": False,
            "localStorageCapacityIsolation": False, "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                               "x509": {"clientCAFile": f"/run/lab/clusters/{cluster.name}/pki/ca.crt"}},
            "authorization": {"mode": "Webhook"}, "clusterDomain": "cluster.local", "clusterDNS": [cluster.dns_ip],
            "resolvConf": "/etc/resolv.conf", "evictionHard": {"memory.available": "10Mi"},
            # A container that a scenario kills again and again starts again at once, and a changed Secret reaches its pods within seconds.
            "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"}, "syncFrequency": "10s",
            "nodeStatusUpdateFrequency": "5s", "registerWithTaints": [], "maxPods": 60}


def write(folder: Path, cluster: ClusterSpec, node: NodeSpec, control: ControlPlane, tools: Path, archives: Sequence[Path]) -> None:
    """Writes NODE's files into `folder`, which the guest sees as /run/lab/nodes/NODE."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "log").mkdir(exist_ok=True)
    proxy = {"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "iptables",
             "clusterCIDR": ",".join(cluster.pods), "hostnameOverride": node.name,
             "clientConnection": {"kubeconfig": f"/run/lab/clusters/{cluster.name}/pki/kube-proxy.kubeconfig"}}
    environment = {"tools": guest_path(tools), "agent_address": f"{node.console_ip}:{AGENT_PORT}", "node_ips": ",".join(node.ips),
                   "pause_image": guest_path(images.archive(images.PAUSE)), "images": " ".join(guest_path(a) for a in archives)}
    texts = {
        "environment": "".join(f"{k}={v!r}\n" for k, v in environment.items()),
        "console.batch": f"link set lo up\naddr add {node.console_ip}/24 dev vec1\nlink set vec1 up\n",
        "network.batch": "\n".join(network_batch(cluster, node)) + "\n",
        "masquerade.v4": masquerade(cluster.pods[0]), "masquerade.v6": masquerade(cluster.pods[1]),
        "cni.conflist": json.dumps(_cni(node)), "containerd.toml": _containerd(),
        "kubelet.yaml": json.dumps(_kubelet(cluster)), "proxy.yaml": json.dumps(proxy),
        "kubelet.kubeconfig": control.pki.kubeconfig(node.name).read_text(),
        # The node's own look-ups have no server; an empty file would mean 127.0.0.1 to some.
        "resolv.conf": "options timeout:1 attempts:1\n", "agent.py": (paths.INSIDE / "agent.py").read_text(),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)


def _length(cidr: str) -> str:
    return cidr.split("/")[1]
