"""A small Kubernetes client over one control plane: raw API calls for fast polling, kubectl for the rest."""

from __future__ import annotations

import base64
import http.client
import json
import shlex
import ssl
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .command import Argv, Result, run, wait_for, words
from .errors import LabError
from .netns import Namespace


class ApiError(LabError):
    """An answer of the API server other than 2xx; `status` is the HTTP code."""

    def __init__(self, status: int, what: str) -> None:
        super().__init__(what)
        self.status = status


class Kube:
    """Talks to one API server as its administrator (or whoever `kubeconfig` says), or by the raw API as the owner of a token."""

    def __init__(self, namespace: Namespace, kubeconfig: Path, tools: Path, token: str = "") -> None:
        self.namespace = namespace
        self.kubeconfig = kubeconfig
        self.tools = tools
        self._token = token
        self._local = threading.local()

    def as_owner_of(self, token: str) -> Kube:
        """The same API server seen by somebody else; kubectl and helm stay the administrator's."""
        return Kube(self.namespace, self.kubeconfig, self.tools, token)

    # --- raw API ---

    def _connection(self) -> http.client.HTTPSConnection:
        if not hasattr(self._local, "connection"):
            config = json.loads(self.kubeconfig.read_text())
            cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
            context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
            stem = self.kubeconfig.with_suffix("")
            context.load_cert_chain(f"{stem}.crt", f"{stem}.key") if "client-certificate-data" in user and not self._token else None
            host, port = cluster["server"].removeprefix("https://").rsplit(":", 1)
            connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=30)
            with self.namespace.entered():
                connection.connect()
            connection.auto_open = False  # a new socket would be opened outside the namespace
            self._local.connection = connection
        return self._local.connection

    def api(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """One request; returns the decoded answer (text if it is not JSON). ApiError unless 2xx."""
        used_before = hasattr(self._local, "connection")
        try:
            answer, text = self._request(method, path, body, content_type)
        except LabError:
            # The server may have closed an idle connection. A POST could have been carried out; the others may be repeated.
            if not used_before or method == "POST":
                raise
            answer, text = self._request(method, path, body, content_type)
        if not 200 <= answer.status < 300:
            raise ApiError(answer.status, f"{method} {path}: {answer.status} {text[:1000]}")
        return json.loads(text) if "json" in answer.headers.get("Content-Type", "") else text

    def _request(self, method: str, path: str, body: Any, content_type: str) -> tuple[http.client.HTTPResponse, str]:
        try:
            connection = self._connection()
            headers = {"Content-Type": content_type, "Accept": "application/json", **({"Authorization": f"Bearer {self._token}"} if self._token else {})}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer, answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            if hasattr(self._local, "connection"):
                self._local.connection.close()
                del self._local.connection
            raise LabError(f"{method} {path}: {error}") from error

    def ready(self) -> bool:
        try:
            return self.api("GET", "/readyz") == "ok"
        except LabError:
            return False

    # --- kubectl ---

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout: float = 120, check: bool = True) -> Result:
        argv = [str(self.tools / "kubectl"), f"--kubeconfig={self.kubeconfig}", *arguments]
        return run(self.namespace.argv(argv), stdin=stdin, timeout=timeout, check=check)

    def helm(self, *arguments: str, timeout: float = 300, check: bool = True) -> Result:
        argv = [str(self.tools / "helm"), f"--kubeconfig={self.kubeconfig}", *arguments]
        return run(self.namespace.argv(argv), timeout=timeout, check=check)

    def apply(self, *objects: dict[str, Any] | str) -> None:
        """Server-side apply of objects, or of YAML text."""
        text = "\n---\n".join(o if isinstance(o, str) else json.dumps(o) for o in objects)
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)

    def get(self, kind: str, name: str, namespace: str = "default") -> dict[str, Any] | None:
        """One object, or None if it does not exist."""
        text = self.kubectl("get", kind, name, "-n", namespace, "-o", "json", "--ignore-not-found").stdout
        return json.loads(text) if text.strip() else None

    def list(self, kind: str, namespace: str | None = None, selector: str = "") -> list[dict[str, Any]]:
        """Objects of one namespace, or of all if it is None."""
        where = ["-A"] if namespace is None else ["-n", namespace]
        return json.loads(self.kubectl("get", kind, *where, "-l", selector, "-o", "json").stdout)["items"]

    def delete(self, kind: str, name: str, namespace: str = "default", wait: bool = True) -> None:
        self.kubectl("delete", kind, name, "-n", namespace, "--ignore-not-found", f"--wait={str(wait).lower()}")

    def pods(self, namespace: str = "default", selector: str = "") -> list[dict[str, Any]]:
        """Pods by the raw API: cheap enough to poll."""
        query = f"?labelSelector={selector.replace('=', '%3D').replace(',', '%2C')}" if selector else ""
        return self.api("GET", f"/api/v1/namespaces/{namespace}/pods{query}")["items"]

    def wait_pods(self, count: int, namespace: str = "default", selector: str = "", timeout: float = 120) -> list[dict[str, Any]]:
        """Waits until exactly `count` live pods match and all of them are Ready."""
        def probe() -> list[dict[str, Any]]:
            live = [p for p in self.pods(namespace, selector) if "deletionTimestamp" not in p["metadata"]]
            good = [p for p in live if pod_is_ready(p)]
            if len(live) == len(good) == count:
                return good
            raise LabError(f"{len(good)} of {len(live)} pods Ready: " + ", ".join(f"{p['metadata']['name']} {why_not_ready(p)}" for p in live if p not in good))
        return wait_for(f"{count} Ready pods {selector or 'in'} {namespace}", probe, timeout)

    def exec(self, pod: str, argv: Argv, namespace: str = "default", container: str = "", stdin: str | None = None,
             timeout: float = 60, check: bool = False) -> Result:
        """Runs a command in a pod (0.3 to 1 s); a string is run by the pod's sh."""
        inner = ["sh", "-c", argv] if isinstance(argv, str) else words(argv)
        options = ["-c", container] if container else []
        result = self.kubectl("exec", *(["-i"] if stdin is not None else []), "-n", namespace, pod, *options, "--", *inner,
                              stdin=stdin, timeout=timeout, check=False)
        named = Result(result.rc, result.stdout, result.stderr, f"in pod {namespace}/{pod}: {argv if isinstance(argv, str) else shlex.join(argv)}")
        return named.check() if check else named

    def logs(self, pod: str, namespace: str = "default", *options: str) -> str:
        return self.kubectl("logs", "-n", namespace, pod, *options).stdout


def condition(item: dict[str, Any], kind: str) -> str:
    """Status of a condition: "True", "False", "Unknown", or "" if the object does not have it."""
    return next((c["status"] for c in item.get("status", {}).get("conditions", []) if c["type"] == kind), "")


def pod_is_ready(pod: dict[str, Any]) -> bool:
    return condition(pod, "Ready") == "True"


def why_not_ready(pod: dict[str, Any]) -> str:
    for status in pod.get("status", {}).get("containerStatuses", []):
        if waiting := status.get("state", {}).get("waiting"):
            return f"{waiting.get('reason')} {waiting.get('message', '')}"[:300]
    return pod.get("status", {}).get("phase", "?")


def pod_ips(pod: dict[str, Any]) -> Sequence[str]:
    """IPv4 first."""
    return sorted((i["ip"] for i in pod["status"].get("podIPs", [])), key=lambda ip: ":" in ip)
