"""One real control plane on the host: etcd, kube-apiserver, kube-controller-manager, kube-scheduler."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

from .command import wait_for
from .errors import Hopeless, LabError
from .kube import ApiError, Kube
from .netns import Namespace
from .pki import Pki
from .processes import Processes
from .spec import ClusterSpec

# kube-apiserver does not exit on SIGTERM while its etcd is gone: etcd goes last.
STOP_ORDER = ["kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"]


class ControlPlane:
    """State below `folder`: pki/, etcd/, log/. Programs are registered as CLUSTER.PROGRAM."""

    def __init__(self, spec: ClusterSpec, namespace: Namespace, folder: Path, processes: Processes, tools: Path) -> None:
        self.spec = spec
        self.namespace = namespace
        self.folder = folder
        self.processes = processes
        self.tools = tools
        self.pki = Pki(folder / "pki", spec)
        self.kube = Kube(namespace, self.pki.kubeconfig("admin"), tools)

    @property
    def _etcd(self) -> int:
        return 2379 + 10 * self.spec.number

    def start(self) -> None:
        """Starts what does not run and waits until the API server is ready; about 3 s alone on the machine."""
        etcd = f"http://127.0.0.1:{self._etcd}"
        self._start("etcd", "--name", self.spec.name, "--data-dir", str(self.folder / "etcd"), "--listen-client-urls", etcd, "--advertise-client-urls", etcd,
                    "--listen-peer-urls", f"http://127.0.0.1:{self._etcd + 1}", "--unsafe-no-fsync", "--log-level", "error")
        self._start("kube-apiserver", *self._api_server_flags(etcd))
        wait_for(f"API server of cluster {self.spec.name} (log: {self.log('kube-apiserver')})", self._api_ready, timeout=90, every=0.1)
        # Before the controller manager runs, or it would hand out pod prefixes in the order of registration.
        for node in self.spec.node_specs():
            self._ensure_node(node)
        self._start("kube-controller-manager", "--kubeconfig", self._config("controller-manager"),
                    "--service-account-private-key-file", self._key("service-accounts.key"), "--root-ca-file", str(self.pki.ca),
                    "--allocate-node-cidrs", "--cluster-cidr", ",".join(self.spec.pods), "--service-cluster-ip-range", ",".join(self.spec.services),
                    "--use-service-account-credentials", "--leader-elect=false", "--secure-port=0",
                    "--cluster-signing-cert-file", str(self.pki.ca), "--cluster-signing-key-file", self._key("ca.key"))
        self._start("kube-scheduler", "--kubeconfig", self._config("scheduler"), "--leader-elect=false", "--secure-port=0")

    def stop(self, grace: float = 3.0) -> None:
        """Stops all four; the state stays, so that `start` brings the cluster back."""
        for program in STOP_ORDER:
            self.processes.stop(f"{self.spec.name}.{program}", grace)

    def forget(self) -> None:
        """Empties etcd of a stopped control plane: the cluster as if it had lost everything."""
        if self.processes.pid(f"{self.spec.name}.etcd"):
            raise LabError(f"etcd of cluster {self.spec.name} runs", "stop the control plane first")
        shutil.rmtree(self.folder / "etcd", ignore_errors=True)

    def snapshot(self, name: str) -> Path:
        """A copy of the data of the running etcd at one instant, as a snapshot of its disk would be; for `restore`."""
        copy = self.folder / "snapshots" / name
        shutil.rmtree(copy, ignore_errors=True)
        etcd = self.processes.pid(f"{self.spec.name}.etcd")
        if etcd:
            os.kill(etcd, signal.SIGSTOP)
        try:
            shutil.copytree(self.folder / "etcd", copy)
        finally:
            if etcd:
                os.kill(etcd, signal.SIGCONT)
        return copy

    def restore(self, copy: Path) -> None:
        """Puts an earlier `snapshot` in the place of a stopped control plane's data. What was written since has never been, and
        versions are given out a second time: the harshest way of restoring, without etcdutl's --bump-revision."""
        self.forget()
        shutil.copytree(copy, self.folder / "etcd")

    def log(self, program: str) -> Path:
        return self.folder / "log" / f"{program}.log"

    def _start(self, program: str, *flags: str) -> None:
        name = f"{self.spec.name}.{program}"
        if not self.processes.pid(name):
            self.processes.start(name, self.namespace.argv([str(self.tools / program), *flags]), self.log(program), cwd=self.folder)

    def _api_ready(self) -> bool:
        if not self.processes.pid(f"{self.spec.name}.kube-apiserver"):
            tail = self.log("kube-apiserver").read_text()[-1500:]
            raise Hopeless(f"kube-apiserver of cluster {self.spec.name} has exited:\n{tail}")
        return self.kube.ready()

    def _config(self, name: str) -> str:
        return str(self.pki.kubeconfig(name))

    def _key(self, name: str) -> str:
        return str(self.pki.folder / name)

    def _api_server_flags(self, etcd: str) -> list[str]:
        spec = self.spec
        return [f"--etcd-servers={etcd}", f"--secure-port={spec.api_port}", "--bind-address=::",
                # kubernetes.default must lead somewhere the nodes can reach.
                f"--advertise-address={spec.gateway_ips[0]}", f"--service-cluster-ip-range={','.join(spec.services)}",
                "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
                f"--service-account-key-file={self._key('service-accounts.key')}", f"--service-account-signing-key-file={self._key('service-accounts.key')}",
                f"--client-ca-file={self.pki.ca}", f"--tls-cert-file={self._key('server.crt')}", f"--tls-private-key-file={self._key('server.key')}",
                "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
                f"--cert-dir={self.folder / 'certs'}", "--kubelet-preferred-address-types=InternalIP",
                f"--kubelet-client-certificate={self._key('admin.crt')}", f"--kubelet-client-key={self._key('admin.key')}"]

    def _ensure_node(self, node) -> None:
        labels = {"kubernetes.io/hostname": node.name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", **self.spec.labels}
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name, "labels": labels},
                "spec": {"podCIDR": node.pod_cidrs[0], "podCIDRs": list(node.pod_cidrs)}}
        try:
            self.kube.api("POST", "/api/v1/nodes", body)
        except ApiError as error:
            if error.status != 409:
                raise
            # The kubelet was first, or the cluster was only stopped: podCIDRs may be set once, to this value.
            self.kube.api("PATCH", f"/api/v1/nodes/{node.name}", {"spec": body["spec"]}, "application/strategic-merge-patch+json")
