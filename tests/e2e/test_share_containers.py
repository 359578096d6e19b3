"""A pod with several GPU containers, a sidecar, and a container that somebody else puts in."""

import json
import re
from collections.abc import Iterator

import pytest
from tests.api.tenant import Json, Tenant
from tests.e2e.cuda_jobs import WATCHER, python
from tests.e2e.gpu_jobs import container, devices_there, environment
from tests.e2e.share_workloads import Workload, assert_capped, cap_mib, devices, team
from tests.e2e.test_agent import GPUNODE
from tests.e2e.waits import until

from cluster import Running, images
from gpu_scheduler.api.names import RESOURCE_MIB, RESOURCE_MILLI

ASKED = {
    "train": ({RESOURCE_MILLI: 600}, cap_mib(600)),
    "encode": ({RESOURCE_MILLI: 500}, cap_mib(500)),
    "rank": ({RESOURCE_MIB: 4096}, 4096),
}
"""Limits, and the cap that follows, by container; the first two do not fit on one device."""

MESH = """
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {{name: {name}}}
spec:
  failurePolicy: Fail
  reinvocationPolicy: IfNeeded
  matchConstraints:
    namespaceSelector:
      matchLabels: {{kubernetes.io/metadata.name: {namespace}}}
    resourceRules:
      - {{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}}
  matchConditions:
    - {{name: once, expression: "!object.spec.containers.exists(c, c.name == 'proxy')"}}
  mutations:
    - patchType: JSONPatch
      jsonPatch:
        expression: >-
          [JSONPatch{{op: "add", path: "/spec/containers/0", value: dyn({{"name": dyn("proxy"),
          "image": dyn("{image}"), "command": dyn(["sleep", "600"])}})}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {{name: {name}}}
spec: {{policyName: {name}}}
"""


@pytest.fixture
def owner(operated: Running) -> Iterator[Tenant]:
    with team(operated, quota=2) as made:
        yield made


@pytest.fixture
def mesh(operated: Running, owner: Tenant) -> Iterator[None]:
    """A policy of somebody else's puts a proxy in front, before or after ours."""
    words = {"name": f"mesh-{owner.name}", "namespace": owner.name, "image": images.QUICKSTART}
    manifest = MESH.format(**words)
    operated.kubectl("apply", "-f", "-", input=manifest)
    path = f"/api/v1/namespaces/{owner.name}/pods?dryRun=All"
    body = {"metadata": {"name": "probe"}, "spec": {"containers": [container()]}}
    try:
        until(lambda: "proxy" in str(owner.admin.create(path, body).body), "it is in force")
        yield
    finally:
        operated.kubectl("delete", "-f", "-", input=manifest)


def template() -> Json:
    """A pod template as its user writes it, with a sidecar behind the containers that ask."""
    made = python(WATCHER)
    (main,) = made["spec"]["containers"]
    those = [
        {**main, "name": name, "resources": {"limits": limits}}
        for name, (limits, _) in ASKED.items()
    ]
    made["spec"]["containers"] = [*those, container("sleep 600", "logs")]
    return made


def number(pod: Json, name: str) -> int:
    """Which container of the ledger this is: by the annotation that its environment names."""
    (container,) = [each for each in pod["spec"]["containers"] if each["name"] == name]
    (told,) = [each for each in container["env"] if each["name"] == "NVIDIA_VISIBLE_DEVICES"]
    found = re.search("/c([0-9]+)-devices", told["valueFrom"]["fieldRef"]["fieldPath"])
    assert found is not None, told
    return int(found[1])


@pytest.mark.usefixtures("mesh")
def test_each_container_has_its_own_device_and_cap_and_sidecars_have_none(
    operated: Running, owner: Tenant
) -> None:
    server = Workload(owner, "several").create(template(), replicas=1)
    (pod,) = server.wait_running(1)
    names = [each["name"] for each in pod["spec"]["containers"]]
    assert names == ["proxy", *ASKED, "logs"]
    numbers = {name: number(pod, name) for name in ASKED}
    device = {allocated.container: allocated.device for allocated in devices(pod)}
    assert device.keys() == set(numbers.values())
    assert device[numbers["train"]] != device[numbers["encode"]]
    for name, (_, mib) in ASKED.items():
        assert_capped(operated, pod, device[numbers[name]], mib, container=name)
    for name in ("proxy", "logs"):
        assert devices_there(operated, pod, container=name) == (set(), set())
        inside = environment(operated, pod, container=name)
        assert inside["NVIDIA_VISIBLE_DEVICES"] == "void"
        assert "GPU_MEMORY_LIMIT_MIB" not in inside

    def known() -> dict[int, str]:
        """What the agent says of the pod's containers, by their numbers."""
        found = owner.admin.get(GPUNODE).body["status"].get("containers", ())
        own = [each for each in found if each["uid"] == pod["metadata"]["uid"]]
        return {each["container"]: each["isolation"] for each in own}

    until(
        lambda: known() == dict.fromkeys(numbers.values(), "interposer"),
        lambda: f"the agent sees the library in each: {json.dumps(known())}",
    )
