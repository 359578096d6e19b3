"""The chart's policy makes of a pod what ``jobs.share`` makes of it, and touches nobody else's."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from random import Random

import msgspec
import pytest
from tests.api.caller import Answer, Caller
from tests.api.conftest import administrator, bare_settings, cluster_of
from tests.api.mutating import mutating
from tests.api.share_pods import generated
from tests.api.tenant import Json, until

from cluster import Running
from gpu_scheduler import __version__
from gpu_scheduler.api.share_keys import KAI_REQUEST, Compat
from gpu_scheduler.jobs.cap import CapImage
from gpu_scheduler.jobs.share import Installation, share
from gpu_scheduler.jobs.share_form import lacks
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.pods.shares import share_of

CHART = Path(__file__).parents[2] / "charts" / "gpu-scheduler"
NAMESPACES = "/api/v1/namespaces"
PODS = f"{NAMESPACES}/default/pods?dryRun=All"
GIVEN = Installation(CapImage(f"gpu-scheduler:{__version__}", "IfNotPresent"))
HONEST, ODD, PLAIN = 1200, 800, 400
POLICIES = "/apis/admissionregistration.k8s.io/v1"
HALF = {"gpu-scheduler.io/gpu": "0.5"}
MILLI = "gpu-scheduler.io/milligpu"


def prepare(running: Running) -> None:
    """The chart as it comes, and classes that the pods name."""
    admin = administrator(running)
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    assert admin.create(classes, {"metadata": {"name": "mine"}, "value": 7}).ok
    for name in ("nvidia", "other"):
        body = {"metadata": {"name": name}, "handler": name}
        assert admin.create("/apis/node.k8s.io/v1/runtimeclasses", body).ok
    for compat in Compat:  # one that opts in, named as what it opts in to
        labels = {"gpu-scheduler.io/compat": str(compat)}
        body = {"metadata": {"name": str(compat), "labels": labels}}
        assert admin.create(NAMESPACES, body).ok
    # What another policy refuses of pods that do not ask is no matter here: see ``test_devices``.
    exempt = f"admission.devices.exemptNamespaces={json.dumps([str(each) for each in Compat])}"
    running.helm("install", "gpu-scheduler", str(CHART), "-n", "default", "--set-json", exempt)
    for namespace in ("default", *Compat):
        until(lambda name=namespace: made(admin, pod(), name).ok, "there is an account")
    in_force(admin)


def in_force(admin: Caller) -> None:
    """Wait until the API server knows the policies."""
    until(lambda: "asked" in str(made(admin, pod(HALF)).body), "pods are made ours")
    until(lambda: not made(admin, pod({"gpu-scheduler.io/gpu": "x"})).ok, "and judged")
    odd = pod(HALF, schedulerName="volcano")
    until(lambda: "remove the field" in made(admin, odd).message, "also those that are not")
    namespace = {"metadata": {"name": "x", "labels": {"gpu-scheduler.io/compat": "x"}}}
    until(lambda: not admin.create(f"{NAMESPACES}?dryRun=All", namespace).ok, "and namespaces")


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with cluster_of(bare_settings("shares")) as made:
        prepare(made)
        yield made


@pytest.fixture
def admin(running: Running) -> Caller:
    return administrator(running)


def pod(notes: Json | None = None, **spec: object) -> Json:
    meta: Json = {"generateName": "p-", "annotations": notes or {}}
    containers = [{"name": "main", "image": "example:1"}]
    return {"metadata": meta, "spec": {"containers": containers, **spec}}


def made(admin: Caller, body: Json, namespace: str = "default") -> Answer:
    """What the API server would make of a pod."""
    return admin.create(f"{NAMESPACES}/{namespace}/pods?dryRun=All", body)


def plain(answer: Answer) -> Json:
    """A pod without what differs from one creation to the next.

    The token of its account comes before our mounts where a policy adds them, and else behind.
    """
    found = deepcopy(answer.body)
    for key in ("uid", "name", "creationTimestamp", "managedFields"):
        found["metadata"].pop(key, None)
    for condition in found["status"].get("conditions", ()):
        condition.pop("lastTransitionTime")
    spec = found["spec"]
    tokens_last(spec, "volumes")
    for container in (*spec.get("initContainers", ()), *spec["containers"]):
        tokens_last(container, "volumeMounts")
    return found


def tokens_last(node: Json, key: str) -> None:
    """The entries of a list with those of tokens, under one name, at its end."""
    tokens = [e for e in node.get(key, ()) if e["name"].startswith("kube-api-access-")]
    others = [e for e in node.get(key, ()) if e not in tokens]
    node[key] = [*others, *({**each, "name": "token"} for each in tokens)]


def expected(body: Json, compat: Compat | None = None) -> Json | list[str] | None:
    """The pod as the function makes it, or what is wrong with it; None: it does not ask."""
    owners = body["metadata"].get("ownerReferences", ())
    found = share(body["metadata"], body["spec"], GIVEN, controlled=bool(owners), compat=compat)
    if found is None:
        return None
    if not isinstance(found[0], dict):
        return [str(each) for each in found]
    return {**body, "metadata": found[0], "spec": found[1]}


def difference(one: object, other: object, path: str = "") -> str:
    """Where two JSON values differ first."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            if found := difference(one.get(key), other.get(key), f"{path}.{key}"):
                return found
        return ""
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return next((d for i, (a, b) in pairs if (d := difference(a, b, f"{path}[{i}]"))), "")
    return "" if one == other else f"{path}: {json.dumps(one)} is not {json.dumps(other)}"


def compare(admin: Caller, body: Json, compat: Compat | None = None) -> str:
    """What the API server and the function see differently; empty = nothing."""
    namespace = compat or "default"
    answer, wanted = made(admin, body, namespace), expected(body, compat)
    if wanted is None:
        return "" if answer.ok else f"refused: {answer.message}"
    if isinstance(wanted, list):
        return "" if not answer.ok else f"taken, and {wanted}"
    if not answer.ok:
        return f"refused: {answer.message}"
    by_function = made(admin, wanted, namespace)
    if not by_function.ok:
        return f"what the function made is refused: {by_function.message}"
    return difference(plain(answer), plain(by_function))


@pytest.mark.parametrize(("odd", "count"), [(False, HONEST), (True, ODD)])
def test_the_policy_does_what_the_function_does(admin: Caller, odd: bool, count: int) -> None:
    random = Random(17)
    refused = 0
    for number in range(count):
        compat = random.choice((None, None, *Compat))
        body = generated(random, odd=odd, compat=compat or "")
        found = compare(admin, body, compat)
        assert not found, f"{number} {compat}: {found}\n{json.dumps(body)}"
        refused += isinstance(expected(body, compat), list)
    assert (refused == 0) is (not odd)


def test_pods_that_do_not_ask_are_as_if_there_were_no_policy(running: Running) -> None:
    admin = administrator(running)
    random = Random(23)
    bodies = [generated(random, odd=True, asks=False) for _ in range(PLAIN)]
    bodies.append(pod({"gpu-fraction": "0.5", "gpu-scheduler.io/priority": "80"}))
    peers = (generated(random, odd=True, compat=random.choice([*Compat])) for _ in range(PLAIN))
    bodies += [body for body in peers if expected(body) is None]
    assert len(bodies) > PLAIN * 1.3, "other schedulers' keys mean nothing where nobody opts in"
    with_policies = [made(admin, body) for body in bodies]
    with without_policies(admin):
        for body, before in zip(bodies, with_policies, strict=True):
            after = made(admin, body)
            assert after.ok is before.ok, before
            if after.ok:
                assert plain(after) == plain(before)


@contextmanager
def without_policies(admin: Caller) -> Iterator[None]:
    """As if they had never been installed."""
    kinds = {
        f"{POLICIES}/{kind}/{name}": f"{POLICIES}/{kind}"
        for kind, name in (
            ("mutatingadmissionpolicybindings", "gpu-scheduler-shares"),
            ("validatingadmissionpolicybindings", "gpu-scheduler-share-requests"),
            ("validatingadmissionpolicybindings", "gpu-scheduler-compat"),
        )
    }
    saved = {path: admin.get(path).body for path in kinds}
    for path in kinds:
        assert admin.send("DELETE", path).ok
    until(lambda: "asked" not in str(made(admin, pod(HALF)).body), "no policy is in force")
    try:
        yield
    finally:
        for path, body in saved.items():
            body["metadata"] = {"name": body["metadata"]["name"]}
            assert admin.create(kinds[path], body).ok
        in_force(admin)


def test_a_pod_that_does_not_ask_is_not_judged_where_others_keys_count(admin: Caller) -> None:
    none = [{"name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": 0}}}]
    for compat in Compat:
        answer = made(admin, pod({"gpu-scheduler.io/type": "odd"}, containers=none), compat)
        assert answer.ok, answer
        assert "asked" not in str(answer.body)


THEIRS: dict[str, tuple[Compat, Json, str]] = {
    "two schedulers": (
        Compat.HAMI,
        pod(
            schedulerName="kai-scheduler",
            containers=[
                {"name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpumem": 9}}}
            ],
        ),
        "spec.schedulerName",
    ),
    "two ways": (
        Compat.KAI,
        pod({"gpu-fraction": "0.5", "gpu-memory": "2000"}),
        "say how much in one place",
    ),
    "no number": (
        Compat.KAI,
        pod({"gpu-fraction": "half"}),
        'metadata.annotations[gpu-fraction]: "half" must be a share',
    ),
    "a quantity": (Compat.KAI, pod({"gpu-memory": "8Gi"}), '[gpu-memory]: "8Gi" must be MiB'),
    "unknown container": (
        Compat.KAI,
        pod({"gpu-fraction": "0.5", "gpu-fraction-container-name": "x"}),
        "[gpu-fraction-container-name]: no container",
    ),
    "memory of an unknown container": (
        Compat.KAI,
        pod({KAI_REQUEST.format("x"): "8Gi"}),
        f"[{KAI_REQUEST.format('x')}]: no container",
    ),
    "memory of a container in words": (
        Compat.KAI,
        pod({KAI_REQUEST.format("main"): "lots"}),
        f'[{KAI_REQUEST.format("main")}]: "lots" must be an amount',
    ),
    "memory in two ways": (
        Compat.KAI,
        pod({KAI_REQUEST.format("main"): "8Gi", "gpu-fraction": "0.5"}),
        "say how much in one place",
    ),
    "per cent": (
        Compat.HAMI,
        pod(
            containers=[
                {
                    "name": "c",
                    "image": "x",
                    "resources": {"limits": {"nvidia.com/gpumem-percentage": 101}},
                }
            ],
        ),
        '[nvidia.com/gpumem-percentage]: "101" must be per cent',
    ),
    "another of the device plugin's": (
        Compat.NVIDIA,
        pod(
            HALF,
            containers=[
                {"name": "c", "image": "x", "resources": {"limits": {"nvidia.com/mig-1g.5gb": 1}}}
            ],
        ),
        "asks the device plugin",
    ),
}


@pytest.mark.parametrize("case", THEIRS)
def test_what_others_keys_cannot_mean_is_refused_with_their_names(admin: Caller, case: str) -> None:
    compat, body, words = THEIRS[case]
    answer = made(admin, body, compat)
    assert not answer.ok
    assert words in answer.message
    assert "Policy 'gpu-scheduler-share-requests'" in answer.message, "not a failure of another"


def labelled(labels: dict[str, str]) -> Json:
    """A pod with labels."""
    body = pod()
    return {**body, "metadata": {**body["metadata"], "labels": labels}}


REFUSED: dict[str, tuple[Json, str]] = {
    "negative": (pod({"gpu-scheduler.io/gpu": "-1"}), "[gpu-scheduler.io/gpu]"),
    "one and a half": (pod({"gpu-scheduler.io/gpu": "1.5"}), "a whole number of GPUs (2)"),
    "text": (pod({"gpu-scheduler.io/gpu": "half"}), '"half" must be a share'),
    "text in a label": (
        labelled({"gpu-scheduler.io/gpu": "half"}),
        'metadata.labels[gpu-scheduler.io/gpu]: "half" must be a share',
    ),
    "odd signs": (pod({"gpu-scheduler.io/gpu": "a=b;c"}), 'gpu-scheduler.io/gpu: "0.5"'),
    "both forms": (
        pod({**HALF, "gpu-scheduler.io/gpu-memory": "1Gi"}),
        "say how much in one place",
    ),
    "unknown container": (
        pod({**HALF, "gpu-scheduler.io/gpu-container": "x"}),
        "[gpu-scheduler.io/gpu-container]: no container",
    ),
    "distinct GPUs of no gang": (
        pod({**HALF, "gpu-scheduler.io/distinct-gpus": "false"}),
        "[gpu-scheduler.io/distinct-gpus]: write true or false",
    ),
    "two hundred containers": (
        pod(HALF, containers=[{"name": f"c{n}", "image": "x"} for n in range(200)]),
        "spec.containers: 200 entries, at most 64",
    ),
    "five thousand variables": (
        pod(
            HALF,
            containers=[
                {"name": "c", "image": "x", "env": [{"name": f"v{n}"} for n in range(5000)]}
            ],
        ),
        "env: 5000 entries",
    ),
    "devices by hand": (
        pod(
            HALF,
            containers=[
                {
                    "name": "c",
                    "image": "x",
                    "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}],
                }
            ],
        ),
        "remove it",
    ),
    "another scheduler": (pod(HALF, schedulerName="volcano"), "spec.schedulerName"),
    "what only the policy writes": (
        pod({**HALF, "gpu-scheduler.io/asked": "0:gpu-scheduler.io/gpu=8"}),
        "[gpu-scheduler.io/asked]",
    ),
}


def test_a_namespace_opts_in_to_what_there_is(admin: Caller) -> None:
    body = {"metadata": {"name": "odd", "labels": {"gpu-scheduler.io/compat": "volcano"}}}
    answer = admin.create(f"{NAMESPACES}?dryRun=All", body)
    assert not answer.ok and "write hami, kai" in answer.message
    with without_policies(admin):
        until(lambda: admin.create(NAMESPACES, body).ok, "it is not judged")
    path = f"{NAMESPACES}/odd"
    assert admin.patch(path, {"metadata": {"labels": {"other": "x"}}}).ok, "it can be changed"
    assert not admin.patch(path, {"metadata": {"labels": {"gpu-scheduler.io/compat": "x"}}}).ok
    assert made(admin, pod({"gpu-fraction": "0.5"}), "odd").ok, "and means nothing"
    assert admin.send("DELETE", path).ok, "and can go"


@pytest.mark.parametrize("case", REFUSED)
def test_odd_input_is_refused_with_the_field_and_the_way_out(admin: Caller, case: str) -> None:
    body, words = REFUSED[case]
    answer = made(admin, body)
    assert not answer.ok
    assert words in answer.message
    assert "Policy 'gpu-scheduler-share-requests'" in answer.message, "not a failure of another"
    assert made(admin, pod(HALF)).ok, "for that pod only"


@pytest.mark.parametrize("name", ["a-comes-first", "z-comes-last"])
@pytest.mark.parametrize("rendered", [False, True])
def test_containers_that_others_put_in_front_get_no_gpu(
    admin: Caller, name: str, rendered: bool
) -> None:
    with injecting(admin, name):
        containers = [
            {
                "name": f"c{n}",
                "image": "x",
                "resources": {"limits": {"gpu-scheduler.io/milligpu": 100}},
            }
            for n in range(3)
        ]
        two_more = [{"name": f"s{n}", "image": "x"} for n in range(2)]
        body = pod(containers=[*containers, *two_more])
        if rendered:
            body = expected(body)
            body["metadata"]["labels"]["gpu-scheduler.io/share"] = "rendered"
        answer = until(
            lambda: (a := made(admin, body)).ok and "injected" in str(a.body) and a, "it is put in"
        )
    given = {
        container["name"]: [e for e in container["env"] if e["name"] == "NVIDIA_VISIBLE_DEVICES"]
        for container in answer.body["spec"]["containers"]
    }
    assert next(iter(given)) == "injected"
    for name, told in given.items():
        assert len(told) == 1
        assert ("valueFrom" in told[0]) is name.startswith("c"), (name, told)
    typed = msgspec.convert(answer.body, Pod)
    request = share_of(typed)
    assert request is not None and request.request is not None
    assert lacks(typed, request.request, GIVEN.cap_image) == "", "and the operator takes it"


@contextmanager
def injecting(admin: Caller, name: str) -> Iterator[None]:
    """A policy of somebody else's that puts a container in front, as a mesh does."""
    container = '{"name": "injected", "image": "proxy"}'
    mutation = {
        "patchType": "JSONPatch",
        "jsonPatch": {
            "expression": '[JSONPatch{op: "add", path: "/spec/containers/0", '
            f"value: dyn({container})}}]"
        },
    }
    once = {
        "name": "once",
        "expression": "!object.spec.containers.exists(c, c.name == 'injected')",
    }
    rules = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "matchConditions": [once],
    }
    with mutating(admin, name, mutation, {}, **rules):
        yield
    until(lambda: "injected" not in str(made(admin, pod()).body), "it puts in nothing more")


def test_an_editor_gains_nothing_through_the_new_keys(running: Running) -> None:
    """Only what is asked may be written, only when a pod is made, and nothing of what is held."""
    admin, editor = administrator(running), edits(running)
    allowed = {**HALF, "gpu-scheduler.io/priority": "80", "gpu-scheduler.io/type": "training"}
    assert made(editor, pod(allowed)).ok
    for key, value in (
        ("allocation", "{}"),
        ("c0-devices", "all"),
        ("c0-memory-mib", "99999"),
        ("term", "x/1"),
        ("gpux", "1"),
    ):
        answer = made(editor, pod({**HALF, f"gpu-scheduler.io/{key}": value}))
        assert not answer.ok and key in answer.message
    body = pod(HALF)
    body["metadata"]["name"] = "waits"
    assert editor.create(PODS.partition("?")[0], body).ok
    path = f"{PODS.partition('?')[0]}/waits"
    for key in ("gpu", "asked", "priority", "gang-size"):
        notes = {f"gpu-scheduler.io/{key}": "8"}
        assert not editor.patch(path, {"metadata": {"annotations": notes}}).ok, key
    assert not editor.patch(path, {"spec": {"schedulingGates": []}}).ok
    assert admin.send("DELETE", path).ok


def edits(running: Running) -> Caller:
    """A user with the `edit` role in the namespace."""
    admin = administrator(running)
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "edit-user"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    body = {"metadata": {"name": "edit"}, "roleRef": role, "subjects": [subject]}
    path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
    assert admin.create(path, body).ok
    editor = Caller(running.server, running.ca_file, running.token("edit-user"))
    until(lambda: made(editor, pod()).ok, "the role is in force")
    return editor


def test_where_nothing_makes_pods_ours_they_are_told_to_be_rendered(running: Running) -> None:
    """A cluster without MutatingAdmissionPolicies, as far as the other policy can see."""
    admin = administrator(running)
    only = ("template", "gpu-scheduler", str(CHART), "-n", "default", "--kube-version", "1.35.0")
    shown = running.helm(*only, "--show-only", "templates/admission-share-requests.yaml").stdout
    shown = shown.replace("gpu-scheduler-share-", "old-")
    with without_policies(admin):
        running.kubectl("apply", "-f", "-", input=shown)
        try:
            answer = until(lambda: None if (a := made(admin, pod(HALF))).ok else a, "it is refused")
            assert "kubectl gpu render -f FILE" in answer.message
            wanted = expected(pod(HALF))
            assert isinstance(wanted, dict) and made(admin, wanted).ok, "rendered, it is taken"
            assert made(admin, pod()).ok
        finally:
            running.kubectl("delete", "-f", "-", input=shown)
