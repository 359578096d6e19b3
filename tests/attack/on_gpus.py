"""Attacks on GPUs: pods that would run with one that nobody gave them.

Each makes pods, on a node of its choice where nothing forbids that, and lets ``given.py`` say what
they would get there. They go with the next round.
"""

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from tests.api.protobuf import CONTENT_TYPE, encoded
from tests.api.tenant import Json
from tests.attack.attacker import GPUJOBS, PODS, Attacker, path

GROUP = "gpu-scheduler.io"
VISIBLE = "NVIDIA_VISIBLE_DEVICES"
GATE = f"{GROUP}/placement"
PLUGIN = {"nvidia.com/gpu": "1"}
NVIDIA = {"runtimeClassName": "nvidia"}
_ALL = [{"name": VISIBLE, "value": "all"}]
_VOID = [{"name": VISIBLE, "value": "void"}]
_NO_PLUGIN = "without-a-plugin"  # a node whose kubelet drops what it does not have
_PLACE_OF_NAME = "n" * 40
_KEPT = 12  # pods of one attack at a time
_ENTRIES_JSON, _ENTRIES_PROTOBUF = 52_000, 90_000  # of envFrom, with which a request is full


def pod(
    name: str,
    *,
    labels: Json | None = None,
    notes: Json | None = None,
    limits: Json | None = None,
    env: list[Json] | None = None,
    init: Json | None = None,
    **spec: Any,
) -> Json:
    """A pod of one container, ``main``; ``init``: limits of an init container beside it."""
    main: Json = {"name": "main", "image": "example/x:1", "env": env or []}
    main |= {"resources": {"limits": limits}} if limits else {}
    body: Json = {"containers": [main], **spec}
    if init is not None:
        first = {"name": "first", "image": "example/x:1", "resources": {"limits": init}}
        body["initContainers"] = [first]
    meta = {"name": name, "labels": labels or {}, "annotations": notes or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body}


@cache
def _full_of_env_from(namespace: str) -> bytes:
    """A silent container behind eight that the device plugin serves, and what they read."""
    entries = [{"prefix": "p", "configMapRef": {"name": "a"}}] * (_ENTRIES_PROTOBUF // 8)
    served = {"image": "example/x:1", "resources": {"limits": PLUGIN}, "envFrom": entries}
    containers = [{"name": f"c{n}", **served} for n in range(8)]
    containers.append({"name": "silent", "image": "example/x:1"})
    meta = {"name": _PLACE_OF_NAME, "namespace": namespace}
    spec = {"containers": containers, **NVIDIA}
    return encoded({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})


def env_from_protobuf(a: Attacker) -> None:
    """A silent container behind more of ``envFrom`` than a policy can look through."""
    name = a.called().ljust(len(_PLACE_OF_NAME), "x")
    body = _full_of_env_from(a.home).replace(_PLACE_OF_NAME.encode(), name.encode())
    a.create(a.home, PODS, body, CONTENT_TYPE)
    a.keep(1)


def env_from_json(a: Attacker) -> None:
    """The same as far as JSON goes."""
    body = pod(a.called(), limits=PLUGIN, nodeName=a.node(), **NVIDIA)
    first = body["spec"]["containers"][0]
    first["envFrom"] = [{"prefix": "p", "configMapRef": {"name": "a"}}] * _ENTRIES_JSON
    body["spec"]["containers"].append({"name": "silent", "image": "example/x:1"})
    a.create(a.home, PODS, body)
    a.keep(1)


def _wide(count: int) -> Iterator[Callable[[Json, Json], None]]:
    """What makes one list or map of a pod (its spec, its first container) as long as it can be."""
    ports = [{"containerPort": 1 + n % 65_000} for n in range(count)]
    yield lambda spec, main: main.update(ports=ports)
    yield lambda spec, main: main.update(args=["x"] * 4 * count)
    yield lambda spec, main: main.update(env=[*main["env"], *({"name": "A"} for _ in range(count))])
    yield lambda spec, main: main.update(
        volumeMounts=[{"name": "v", "mountPath": f"/{n}"} for n in range(count)]
    )
    yield lambda spec, main: spec.update(
        volumes=[{"name": f"v{n}", "emptyDir": {}} for n in range(count)]
    )
    yield lambda spec, main: main.update(
        resources={"limits": {f"example.com/{n}": "1" for n in range(count)}}
    )
    yield lambda spec, main: spec.update(tolerations=[{"operator": "Exists"}] * count)
    yield lambda spec, main: spec.update(
        initContainers=[
            {"name": f"i{n}", "image": "x", "env": _VOID} for n in range(min(count, 9000))
        ]
    )
    yield lambda spec, main: spec.update(
        containers=[
            *({"name": f"c{n}", "image": "x", "env": _VOID} for n in range(min(count, 9000))),
            *spec["containers"],
        ]
    )


def wide(a: Attacker) -> None:
    """A container that picks GPUs, and one list of the pod that nobody can look through."""
    ways = list(_wide(2_000))[:1] if a.scene.few else list(_wide(20_000))
    for widen in ways:
        body = pod(a.called(), env=_ALL, nodeName=a.node(), **NVIDIA)
        widen(body["spec"], body["spec"]["containers"][0])
        a.create(a.home, PODS, body)
        a.keep(2)


def long_maps(a: Attacker) -> None:
    """The same with labels, annotations, owners and finalizers."""
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "0" * 36}
    for more in (
        {"labels": {f"l{n}": "x" for n in range(20_000)}},
        {"annotations": {f"{GROUP}/a{n}": "void" for n in range(9_000)}},
        {"ownerReferences": [{**owner, "uid": f"{n:036}"} for n in range(9_000)]},
        {"finalizers": [f"example.com/{n}" for n in range(20_000)]},
    ):
        body = pod(a.called(), env=_ALL, nodeName=a.node(), **NVIDIA)
        body["metadata"] |= more
        if made := a.create(a.home, PODS, body):
            a.held.add(made)
        a.keep(2)
        if a.scene.few:
            return


def ephemeral(a: Attacker) -> None:
    """Containers added to a pod that exists, harmless ones before silent ones."""
    made = a.create(a.home, PODS, pod(a.called(), env=_VOID, nodeName=a.node(), **NVIDIA))
    harmless = [{"name": f"h{n}", "image": "x", "env": _VOID} for n in range(600)]
    silent = [{"name": f"s{n}", "image": "x"} for n in range(700)]
    if made:
        body = {"spec": {"ephemeralContainers": harmless + silent}}
        a.send(
            "PATCH", f"{made}/ephemeralcontainers", body, "application/strategic-merge-patch+json"
        )
    a.keep(_KEPT)


def picks(a: Attacker) -> None:
    """GPUs picked by variable: plainly, by ConfigMap, by a second entry, by our own annotation."""
    kept = {"metadata": {"name": "picks"}, "data": {VISIBLE: "all", "GPUCAP_OFF": "1"}}
    a.send("POST", path(a.home, "configmaps"), kept)
    forged = json.dumps({"v": 1, "n": a.node(), "c": {"0": {"0": [1000, 81920]}}})
    field = {"fieldRef": {"fieldPath": f"metadata.annotations['{GROUP}/c0-devices']"}}
    placed = {f"{GROUP}/allocation": forged, f"{GROUP}/c0-devices": "0"}
    from_map: list[Json] = [{"configMapRef": {"name": "picks"}}]
    for labels in ({}, {f"{GROUP}/job": "x"}, {f"{GROUP}/share": "true"}):
        bodies = [
            pod(a.called(), labels=labels, env=env, notes=notes, nodeName=a.node(), **NVIDIA)
            for env, notes in (
                (_ALL, {}),
                ([], {}),
                ([*_VOID, *_ALL], {}),
                ([{"name": VISIBLE, "value": "0,1"}], {}),
                ([{"name": VISIBLE, "valueFrom": field}], placed),
            )
        ]
        bodies[1]["spec"]["containers"][0]["envFrom"] = from_map
        bodies.append(pod(a.called(), labels=labels, limits=PLUGIN, nodeName=_NO_PLUGIN, **NVIDIA))
        for body in bodies:
            a.create(a.home, PODS, body)
    a.keep(_KEPT)


def picks_elsewhere(a: Attacker) -> None:
    """The same in a namespace that belongs to no project."""
    for env in (_ALL, []):
        a.create(a.elsewhere, PODS, pod(a.called(), env=env, nodeName=a.node(), **NVIDIA))
    dropped = pod(a.called(), limits=PLUGIN, nodeName=_NO_PLUGIN, **NVIDIA)
    a.create(a.elsewhere, PODS, dropped)
    a.keep(_KEPT)


def components(a: Attacker) -> None:
    """Labels of what is ours on pods that ask the device plugin."""
    for label in (f"{GROUP}/component", f"{GROUP}/job", f"{GROUP}/holds", f"{GROUP}/path"):
        for value, asks in (("holder", {"limits": PLUGIN}), ("x", {"init": PLUGIN})):
            for node in ({"nodeName": a.node()}, {}):
                a.create(a.compat, PODS, pod(a.called(), labels={label: value}, **asks, **node))
    a.keep(16)


def init_containers(a: Attacker) -> None:
    """GPUs that only an init container asks for, or that it asks for as well."""
    for limits, init in (
        ({}, PLUGIN),
        (PLUGIN, PLUGIN),
        ({}, {f"{GROUP}/gpu-mib": "9000"}),
        ({f"{GROUP}/milligpu": "100"}, {f"{GROUP}/milligpu": "900"}),
    ):
        a.create(a.compat, PODS, pod(a.called(), limits=limits, init=init))
    a.keep(_KEPT)


def own_keys_and_plugin(a: Attacker) -> None:
    """A share and the device plugin's GPU in one pod, or in a template."""
    asks = {f"{GROUP}/gpu": "0.1"}
    for notes, limits in ((asks, PLUGIN), ({}, {f"{GROUP}/milligpu": "100", **PLUGIN})):
        a.create(a.compat, PODS, pod(a.called(), notes=notes, limits=limits, nodeName=a.node()))
        a.create(a.compat, PODS, pod(a.called(), notes=notes, limits=limits))
    made = {"spec": pod("x", limits=PLUGIN)["spec"]}
    a.create(a.compat, GPUJOBS, gpujob(a.called(), gpu=0.05, template=made))
    a.keep(_KEPT)


def gates(a: Attacker) -> None:
    """Our gate and our scheduler's name on pods of nobody's; bindings by hand."""
    mine = [{"name": GATE}]
    for spec in (
        {"schedulerName": "gpu-scheduler"},
        {"schedulingGates": mine},
        {"schedulingGates": [*mine, {"name": "example.com/x"}], "schedulerName": "gpu-scheduler"},
        {"schedulerName": "gpu-scheduler", "nodeName": a.node()},
    ):
        labels = {f"{GROUP}/job": "none"} if a.dice.random() < 0.5 else {}
        made = a.create(a.anywhere(), PODS, pod(a.called(), labels=labels, **spec))
        if made:
            a.patch(made, {"spec": {"schedulingGates": None}})
            target = {"apiVersion": "v1", "kind": "Node", "name": a.node()}
            a.send("POST", f"{made}/binding", {"target": target, "metadata": {"name": "x"}})
    a.keep(_KEPT)


def forged_allocations(a: Attacker) -> None:
    """Allocations written by hand: on new pods, on pods that run, on pods of others."""
    text = json.dumps({"v": 1, "n": a.node(), "c": {"0": {"0": [1000, 81920]}}})
    notes = {f"{GROUP}/allocation": text}
    made = a.create(a.home, PODS, pod(a.called(), notes=notes, nodeName=a.node()))
    made = made or a.create(a.home, PODS, pod(a.called(), nodeName=a.node()))
    if made:
        for subresource in ("", "/status", "/resize"):
            a.patch(f"{made}{subresource}", {"metadata": {"annotations": notes}})
    a.keep(_KEPT)


def gpujob(name: str, *, notes: Json | None = None, **spec: Any) -> Json:
    """A GPUJob."""
    meta = {"name": name, "annotations": notes or {}}
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": "GPUJob", "metadata": meta, "spec": spec}
