"""Certificates of one control plane, made with openssl: a CA, the server, the components and each node."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from .command import run
from .spec import ClusterSpec

COMPONENTS = {
    "admin": "/O=system:masters/CN=admin",
    "controller-manager": "/CN=system:kube-controller-manager",
    "scheduler": "/CN=system:kube-scheduler",
    "kube-proxy": "/CN=system:kube-proxy",
}


class Pki:
    """Keys below `folder`: NAME.key, NAME.crt, and NAME.kubeconfig with the keys inside."""

    def __init__(self, folder: Path, cluster: ClusterSpec) -> None:
        self.folder = folder
        self.cluster = cluster

    @property
    def ca(self) -> Path:
        return self.folder / "ca.crt"

    def kubeconfig(self, name: str) -> Path:
        return self.folder / f"{name}.kubeconfig"

    def create(self) -> None:
        """Makes everything in two shells' worth of openssl; about 0.3 s."""
        self.folder.mkdir(parents=True, exist_ok=True)
        spec = self.cluster
        script = ["set -eu", "ec='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'",
                  f"openssl req -x509 $ec -keyout ca.key -out ca.crt -subj /CN={spec.name}-ca -days 30",
                  "openssl genrsa -out service-accounts.key 2048"]
        addresses = ["127.0.0.1", *spec.gateway_ips, spec.first_service_ip]
        names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"]
        san = ",".join([f"IP:{a}" for a in addresses] + [f"DNS:{n}" for n in names])
        subjects = {**COMPONENTS, **{n.name: f"/O=system:nodes/CN=system:node:{n.name}" for n in spec.node_specs()}}
        script += self._issue("server", "/CN=kube-apiserver", san)
        for name, subject in subjects.items():
            script += self._issue(name, subject, f"DNS:{name}")
        run("\n".join(script), cwd=str(self.folder))
        for name in subjects:
            self.kubeconfig(name).write_text(json.dumps(self._kubeconfig(name)))

    @staticmethod
    def _issue(name: str, subject: str, san: str) -> list[str]:
        return [f"openssl req $ec -keyout {name}.key -out {name}.csr -subj {subject}",
                f"openssl x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -out {name}.crt "
                f"-extfile <(echo subjectAltName={san})"]

    def _kubeconfig(self, name: str) -> dict:
        """Self-contained, so that it works in a guest, in a pod and on the host. JSON is YAML."""
        def inline(path: Path) -> str:
            return base64.b64encode(path.read_bytes()).decode()

        cluster = {"server": self.cluster.api_url, "certificate-authority-data": inline(self.ca)}
        user = {"client-certificate-data": inline(self.folder / f"{name}.crt"), "client-key-data": inline(self.folder / f"{name}.key")}
        return {"apiVersion": "v1", "kind": "Config", "current-context": self.cluster.name,
                "clusters": [{"name": self.cluster.name, "cluster": cluster}], "users": [{"name": name, "user": user}],
                "contexts": [{"name": self.cluster.name, "context": {"cluster": self.cluster.name, "user": name}}]}
