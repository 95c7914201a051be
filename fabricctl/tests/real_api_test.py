#!/usr/bin/env python3
"""fabricctl against a real kube-apiserver with the real CRDs: test/controlplane/run THIS FABRICCTL

Nothing runs behind the objects: the test says what operator and agents would write.
"""

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
FABRICCTL = str(pathlib.Path(sys.argv.pop(1)).resolve())
OURS = "submariner-operator"
BROKER = "submariner-k8s-broker"
DONE, NOT_DONE, FAILED = 0, 1, 2
LIMIT_SECONDS = 60


def kubectl(*argv, stdin=None, env=None):
    done = subprocess.run([str(TOOLS / "kubectl"), *argv], input=stdin, capture_output=True, text=True, timeout=LIMIT_SECONDS, env=env)
    if done.returncode != 0:
        raise AssertionError(f"kubectl {argv}: {done.stderr}")
    return done


def get(kind, name, namespace):
    return json.loads(kubectl("get", kind, name, "-n", namespace, "-o", "json").stdout)


def apply(*objects):
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin="\n---\n".join(json.dumps(o) for o in objects))


def fabricctl(*argv):
    return subprocess.run([FABRICCTL, *argv], capture_output=True, text=True, timeout=LIMIT_SECONDS)


def set_status(kind, name, namespace, status):
    kubectl("patch", kind, name, "-n", namespace, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))


def fabric(name, **spec):
    return {"apiVersion": "operator.tkestack.io/v1alpha1", "kind": "Fabric", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def ready(generation=1):
    return {"observedGeneration": generation, "conditions": [
        {"type": "Ready", "status": "True", "reason": "Ready", "message": "everything is in place", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}


def gateway(*generations):
    """As the gateway agent writes it; later generations are drawn later."""
    held = [{"generation": g, "drawnAt": f"2026-01-01T00:0{i}:00Z", "reason": "requested", "pskIDs": ["1:0123456789abcdef"]} for i, g in enumerate(generations)]
    return {"apiVersion": "submariner.io/v1", "kind": "Gateway", "metadata": {"name": "n1", "namespace": OURS}, "status": {
        "version": "0.1.0", "haStatus": "active", "statusFailure": "", "connections": [],
        "localEndpoint": {"cluster_id": "east", "cable_name": "c", "private_ip": "192.0.2.11"},
        "keys": {"instance": "00", "generations": held, "rekeys": 1, "rejected": []}}}


class Fabricctl(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for manifest in ("fabric.yaml", "submariner.yaml"):
            kubectl("apply", "--server-side", "-f", str(TOP / "crd" / manifest))
        for kind in ("fabrics.operator.tkestack.io", "gateways.submariner.io"):
            kubectl("wait", "--for=condition=Established", f"crd/{kind}", f"--timeout={LIMIT_SECONDS}s")
        for namespace in (OURS, BROKER):
            kubectl("create", "namespace", namespace)

    def check(self, done, code, *texts):
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        for text in texts:
            self.assertIn(text, done.stdout + done.stderr)
        return done

    def follow(self, process, text):
        """Reads lines until one holds the text."""
        deadline = time.monotonic() + LIMIT_SECONDS
        for line in process.stdout:
            if text in line:
                return
            self.assertLess(time.monotonic(), deadline)
        self.fail(f"the command ended ({process.wait()}) without saying '{text}'")

    def test_status(self):
        apply(fabric("join", joinConfig={"clusterID": "east"}))
        self.addCleanup(kubectl, "delete", "fabric", "join", "-n", "default")
        self.check(fabricctl("status"), NOT_DONE, "Fabric default/join (member): not Ready")
        set_status("fabric", "join", "default", {**ready(), "clusterID": "east", "brokerURL": "https://192.0.2.1:6443"})
        apply(gateway("g1"))
        self.check(fabricctl("status"), DONE, "Fabric default/join (member): Ready", "192.0.2.11", "g1")
        document = json.loads(self.check(fabricctl("status", "-o", "json"), DONE).stdout)
        self.assertTrue(document["ready"])
        self.assertEqual(document["gateways"][0]["status"]["keys"]["generations"][0]["generation"], "g1")
        self.check(fabricctl("status", "--context", "nowhere"), FAILED, "nowhere")
        self.check(fabricctl("status", "--nonsense"), FAILED, "--nonsense")

    def test_rekey_waits_for_the_agent(self):
        apply(gateway("g1"))
        self.check(fabricctl("rekey"), FAILED, "--all", "n1")
        command = subprocess.Popen([FABRICCTL, "rekey", "--gateway", "n1", "--wait", f"--timeout={LIMIT_SECONDS}s"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(command.stdout.close)
        self.addCleanup(command.kill)
        self.follow(command, "asked for new keys")
        self.assertIn("fabric.tkestack.io/rekey", get("gateway", "n1", OURS)["metadata"]["annotations"])
        apply(gateway("g1", "g2"))
        self.follow(command, "generation g2")
        apply(gateway("g2"))
        self.follow(command, "the older keys are gone")
        self.assertEqual(command.wait(LIMIT_SECONDS), DONE)

    def test_rotate_psk(self):
        apply(fabric("hub", brokerConfig={}))
        self.addCleanup(kubectl, "delete", "fabric", "hub", "-n", "default")
        set_status("fabric", "hub", "default", {**ready(), "pskRotation": {"number": 1, "phase": "Done", "membersReady": 0, "membersTotal": 0}})
        self.check(fabricctl("rotate-psk"), DONE, "PSK 2 replaces PSK 1")
        self.assertEqual(get("fabric", "hub", "default")["spec"]["brokerConfig"]["pskNumber"], 2)
        self.check(fabricctl("rotate-psk"), NOT_DONE, "refused")
        set_status("fabric", "hub", "default", {"pskRotation": {"number": 2, "phase": "Rotating", "membersReady": 1, "membersTotal": 2, "waitingFor": ["west"]}})
        self.check(fabricctl("rotate-psk", "--status"), NOT_DONE, "waiting for west")
        set_status("fabric", "hub", "default", {"pskRotation": {"number": 2, "phase": "Done", "membersReady": 2, "membersTotal": 2, "waitingFor": []}})
        self.check(fabricctl("rotate-psk", "--status"), DONE, "PSK 2 is current")

    def test_broker_info_can_be_applied(self):
        self.check(fabricctl("broker-info"), FAILED, "submariner-broker-info")
        seed = (TOP / "broker/tests/data/seed_broker_info.txt").read_text().strip()
        stored = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "submariner-broker-info", "namespace": BROKER}, "data": {"brokerInfo": seed}}
        apply(stored)
        printed = self.check(fabricctl("broker-info"), DONE, "SECRETS").stdout
        kubectl("delete", "configmap", "submariner-broker-info", "-n", BROKER)
        kubectl("apply", "-f", "-", stdin=printed)
        self.assertEqual(get("configmap", "submariner-broker-info", BROKER)["data"], stored["data"])

    def test_is_a_plugin_of_kubectl(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "kubectl-fabric").symlink_to(FABRICCTL)
            done = kubectl("fabric", "version", env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
        self.assertRegex(done.stdout, r"^fabricctl \d+\.\d+")


if __name__ == "__main__":
    unittest.main()
