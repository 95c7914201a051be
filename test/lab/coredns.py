"""CoreDNS in a cluster, as kube-dns: off by default, it costs memory and time."""

from __future__ import annotations

from . import images
from .cluster import Cluster

_COREFILE = """.:53 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
      pods insecure
      fallthrough in-addr.arpa ip6.arpa
    }
    cache 5
    reload 2s 1s
}
"""


def deploy(cluster: Cluster) -> None:
    """Applies CoreDNS; its pods run once nodes are Ready. The service has the address the kubelets hand to pods."""
    name, labels = "coredns", {"k8s-app": "kube-dns"}
    meta = {"name": name, "namespace": "kube-system"}
    rules = [{"apiGroups": [""], "resources": ["endpoints", "services", "pods", "namespaces"], "verbs": ["list", "watch"]},
             {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]}]
    container = {"name": name, "image": images.COREDNS, "imagePullPolicy": "Never",
                 "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns"}],
                 "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 2}}
    pod = {"serviceAccountName": name, "dnsPolicy": "Default", "containers": [container],
           "tolerations": [{"operator": "Exists"}], "volumes": [{"name": "config", "configMap": {"name": name}}]}
    ports = [{"name": f"dns-{p.lower()}", "port": 53, "protocol": p} for p in ("UDP", "TCP")]
    cluster.kube.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "system:coredns"}, "rules": rules},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "system:coredns"},
         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:coredns"},
         "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "kube-system"}]},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"Corefile": _COREFILE}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {**meta, "labels": labels},
         "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "kube-dns", "namespace": "kube-system", "labels": labels},
         "spec": {"clusterIP": cluster.spec.dns_ip, "selector": labels, "ports": ports, "ipFamilyPolicy": "SingleStack"}})
