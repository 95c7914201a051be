#!/usr/bin/env python3
"""The operator against a real kube-apiserver, with no more rights than its chart gives: test/controlplane/run THIS OPERATOR

One API server is the broker and the member at once. kube-controller-manager fills token Secrets in and runs no pods, so the
test acknowledges the uninstall as the agents would.
"""

import base64
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
TOOLS = pathlib.Path(os.environ["FABRIC_TOOLS"])
ADMIN = pathlib.Path(os.environ["KUBECONFIG"])
OPERATOR = sys.argv.pop(1)
OURS = "submariner-operator"
BROKER = "submariner-k8s-broker"
LIMIT_SECONDS = 30


def run(*argv, stdin=None, check=True):
    done = subprocess.run([str(a) for a in argv], input=stdin, capture_output=True, text=True, timeout=60)
    if check and done.returncode != 0:
        raise AssertionError(f"{argv[1:]}: {done.stderr}")
    return done


def kubectl(*argv, stdin=None, check=True, config=ADMIN):
    return run(TOOLS / "kubectl", f"--kubeconfig={config}", *argv, stdin=stdin, check=check)


def get(*argv):
    """The object, or None when there is none."""
    done = kubectl("get", *argv, "-o", "json", "--ignore-not-found")
    return json.loads(done.stdout) if done.stdout else None


def names(kind, namespace):
    return [item["metadata"]["name"] for item in (get(kind, "-n", namespace) or {}).get("items", [])]


def apply(*objects):
    kubectl("apply", "-f", "-", stdin="\n---\n".join(json.dumps(o) for o in objects))


def fabric(name, **spec):
    return {"apiVersion": "operator.tkestack.io/v1alpha1", "kind": "Fabric", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def eventually(probe, what):
    deadline = time.monotonic() + LIMIT_SECONDS
    while True:
        found = probe()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {LIMIT_SECONDS} s")
        time.sleep(0.1)


def condition(name, kind):
    status = (get("fabric", name) or {}).get("status", {})
    return next((c for c in status.get("conditions", []) if c["type"] == kind), {})


def wait_condition(name, kind, status, text=""):
    try:
        return eventually(lambda: (c := condition(name, kind)).get("status") == status and text in c.get("message", "") and c, f"{name}: {kind}={status} {text}")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{json.dumps((get('fabric', name) or {}).get('status'), indent=1)}") from error


class Account:
    """kubectl as somebody who holds a token."""

    def __init__(self, folder, name, token):
        config = json.loads(ADMIN.read_text())
        config["users"] = [{"name": "admin", "user": {"token": token}}]
        self.config = folder / name
        self.config.write_text(json.dumps(config))

    def may(self, *argv, stdin=None):
        return kubectl("-n", BROKER, *argv, stdin=stdin, check=False, config=self.config)


class RealApi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        cls.folder = pathlib.Path(cls.stack.enter_context(tempfile.TemporaryDirectory()))
        pki = ADMIN.parent
        cls.spawn("kcm", TOOLS / "kube-controller-manager", f"--kubeconfig={ADMIN}", f"--service-account-private-key-file={pki}/sa.key",
                  f"--root-ca-file={pki}/ca.crt", "--use-service-account-credentials", "--leader-elect=false", "--secure-port=0",
                  "--controllers=serviceaccount-token-controller,daemonset-controller")
        kubectl("create", "namespace", OURS)
        kubectl("apply", "--server-side", "-f", TOP / "crd/fabric.yaml")
        kubectl("apply", "-f", "-", stdin=run(TOOLS / "helm", "template", "fabric", TOP / "charts/fabric-operator", "-n", OURS).stdout)
        kubectl("create", "-f", "-", stdin=json.dumps({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"kubernetes.io/os": "linux"}},
            "spec": {"podCIDRs": ["10.1.0.0/24"], "podCIDR": "10.1.0.0/24"}}))
        kubectl("patch", "node", "n1", "--subresource=status", "--type=merge", "-p", json.dumps(
            {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Test", "message": "ready"}]}}))
        token = kubectl("create", "token", "fabric-operator", "-n", OURS).stdout.strip()
        cls.account = Account(cls.folder, "operator", token)
        cls.start_operator("first")
        cls.server = json.loads(ADMIN.read_text())["clusters"][0]["cluster"]["server"]

    @classmethod
    def spawn(cls, name, *argv):
        log = cls.stack.enter_context(open(cls.folder / f"{name}.log", "w", encoding="utf-8"))
        process = subprocess.Popen([str(a) for a in argv], stdout=log, stderr=log)
        cls.stack.callback(process.wait)
        cls.stack.callback(process.kill)
        return process

    @classmethod
    def start_operator(cls, identity):
        cls.operator = cls.spawn(identity, OPERATOR, f"--kubeconfig={cls.account.config}", f"--identity={identity}", "--agent-image=fabric/fabric:test",
                                 "--listen-address=127.0.0.1", "--metrics-port=0", "--probe-port=0")

    def log_of(self, identity):
        return (self.folder / f"{identity}.log").read_text(encoding="utf-8")

    def token_of(self, secret):
        return base64.b64decode(get("secret", secret, "-n", BROKER)["data"]["token"]).decode()

    def assert_denied(self, done, text):
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn(text, done.stderr)

    def test_0_the_definition_takes_the_samples_and_names_what_is_bad(self):
        for sample in sorted((TOP / "crd/samples").glob("*.yaml")):
            kubectl("apply", "--dry-run=server", "-f", sample)
        bad = {
            ("joinConfig", "rekeyPackets", 999): "spec.joinConfig.rekeyPackets: Invalid value: 999",
            ("joinConfig", "rekeyBytes", 2**50 + 1): "spec.joinConfig.rekeyBytes: Invalid value",
            ("joinConfig", "cipherSuites", ("des",)): "cipherSuites item des is no known cipher suite: use aes-256-gcm or chacha20-poly1305",
            ("joinConfig", "cipherSuites", ("aes-256-gcm", "aes-256-gcm")): "names a cipher suite twice",
            ("joinConfig", "cipherSuites", ()): "spec.joinConfig.cipherSuites",
            ("brokerConfig", "pskNumber", 0): "spec.brokerConfig.pskNumber: Invalid value: 0",
            ("brokerConfig", "pskNumber", 2**32): "spec.brokerConfig.pskNumber: Invalid value",
        }
        for (block, field, value), says in bad.items():
            with self.subTest(field=field, value=value):
                spec = {block: {field: list(value) if isinstance(value, tuple) else value} | ({"clusterID": "a"} if block == "joinConfig" else {})}
                self.assert_denied(kubectl("apply", "--dry-run=server", "-f", "-", stdin=json.dumps(fabric("bad", **spec)), check=False), says)
        good = {"clusterID": "a", "rekeyPackets": 1000, "rekeyBytes": 2**20, "cipherSuites": ["chacha20-poly1305", "aes-256-gcm"]}
        kubectl("apply", "--dry-run=server", "-f", "-", stdin=json.dumps(fabric("good", joinConfig=good)))

    def test_1_broker_and_join_with_the_rights_of_the_chart(self):
        apply(fabric("broker", brokerConfig={"publicAPIServerURL": self.server}))
        wait_condition("broker", "Ready", "True")
        psk = get("secret", "submariner-ipsec-psk", "-n", BROKER)
        info = get("configmap", "submariner-broker-info", "-n", BROKER)
        copy = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "copied-info", "namespace": BROKER}, "data": {"brokerInfo": "%%%"}}
        apply(copy, fabric("join", joinConfig={"clusterID": "a", "brokerInfoConfigMap": {"name": "copied-info"}}))
        wait_condition("join", "BrokerInfoRead", "False", "ConfigMap submariner-k8s-broker/copied-info: brokerInfo is not base64")
        self.assertEqual(condition("join", "Stalled").get("status"), "True")
        copy["data"] = info["data"]
        apply(copy)  # mends itself: nothing else is touched
        wait_condition("join", "Joined", "True")
        for name in ("submariner-gateway", "submariner-routeagent"):
            eventually(lambda name=name: get("daemonset", name, "-n", OURS), name)
        self.assertEqual(get("node", "n1")["metadata"]["labels"].get("submariner.io/gateway"), "true")
        self.assertEqual(get("secret", "submariner-ipsec-psk", "-n", BROKER)["metadata"]["resourceVersion"], psk["metadata"]["resourceVersion"])
        eventually(lambda: get("fabric", "broker")["status"].get("joinedClusters") == ["a"], "the broker lists its member")

    def test_2_whoever_holds_broker_info_may_only_ask(self):
        asker = Account(self.folder, "asker", self.token_of("submariner-k8s-broker-client-token"))
        self.assert_denied(asker.may("get", "secrets"), "forbidden")
        self.assert_denied(asker.may("get", "configmaps"), "forbidden")
        self.assert_denied(asker.may("get", "configmap", "submariner-broker-info"), "forbidden")
        self.assertEqual(asker.may("get", "configmap", "fabric-member-a").returncode, 0)
        self.assert_denied(asker.may("get", "clusters.submariner.io"), "forbidden")
        self.assert_denied(asker.may("create", "configmap", "fabric-member-b"), "may create only ConfigMaps fabric-join-")
        self.assertEqual(asker.may("create", "configmap", "fabric-join-b", "--dry-run=server").returncode, 0)

    def test_3_a_member_writes_only_its_own_records(self):
        member = Account(self.folder, "member", self.token_of("cluster-a-token"))
        record = lambda kind, name, cluster, **spec: json.dumps({
            "apiVersion": "submariner.io/v1", "kind": kind, "metadata": {"name": name}, "spec": {"cluster_id": cluster, **spec}})
        cluster = {"color_codes": ["blue"], "service_cidr": [], "cluster_cidr": [], "global_cidr": []}
        endpoint = {"cable_name": "x", "hostname": "x", "subnets": [], "private_ip": "192.0.2.1", "public_ip": "", "nat_enabled": False, "backend": "xfrm"}
        denied = "ValidatingAdmissionPolicy 'fabric-member-writes-own-records'"
        self.assert_denied(member.may("create", "-f", "-", stdin=record("Cluster", "b", "b", **cluster)), denied)
        self.assert_denied(member.may("create", "-f", "-", stdin=record("Cluster", "b", "a", **cluster)), denied)
        self.assert_denied(member.may("create", "-f", "-", stdin=record("Endpoint", "b-submariner-cable-b-1", "b", **endpoint)), denied)
        self.assertEqual(member.may("create", "-f", "-", stdin=record("Endpoint", "a-submariner-cable-a-192-0-2-1", "a", **endpoint)).returncode, 0)
        kubectl("create", "-n", BROKER, "-f", "-", stdin=record("Cluster", "b", "b", **cluster))
        self.assert_denied(member.may("delete", "clusters.submariner.io", "b"), denied)
        self.assert_denied(member.may("patch", "clusters.submariner.io", "b", "--type=merge", "-p", '{"spec":{"cluster_id":"a"}}'), denied)
        self.assert_denied(member.may("get", "secrets"), "forbidden")
        self.assert_denied(member.may("get", "configmap", "submariner-broker-info"), "forbidden")
        kubectl("delete", "-n", BROKER, "clusters.submariner.io", "b")
        own = ("get", "configmaps", "--field-selector=metadata.name=fabric-member-a")
        self.assertIn("fabric-member-a", member.may(*own).stdout)
        self.assertEqual(member.may(*own, "--watch", "--request-timeout=1s").stderr.count("forbidden"), 0)
        self.assert_denied(member.may("get", "configmaps"), "forbidden")
        self.assert_denied(member.may("get", "configmap", "fabric-member-b"), "forbidden")
        self.assert_denied(member.may("patch", "configmap", "fabric-member-a", "--type=merge", "-p", '{"data":{"pskNumber":"9"}}'), "forbidden")

    def test_3b_the_psk_rotates_when_nobody_alive_needs_the_old_one(self):
        psk = lambda namespace: get("secret", "submariner-ipsec-psk", "-n", namespace)["data"]
        ask = lambda number: kubectl("patch", "fabric", "broker", "--type=merge", "-p", json.dumps({"spec": {"brokerConfig": {"pskNumber": number}}}), check=False)
        old = psk(BROKER)["psk"]
        pods = get("daemonset", "submariner-gateway", "-n", OURS)["metadata"]["generation"]
        eventually(lambda: get("fabric", "broker")["status"].get("pskRotation", {}).get("phase") == "Done", "the status says so")
        for number in (3, 100):
            self.assert_denied(ask(number), "spec.brokerConfig.pskNumber does not follow the current PSK")
        self.assertEqual(ask(2).returncode, 0)
        # The Endpoint of the test before has no records that anybody could verify: it may be alive.
        wait_condition("broker", "PSKRotated", "False", "waiting for 'a' (Endpoint a-submariner-cable-a-192-0-2-1: has no key records that can be read)")
        self.assertEqual(psk(BROKER)["previous"], old)
        eventually(lambda: psk(OURS) == psk(BROKER), "the member has both")
        self.assertEqual(get("fabric", "broker")["status"]["pskRotation"]["waitingFor"], ["a"])
        for number in (1, 3):
            self.assert_denied(ask(number), "spec.brokerConfig.pskNumber does not follow the current PSK")
        self.assertRegex(kubectl("get", "fabric", "broker", "-o", "wide").stdout, r"2\s+Rotating")
        kubectl("delete", "-n", BROKER, "endpoints.submariner.io", "a-submariner-cable-a-192-0-2-1")
        wait_condition("broker", "PSKRotated", "True", "PSK 2 is the only valid one")
        eventually(lambda: psk(OURS) == psk(BROKER), "the member has the new one only")
        self.assertEqual(set(psk(BROKER)), {"psk", "number"})
        self.assertNotEqual(psk(BROKER)["psk"], old)
        wait_condition("join", "PSKCurrent", "True", "PSK 2 is the only valid one")
        self.assertEqual(get("daemonset", "submariner-gateway", "-n", OURS)["metadata"]["generation"], pods)

    def test_4_a_restart_changes_nothing(self):
        objects = ("daemonset/submariner-gateway", "secret/submariner-ipsec-psk", "secret/fabric-identity", "secret/submariner-broker-secret")
        versions = lambda: [get(o, "-n", OURS)["metadata"]["generation" if o.startswith("daemonset") else "resourceVersion"] for o in objects]
        before = versions()
        self.operator.terminate()
        self.operator.wait(timeout=10)
        self.start_operator("second")
        eventually(lambda: "stores are in sync" in self.log_of("second"), "the second operator works")
        apply(fabric("join", joinConfig={"clusterID": "a", "brokerInfoConfigMap": {"name": "copied-info"}, "ikePort": 501}))
        eventually(lambda: condition("join", "Joined").get("observedGeneration") == get("fabric", "join")["metadata"]["generation"], "the change is seen")
        self.assertEqual(versions(), before)

    def test_5_deleting_the_fabrics_leaves_nothing(self):
        kubectl("delete", "fabric", "join", "--wait=false")
        generation = str(eventually(lambda: (f := get("fabric", "join"))["metadata"].get("deletionTimestamp") and f["metadata"]["generation"], "deletion"))
        acknowledged = lambda kind, component, **status: {
            "apiVersion": "submariner.io/v1", "kind": kind, "status": status,
            "metadata": {"name": "n1", "namespace": OURS, "annotations": {"fabric.tkestack.io/cleaned": f"{component}@{generation}"}}}
        wait_condition("join", "Uninstalled", "False", "submariner-routeagent has cleaned node n1")
        apply(acknowledged("RouteAgent", "submariner-routeagent", version="test"))
        wait_condition("join", "Uninstalled", "False", "submariner-gateway has cleaned node n1")
        apply(acknowledged("Gateway", "submariner-gateway", version="test", haStatus="active", statusFailure="", connections=[], localEndpoint={
            "cluster_id": "a", "cable_name": "x", "hostname": "n1", "subnets": [], "private_ip": "192.0.2.1", "public_ip": "",
            "nat_enabled": False, "backend": "xfrm"}))
        eventually(lambda: get("fabric", "join") is None, "the Fabric goes")
        self.assertNotIn("submariner.io/gateway", get("node", "n1")["metadata"]["labels"])
        for kind in ("daemonsets", "secrets", "clusters.submariner.io", "endpoints.submariner.io", "gateways.submariner.io", "routeagents.submariner.io"):
            self.assertEqual(names(kind, OURS), [], kind)
        eventually(lambda: get("serviceaccount", "cluster-a", "-n", BROKER) is None, "the member's account goes")
        for kind in ("clusters.submariner.io", "endpoints.submariner.io"):
            self.assertEqual(names(kind, BROKER), [], kind)
        kubectl("delete", "fabric", "broker", f"--timeout={LIMIT_SECONDS}s")
        self.assertEqual(names("secrets", BROKER), [])
        self.assertIsNone(get("validatingadmissionpolicy", "fabric-member-writes-own-records"))
        self.assertNotIn("forbidden", self.log_of("first") + self.log_of("second"))


if __name__ == "__main__":
    unittest.main(verbosity=2, failfast=True)
