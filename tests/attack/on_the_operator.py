"""Attacks on the operator: its memory, its time, its Lease, and what it asks of the API server.

Each is one round of an attack that goes on for ever; what it leaves is bounded.
"""

import base64
import json
import secrets
from http.client import HTTPConnection
from typing import Any

from tests.api.tenant import GROUP as OURS
from tests.api.tenant import Json, runs, template
from tests.attack.attacker import GPUJOBS, JOBS, PODS, Attacker, path
from tests.attack.on_gpus import GROUP, gpujob, pod
from tests.soak.site import AWAY

_HOLD = "example.com/hold"
_CLAIM = {"persistentVolumeClaim": {"claimName": "none"}}
_DEAR = "(?:(?:(?:(?:a{0,30}){0,30}b?)c?){0,1}d?)*val=([0-9.]+)"
_EMPTY_OBJECTS = 395_000  # with which a request is full of them
_AUDIENCE = f"{GROUP}/reports"  # of the tokens that pods report with


def asked_notes(a: Attacker) -> None:
    """Pods with all of an annotation's room filled, each differently, made and deleted."""
    for _ in a.many(20):
        notes = {f"{GROUP}/asked": f"0:{a.called()}=" + "x" * 262_000}
        a.create(a.elsewhere, PODS, pod(a.called(), notes=notes))
    a.keep(0)


def other_notes(a: Attacker) -> None:
    """The same with other words of a pod that asks, with names of gangs, and of a GPUJob."""
    for _ in a.many(10):
        long, gang = a.called() + "x" * 200_000, a.called()
        notes = {f"{GROUP}/gpu": "0.1", f"{GROUP}/gpu-models": long}
        a.create(a.anywhere(), PODS, pod(a.called(), notes=notes))
        notes = {f"{GROUP}/gpu": "0.1", f"{GROUP}/gang-size": "1000", "example.com/note": long}
        a.create(a.anywhere(), PODS, pod(a.called(), labels={f"{GROUP}/gang": gang}, notes=notes))
        a.create(a.anywhere(), PODS, pod(a.called(), notes={f"{GROUP}/type": long}))
    made = a.create(a.home, GPUJOBS, gpujob(a.called(), notes={"x": "y"}, gpu=0.1, image="x"))
    for _ in a.many(10):
        a.patch(made, {"metadata": {"annotations": {"x": a.called() + "y" * 200_000}}})
    a.keep(10)


def long_args(a: Attacker) -> None:
    """GPUJobs with 900 KB of arguments, each different, made and deleted fifty at a time."""
    for _ in a.many(50):
        name = a.called()
        main = {"name": "main", "image": "x", "args": [name + "x" * 9_000] * 100}
        a.create(a.anywhere(), GPUJOBS, gpujob(name, gpu=0.05, template=_of(main)))
    a.keep(0)


def empty_objects(a: Attacker) -> None:
    """GPUJobs of 1.2 MB that are a hundred times as large once they are read."""
    many: list[Json] = [{}] * (4_000 if a.scene.few else _EMPTY_OBJECTS)
    main = {"name": "main", "image": "x"}
    for _ in a.many(49):
        made = {"metadata": {}, "spec": {"containers": [main], "foo": many}}
        a.create(a.anywhere(), GPUJOBS, gpujob(a.called(), gpu=0.05, template=made))
    a.keep(0)


def changing_templates(a: Attacker) -> None:
    """A job that is deleted and made anew under its name, each time with another template."""
    name = a.called()
    for number in a.many(20):
        args = [f"{number}" * 3_000] * 20
        spec = {"gpu": a.dice.choice((0.05, 64)), "template": _of({"args": args})}
        if made := a.create(a.home, GPUJOBS, gpujob(name, **spec, suspend=number % 5 == 0)):
            a.patch(made, {"spec": {"template": _of({"args": ["changed"]})}})
            a.patch(made, {"metadata": {"labels": {"x": f"{number}"}}})
            a.remove(made)


def missing_claims(a: Attacker) -> None:
    """Jobs that can never start, for six reasons that are only seen later."""
    none: Json = {"name": "c", "resourceClaimName": "none"}
    late: tuple[Json, ...] = (
        {"volumes": [{"name": "v", **_CLAIM}]},
        {"resourceClaims": [none]},
        {"serviceAccountName": "none"},
        {"imagePullSecrets": [{"name": "none"}]},
        {"priorityClassName": "none"},
        {"volumes": [{"name": "v", "configMap": {"name": "none"}}]},
        {"runtimeClassName": "none"},
    )
    for pod_spec in late:
        spec = {"gpu": 0.5, "priority": 100, "template": template(runs(600), **pod_spec)}
        a.create(a.home, GPUJOBS, gpujob(a.called(), **spec))
    checkpoint = {"volume": _CLAIM}
    a.create(a.home, GPUJOBS, gpujob(a.called(), gpu=0.5, checkpoint=checkpoint, image="x"))
    shares = {"notes": {f"{GROUP}/gpu": "0.5"}, "volumes": [{"name": "v", **_CLAIM}]}
    a.create(a.home, PODS, pod(a.called(), **shares))
    a.keep(16)


def our_names(a: Attacker) -> None:
    """Events and ConfigMaps under the names that the operator gives its own."""
    job = f"{a.name}-job"
    a.send("POST", path(a.home, GPUJOBS), gpujob(job, gpu=0.05, image="x"))
    involved = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "GPUJob", "name": job}
    for _ in a.many(50):
        event = {
            "metadata": {"name": f"{job}.{secrets.token_hex(8)}"},
            "involvedObject": {**involved, "namespace": a.home},
            "reason": "Placed",
            "type": "Warning",
            "message": "x" * 1_000,
            "source": {"component": "gpu-scheduler"},
        }
        a.send("POST", path(a.home, "events"), event)
    labels = {f"{GROUP}/job": job, f"{GROUP}/component": "agent"}
    for number in a.many(5):
        meta = {"name": f"{job}-results-{number}", "labels": labels}
        rows = {"trials": f"{number}\tSucceeded\t1e400\n" * 30_000}
        a.create(a.home, "configmaps", {"metadata": meta, "data": rows})
    a.keep(5)


def statuses(a: Attacker) -> None:
    """Statuses written by hand, of what is one's own and of what is not."""
    made = a.create(a.home, GPUJOBS, gpujob(a.called(), gpu=0.05, image="x"))
    status = {
        "status": {"phase": "Succeeded", "pods": {"succeeded": 10**9}, "message": "x" * 9_000}
    }
    for method in ("PATCH", "PUT"):
        a.send(method, f"{made}/status", status, "application/merge-patch+json")
    job = made.replace(f"{OURS}/", "/apis/batch/v1/").replace("/gpujobs/", "/jobs/")
    a.patch(f"{job}/status", {"status": {"succeeded": 10**6, "active": 10**6}})
    a.patch(f"/api/v1/nodes/{a.node()}/status", {"status": {"allocatable": {"cpu": "0"}}})
    a.patch(f"{OURS}/gpunodes/{a.node()}/status", {"status": {"devices": None}})
    a.patch(f"{OURS}/gpuprojects/{a.home}/status", {"status": {"allocatedGPU": "0"}})
    a.keep(4)


def tiny_jobs(a: Attacker) -> None:
    """As many small jobs as come, inside the quota and far beyond it; some are orphaned."""
    for _ in a.many(100):
        spec = {"gpu": a.dice.choice((0.001, 0.1)), "template": template(runs(5))}
        a.create(a.anywhere(), GPUJOBS, gpujob(a.called(), priority=a.dice.randint(0, 100), **spec))
    while len(a.made) > 2_000:
        orphan = a.dice.random() < 0.3
        a.remove(a.made[0], propagationPolicy="Orphan" if orphan else "Background")


def many_pods(a: Attacker) -> None:
    """One job of as many pods as there can be, flapping between wide and suspended."""
    spec: Json = {"gpu": 0.01, "parallelism": 10_000, "completions": 10_000}
    spec |= {"template": template(runs(30))}
    made = a.create(a.home, GPUJOBS, gpujob(a.called(), **spec))
    for number in a.many(20):
        wide = a.dice.choice((1, 100, 10_000))
        a.patch(made, {"spec": {"parallelism": wide, "suspend": number % 3 == 0}})
        a.patch(made, {"spec": {"priority": a.dice.randint(0, 100)}})
    a.keep(1)


def deployments(a: Attacker) -> None:
    """Pods that ask by themselves, of Deployments that grow and shrink."""
    for namespace in (a.home, a.compat, a.elsewhere):
        labels = {"app": a.name}
        made = {"metadata": {"labels": {**labels, f"{GROUP}/gpu": "0.25"}}}
        made["spec"] = {"containers": [{"name": "main", "image": "x"}]}
        spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": made}
        found = a.create(namespace, "deployments", {"metadata": {"name": a.called()}, "spec": spec})
        for replicas in (3, 0, 2) if a.scene.few else (60, 0, 30):
            a.patch(found, {"spec": {"replicas": replicas}})
    a.keep(2)


def dear_patterns(a: Attacker) -> None:
    """Sweeps whose results are read with patterns that cost more than the log."""
    sweep: Json = {"algorithm": "random", "parameters": {"lr": {"uniform": [0, 1]}}}
    sweep |= {"objective": {"metric": "val", "goal": "minimize"}}
    for pattern in (_DEAR, "(" * 200 + "a{0,30}" + "){0,30}" * 200, "(a|b|" + "x" * 4_000 + ")*"):
        more = {"sweep": {**sweep, "resultFrom": {"logRegex": pattern}}, "completions": 3}
        a.create(a.home, GPUJOBS, gpujob(a.called(), gpu=0.01, template=template(runs(1)), **more))
    grid = {f"p{n}": {"values": list(range(100))} for n in range(5)}
    sweep = {"algorithm": "grid", "parameters": grid}
    a.create(a.home, GPUJOBS, gpujob(a.called(), gpu=0.01, sweep=sweep, image="x"))
    a.keep(6)


def reports(a: Attacker) -> None:
    """Reports from many addresses with tokens that are made up, and with ever new real ones."""
    if not a.scene.reports:
        return
    for _ in a.many(200):
        uid = f"{secrets.token_hex(4)}-0000-0000-0000-{secrets.token_hex(6)}"
        _report(a, uid, a.dice.choice((_made_up(uid), secrets.token_hex(16), "x" * 9_000)))
    for found in _some_pods(a)[:3]:
        each = found["metadata"]
        bound = {"apiVersion": "v1", "kind": "Pod", "name": each["name"], "uid": each["uid"]}
        spec = {"audiences": [_AUDIENCE], "boundObjectRef": bound}
        for _ in a.many(20):
            at = f"{path(a.home, 'serviceaccounts', 'default')}/token"
            answer = a.send("POST", at, {"spec": spec})
            if answer.ok:
                _report(a, each["uid"], answer.body["status"]["token"])


def _report(a: Attacker, uid: str, token: str) -> None:
    """One report, to any of the addresses that there are or were."""
    where = a.dice.choice(
        (f"trials/{uid}", f"checkpoints/{uid}", f"{uid}/0/{secrets.token_hex(16)}")
    )
    source = f"127.0.1.{a.dice.randint(1, 50)}"
    connection = HTTPConnection(a.scene.reports, timeout=5, source_address=(source, 0))
    body = json.dumps({"step": 1, "metrics": {"loss": 0.5}})
    try:
        headers = {"Authorization": f"Bearer {token}"}
        connection.request("POST", f"/reports/{where}", body, headers)
        a.answers[f"report {connection.getresponse().status}"] += 1
    except AWAY as error:
        a.answers[f"report {type(error).__name__}"] += 1
    finally:
        connection.close()


def finalizers(a: Attacker) -> None:
    """Objects that are deleted and stay."""
    for kind, body in (
        (GPUJOBS, gpujob(a.called(), gpu=0.5, template=template(runs(600)))),
        (PODS, pod(a.called(), notes={f"{GROUP}/gpu": "0.5"})),
        (
            JOBS,
            {
                "metadata": {"name": a.called()},
                "spec": {"template": _of({}, restartPolicy="Never")},
            },
        ),
    ):
        body["metadata"]["finalizers"] = [_HOLD, *(f"example.com/{n}" for n in range(500))]
        if made := a.create(a.home, kind, body):
            a.held.add(made)
            a.send("DELETE", made)
    a.keep(20)


def huge_words(a: Attacker) -> None:
    """Names, labels, selectors and lists as long as the server takes them."""
    count = 1_000 if a.scene.few else 5_000
    labels = {f"example.com/{'k' * 50}-{n}": "v" * 63 for n in range(count)}
    body = gpujob(a.called(), gpu=0.05, template={"metadata": {"labels": labels}, "spec": {}})
    body["spec"]["template"]["spec"] = {"containers": [{"name": "main", "image": "i" * 100_000}]}
    a.create(a.home, GPUJOBS, body)
    a.create(a.anywhere(), PODS, pod(a.called(), labels={**labels, f"{GROUP}/gpu": "0.1"}))
    models = [f"{n}".ljust(63, "m") for n in range(16)]
    a.create(a.home, GPUJOBS, gpujob("n" * 61, gpu=0.05, gpuModels=models, image="x"))
    term = {
        "topologyKey": "zone",
        "labelSelector": {"matchLabels": dict(list(labels.items())[:900])},
    }
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term] * 10}}
    spec = template(nodeSelector=dict(list(labels.items())[:2_000]), affinity=rules)
    a.create(a.home, GPUJOBS, gpujob(a.called(), gpu=0.05, template=spec))
    a.keep(3)


def fights(a: Attacker) -> None:
    """What the operator made is changed and deleted as often as it makes it."""
    made = f"{a.name}-job"
    a.send("POST", path(a.home, GPUJOBS), gpujob(made, gpu=0.1, template=template(runs(600))))
    job = path(a.home, JOBS, made)
    for number in a.many(50):
        patch = a.dice.choice(
            (
                {"spec": {"parallelism": 50 + number}},
                {"metadata": {"labels": {f"{GROUP}/job": None}}},
                {"metadata": {"ownerReferences": None}},
                {"metadata": {"annotations": {f"{GROUP}/rendered": a.called()}}},
                {"spec": {"suspend": True}},
            )
        )
        a.patch(job, patch)
        if number % 10 == 9:
            a.send("DELETE", job, {"propagationPolicy": "Background"})
    for each in _some_pods(a):
        at = path(a.home, PODS, each["metadata"]["name"])
        eviction = {"metadata": {"name": each["metadata"]["name"]}}
        a.patch(at, {"metadata": {"annotations": {f"{GROUP}/checkpointed-at": a.called()}}})
        a.patch(at, {"metadata": {"labels": {f"{GROUP}/job": a.called()}}})
        a.send(
            "POST", f"{at}/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", **eviction}
        )


def forged_owners(a: Attacker) -> None:
    """Jobs and pods that say they are a GPUJob's, also one's of another namespace."""
    owner = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "GPUJob", "name": "x", "controller": True}
    owner["uid"] = secrets.token_hex(16)
    for _ in a.many(20):
        meta: Json = {"name": a.called(), "labels": {f"{GROUP}/job": "x"}}
        meta |= {"ownerReferences": [owner], "annotations": {f"{GROUP}/segment": "9" * 40}}
        spec = {"parallelism": 3, "completions": 3, "completionMode": "Indexed"}
        spec["template"] = _of({}, restartPolicy="Never", schedulerName="gpu-scheduler")
        a.create(a.home, JOBS, {"metadata": meta, "spec": spec})
    a.keep(20)


def borders(a: Attacker) -> None:
    """Writes that are nobody's but an administrator's or the operator's."""
    meta = {"metadata": {"name": "more"}}
    system = "/api/v1/namespaces/gpu-scheduler"
    for at, body in (
        (path(a.home, "resourcequotas"), {**meta, "spec": {"hard": {"pods": "9999"}}}),
        (path(a.home, "limitranges"), {**meta, "spec": {"limits": []}}),
        (f"{OURS}/gpuprojects", {**meta, "spec": {"namespaces": [a.elsewhere], "quota": 99}}),
        (f"{OURS}/gpunodes", meta),
        (f"{OURS}/gpuclasses", {**meta, "spec": {"models": ["x"]}}),
        (f"{system}/serviceaccounts/gpu-scheduler/token", {"spec": {}}),
        (path("gpu-scheduler", PODS), pod("x", serviceAccountName="gpu-scheduler")),
    ):
        a.send("POST", at, body)
    for at in (
        f"{OURS}/gpuprojects/{a.home}",
        f"/api/v1/namespaces/{a.elsewhere}",
        f"{system}/limitranges/gpu-scheduler-leader",
        "/apis/coordination.k8s.io/v1/namespaces/gpu-scheduler/leases/gpu-scheduler-leader",
        f"/api/v1/nodes/{a.node()}",
    ):
        a.patch(at, {"metadata": {"labels": {f"{GROUP}/compat": "hami"}}, "spec": {"quota": 99}})
        a.send("DELETE", at)
    for at in (f"{system}/secrets", "/api/v1/secrets", "/api/v1/pods", f"{OURS}/gpuprojects"):
        a.send("GET", at)


def _some_pods(a: Attacker) -> list[Json]:
    """At most ten of its own."""
    return list(a.send("GET", f"{path(a.home, PODS)}?limit=10").body.get("items") or ())


def _of(main: Json, **spec: Any) -> Json:
    """A pod template of one container."""
    container = {"name": "main", "image": "example/x:1", **main}
    return {"metadata": {}, "spec": {"containers": [container], **spec}}


def _made_up(uid: str) -> str:
    """What looks like the token of a pod, and nobody has signed."""
    claims = {"aud": [_AUDIENCE], "exp": 4 * 10**9, "kubernetes.io": {"pod": {"uid": uid}}}
    parts = ({"alg": "RS256", "kid": secrets.token_hex(8)}, claims)
    texts = [base64.urlsafe_b64encode(json.dumps(each).encode()).decode() for each in parts]
    return ".".join(text.rstrip("=") for text in (*texts, secrets.token_urlsafe(256)))
