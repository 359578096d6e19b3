"""Every countable resource of a node: a real kubelet never has to refuse a pod, and all come on.

The node says that it has some of nine kinds, as device plugins would; jobs whose pods ask for up to
twelve, in containers, init containers, sidecars, as a pod and as overhead of a RuntimeClass, beside
a stranger's pod that is resized. ``RESOURCE_PODS``: how many pods in all.
"""

import os
from collections.abc import Callable, Iterator
from random import Random

import pytest
from tests.api.caller import Caller
from tests.api.tenant import Json, Tenant
from tests.e2e.gpu_jobs import container, template
from tests.e2e.waits import until
from tests.pod_needs import Amounts, need_of

from cluster.credentials import REAL_NODE_NAME

NODE = f"/api/v1/nodes/{REAL_NODE_NAME}"
CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
HAS = {f"example.com/{name}": 2 + number % 4 for number, name in enumerate("abcdefghi")}
UNITS = {"cpu": "50m", "memory": "16Mi", "ephemeral-storage": "1Mi"}  # one of each
KINDS, OF_PODS = (*UNITS, *HAS), ("cpu", "memory")  # the latter may be asked for as a pod
HEAVY, OVERHEAD = "heavy", {"cpu": 2, "memory": 1}
PODS, OF_A_JOB, SEED = int(os.environ.get("RESOURCE_PODS", "6")), 2, 7
REFUSED = ("OutOf", "UnexpectedAdmissionError")
SMALL, LARGE = "100m", "600m"


def written(asked: Amounts) -> dict[str, str]:
    return {kind: _times(amount, UNITS.get(kind, "1")) for kind, amount in asked.items()}


def _times(amount: int, unit: str) -> str:
    digits = unit.rstrip("mMi")
    return f"{amount * int(digits)}{unit.removeprefix(digits)}"


def said(admin: Caller, of: str) -> Json:
    return {kind: admin.get(NODE).body["status"][of].get(kind) for kind in HAS}


@pytest.fixture
def counted(admin: Caller) -> Iterator[None]:
    """The node has these; the kubelet takes them over into what may be allocated."""
    wanted = {kind: str(amount) for kind, amount in HAS.items()}
    assert admin.patch(f"{NODE}/status", {"status": {"capacity": wanted}}).ok
    until(lambda: said(admin, "allocatable") == wanted, "the kubelet offers them")
    yield
    gone = dict.fromkeys(HAS)
    patch = {"status": {"capacity": gone, "allocatable": gone}}
    assert admin.patch(f"{NODE}/status", patch).ok


@pytest.fixture
def heavy(admin: Caller) -> Iterator[None]:
    """A RuntimeClass whose pods need more than their containers."""
    body = {"metadata": {"name": HEAVY}, "handler": "nvidia"}
    assert admin.create(CLASSES, {**body, "overhead": {"podFixed": written(OVERHEAD)}}).ok
    yield
    assert admin.send("DELETE", f"{CLASSES}/{HEAVY}").ok


class Asking:
    """A template with random requests, and what its pod needs by our own count."""

    def __init__(self, random: Random) -> None:
        self._random, pod = random, dict[str, object]()
        sidecars = [random.random() < 0.5 for _ in range(random.choice((0, 0, 1, 2)))]
        inits = [self._container(f"i{n}", sidecar) for n, sidecar in enumerate(sidecars)]
        mains = [self._container(f"c{n}", False) for n in range(random.choice((1, 1, 2)))]
        overhead, level = dict[str, int](), dict[str, int]()
        if random.random() < 0.3:
            overhead, pod["runtimeClassName"] = OVERHEAD, HEAVY
        if random.random() < 0.3:  # never less than its containers ask for together
            asked = [each for _, each in (*inits, *mains)]
            level = {kind: sum(each.get(kind, 0) for each in asked) + 1 for kind in OF_PODS}
            pod["resources"] = {"requests": written(level)}
        self.need = need_of(
            KINDS,
            list(zip([each for _, each in inits], sidecars, strict=True)),
            [each for _, each in mains],
            overhead=overhead,
            level=level,
        )
        if inits:
            pod["initContainers"] = [body for body, _ in inits]
        self.template = template(*(body for body, _ in mains), **pod)
        self.template["spec"]["terminationGracePeriodSeconds"] = 1

    @property
    def never(self) -> list[str]:
        """What the node has too little of, whoever else is there."""
        return [kind for kind, amount in HAS.items() if self.need[kind] > amount]

    def _container(self, name: str, sidecar: bool) -> tuple[Json, Amounts]:
        random = self._random
        kinds = random.sample(KINDS, random.choice((1, 2, 3, len(KINDS))))
        asked = {kind: random.choice((0, 1, 1, 2)) for kind in kinds}
        texts = written(asked)
        limits = {kind: text for kind, text in texts.items() if kind in HAS}
        more = {"restartPolicy": "Always"} if sidecar else {}
        script = "exec sleep 600" if sidecar else "sleep 0.1"
        resources = {"requests": texts, "limits": limits}
        return container(script, name, resources=resources, **more), asked


class Stranger:
    """A pod of nobody's job on the node, which is resized."""

    def __init__(self, tenant: Tenant) -> None:
        self._admin, self._pods = tenant.admin, f"/api/v1/namespaces/{tenant.name}/pods"
        self._path = f"{self._pods}/stranger"
        self.create("stranger", {"requests": {"cpu": SMALL}})

    def create(self, name: str, resources: Json) -> None:
        """One that goes to the node, whatever it has."""
        spec = {
            "nodeName": REAL_NODE_NAME,
            "terminationGracePeriodSeconds": 1,
            "containers": [container("exec sleep 3600", resources=resources)],
            "restartPolicy": "Never",
        }
        assert self._admin.create(self._pods, {"metadata": {"name": name}, "spec": spec}).ok

    def resize(self, cpu: str) -> None:
        """Until the kubelet has done it."""
        self._until(lambda status: bool(status["phase"] == "Running"))
        asked = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
        assert self._admin.patch(f"{self._path}/resize", {"spec": {"containers": [asked]}}).ok
        self._until(lambda status: _has(status) == cpu)

    def _until(self, condition: Callable[[Json], bool]) -> None:
        until(lambda: condition(self._admin.get(self._path).body["status"]), "the stranger is so")


def _has(status: Json) -> str:
    (found,) = status["containerStatuses"]
    return str(found.get("allocatedResources", {}).get("cpu"))


def refused(tenant: Tenant) -> list[str]:
    """What the kubelet said of pods that it did not take."""
    found = tenant.admin.get(f"/api/v1/namespaces/{tenant.name}/events").body["items"]
    return [f"{e['reason']}: {e['message']}" for e in found if e["reason"].startswith(REFUSED)]


def test_the_kubelet_refuses_none_of_the_pods_that_ask_for_what_it_counts(
    tenant: Tenant, counted: None, heavy: None
) -> None:
    random, stranger = Random(SEED), Stranger(tenant)
    jobs = {f"job-{number}": Asking(random) for number in range(PODS // OF_A_JOB)}
    while len(able := [name for name in jobs if not jobs[name].never]) * OF_A_JOB < PODS:
        jobs[f"job-{len(jobs)}"] = Asking(random)
    names = list(jobs)
    half = len(names) // 2
    for cpu, part in ((LARGE, names[:half]), (SMALL, names[half:])):
        stranger.resize(cpu)
        for name in part:
            spec = {"gpu": 0.05, "parallelism": OF_A_JOB, "completions": OF_A_JOB, "retries": 0}
            tenant.submit(name, template=jobs[name].template, **spec)
        for name in part:
            if name in able:
                tenant.wait_phase(name, "Succeeded")
            else:
                tenant.wait_reason(name, "Unsatisfiable")
                said_of_it = tenant.status(name)["message"]
                assert any(kind in said_of_it for kind in jobs[name].never), said_of_it
    assert refused(tenant) == []
    pods = [pod["status"] for name in able for pod in tenant.pods(name)]
    assert [status["phase"] for status in pods] == ["Succeeded"] * len(able) * OF_A_JOB, pods
    # And a refusal would have been seen.
    kind, amount = next(iter(HAS.items()))
    asked = {kind: str(amount + 1)}
    stranger.create("too-much", {"requests": asked, "limits": asked})
    until(lambda: refused(tenant), "the kubelet refuses what it cannot give")
