"""Objects that mean harm, or that nobody thought of: made by a tenant's editor, and by careless
administrators.

Each is removed again after a while, so that what it did can be seen to end with it. The editor's
namespace has a project of its own: what it does there must not be felt in the others.
"""

import json
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from tests.api.tenant import GROUP, Json, runs, template
from tests.soak.jobs import SLIP
from tests.soak.nodes import Nodes
from tests.soak.site import Site

HOME = "hostile"
_SLIPS = Path(__file__).with_name("slips.yaml")
_HOLD = "example.com/hold"
_MOST_ALIVE = 25
_HUGE = ("10P", "9E", "1e18", "9223372036854775807", "0.0000001n", "1Ei")
_ODD = ("", "x" * 300, "-1", "9" * 40, "\u202e\u0000", "{}", "1e400", "nan", "٣")


class Hostile:
    """Makes one object after the other."""

    def __init__(self, site: Site, nodes: Nodes) -> None:
        self._site, self._nodes, self._dice = site, nodes, site.dice("hostile")
        self._number = 0
        self._alive: deque[str] = deque()
        self._slips = [each["spec"] for each in yaml.safe_load_all(_SLIPS.read_text())]

    def attack(self) -> None:
        """One object more; the oldest goes when there are many."""
        kinds: tuple[Callable[[], None], ...] = (
            self._huge_request,
            self._refused_template,
            self._huge_parallelism,
            self._slow_expression,
            self._bad_sweep,
            self._forged_job,
            self._bound_by_hand,
            self._pause_pod,
            self._foreign_pod,
            self._forged_annotations,
            self._odd_labels,
            self._long_grace,
            self._foreign_results,
            self._twins,
            self._edited_job,
            self._absurd_node_labels,
            self._absurd_devices,
            self._disruption_budget,
            self._slip,
            self._slip,
            self._foreign_finalizer,
            self._foreign_finalizer_of_a_job,
        )
        kind = self._dice.choice(kinds)
        self._number += 1
        self._site.count(f"hostile {kind.__name__.strip('_')}")
        kind()
        while len(self._alive) > _MOST_ALIVE:
            self._remove(self._alive.popleft())
        self._site.rest(self._dice.expovariate(1.0))

    def clear(self) -> None:
        """Remove what is left."""
        while self._alive:
            self._remove(self._alive.popleft())

    def _remove(self, path: str) -> None:
        self._site.admin.send("DELETE", path)
        found = self._site.admin.get(path)
        held = _HOLD in (found.body.get("metadata", {}).get("finalizers") or ())
        if held:
            others = [f for f in found.body["metadata"]["finalizers"] if f != _HOLD]
            self._site.admin.patch(path, {"metadata": {"finalizers": others or None}})

    def _name(self) -> str:
        return f"bad-{self._number}"

    def _make(self, collection: str, body: Json, *, by_admin: bool = False) -> bool:
        who = self._site.admin if by_admin else self._site.editor
        answer = who.create(collection, body)
        if answer.ok:
            self._alive.append(f"{collection}/{body['metadata']['name']}")
        return answer.ok

    def _gpujob(self, *, called: str = "", finalizers: tuple[str, ...] = (), **spec: Any) -> bool:
        body = {
            "apiVersion": "gpu-scheduler.io/v1alpha1",
            "kind": "GPUJob",
            "metadata": {
                "name": called or self._name(),
                "namespace": HOME,
                "finalizers": list(finalizers),
            },
            "spec": spec,
        }
        return self._make(f"{GROUP}/namespaces/{HOME}/gpujobs", body)

    def _pod(self, spec: Json, *, by_admin: bool = False, **meta: Any) -> bool:
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self._name(), **meta},
            "spec": {"containers": [{"name": "main", "image": "example/x:1"}], **spec},
        }
        return self._make(f"/api/v1/namespaces/{HOME}/pods", body, by_admin=by_admin)

    def _huge_request(self) -> None:
        dice = self._dice
        made = template(runs(2))
        resource = dice.choice(("cpu", "memory", "ephemeral-storage"))
        made["spec"]["containers"][0]["resources"] = {"requests": {resource: dice.choice(_HUGE)}}
        self._gpujob(gpu=0.1, template=made)

    def _refused_template(self) -> None:
        made = template(runs(2))
        made["spec"]["containers"][0]["volumeMounts"] = [{"name": "none", "mountPath": "/x"}]
        self._gpujob(gpu=0.1, template=made)

    def _slip(self) -> None:
        """An unquoted number or word where a text belongs: no pod, in no cluster."""
        name = f"{SLIP}{self._number}"
        self._gpujob(called=name, **self._dice.choice(self._slips))

    def _foreign_finalizer(self) -> None:
        """A job that runs, is deleted, and stays because of somebody's finalizer."""
        if self._gpujob(finalizers=(_HOLD,), gpu=0.25, template=template(runs(600))):
            self._site.rest(self._dice.uniform(0, 5))
            self._site.editor.send("DELETE", self._alive[-1])

    def _foreign_finalizer_of_a_job(self) -> None:
        """The same of a Job that we made."""
        found = self._site.admin.get(f"/apis/batch/v1/namespaces/{HOME}/jobs")
        items = found.body.get("items") or [] if found.ok else []
        if items:
            job = self._dice.choice(items)["metadata"]
            path = f"/apis/batch/v1/namespaces/{HOME}/jobs/{job['name']}"
            held = [*(job.get("finalizers") or ()), _HOLD]
            self._site.admin.patch(path, {"metadata": {"finalizers": held}})
            self._alive.append(path)
            self._site.editor.send("DELETE", path)

    def _huge_parallelism(self) -> None:
        """As many pods as the team's limit allows; making more of them is all that two cores do."""
        self._gpujob(gpu=0.05, parallelism=100_000, template=template(runs(300)))

    def _slow_expression(self) -> None:
        pattern = "(?:(?:(?:(?:a{0,30}){0,30}b?)c?){0,1}d?)*val=([0-9.]+)"
        sweep = {
            "algorithm": "random",
            "objective": {"metric": "val", "goal": "minimize"},
            "parameters": {"lr": {"uniform": [0, 1]}},
            "resultFrom": {"logRegex": pattern},
        }
        self._gpujob(
            gpu=0.01, sweep=sweep, completions=3, parallelism=1, template=template(runs(1))
        )

    def _bad_sweep(self) -> None:
        sweep = {
            "algorithm": "random",
            "objective": {"metric": "val", "goal": "minimize"},
            "parameters": {"lr": {"values": [1, 1e300, 0.1, self._dice.choice(_ODD)]}},
        }
        said = json.dumps({"val": self._dice.choice((1e308, "NaN", "x", [[]], None))})
        said = self._dice.choice((said, "[" * 2000, "{", '{"val": 1e400}', "\\u0000"))
        made = template(runs(1, termination_message=said))
        self._gpujob(gpu=0.01, sweep=sweep, completions=4, template=made)

    def _forged_job(self) -> None:
        """A Job that says it is a GPUJob's."""
        found = self._site.admin.get(f"{GROUP}/namespaces/{HOME}/gpujobs")
        items = found.body.get("items") or [] if found.ok else []
        uid = items[0]["metadata"]["uid"] if items else "00000000-0000-0000-0000-000000000000"
        name = items[0]["metadata"]["name"] if items else "none"
        body = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": self._name(),
                "labels": {"gpu-scheduler.io/job": name},
                "annotations": {
                    "gpu-scheduler.io/segment": self._dice.choice(("0", "999999999", "-1", "x")),
                    "gpu-scheduler.io/first-trial": self._dice.choice(_ODD)[:50] or "7",
                },
                "ownerReferences": [
                    {
                        "apiVersion": "gpu-scheduler.io/v1alpha1",
                        "kind": "GPUJob",
                        "name": name,
                        "uid": uid,
                        "controller": True,
                    }
                ],
            },
            "spec": {
                "completionMode": "Indexed",
                "completions": 5_000_000,
                "parallelism": 5,
                "activeDeadlineSeconds": 1,
                "backoffLimitPerIndex": 0,
                "maxFailedIndexes": 100_000,
                "template": {
                    "spec": {
                        "restartPolicy": "Never",
                        "schedulerName": "gpu-scheduler",
                        "containers": [{"name": "main", "image": "example/x:1"}],
                    }
                },
            },
        }
        self._make(f"/apis/batch/v1/namespaces/{HOME}/jobs", body)

    def _bound_by_hand(self) -> None:
        """A pod that nobody scheduled, with more than the node has."""
        container = {
            "name": "main",
            "image": "example/x:1",
            "resources": {"requests": {"cpu": self._dice.choice(("500", *_HUGE))}},
        }
        self._pod({"nodeName": self._dice.choice(self._nodes.names), "containers": [container]})

    def _pause_pod(self) -> None:
        limits = {"nvidia.com/gpu.x": "1"}
        container = {"name": "main", "image": "example/x:1", "resources": {"limits": limits}}
        self._pod({"nodeName": self._dice.choice(self._nodes.names), "containers": [container]})

    def _foreign_pod(self) -> None:
        limits = {"nvidia.com/gpu": self._dice.choice(("1", "8"))}
        env = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]
        container = {"name": "main", "image": "x", "resources": {"limits": limits}, "env": env}
        self._pod({"containers": [container]})

    def _forged_annotations(self) -> None:
        """Annotations of ours on a pod of somebody's: the policy refuses them."""
        node = self._dice.choice(self._nodes.names)
        text = json.dumps({"v": 1, "n": node, "c": {"0": {"0": [1000, 81920]}}})
        if self._pod({"nodeName": node}, annotations={"gpu-scheduler.io/allocation": text}):
            self._site.failures.append("a forged allocation was accepted")

    def _odd_labels(self) -> None:
        odd = self._dice.choice(_ODD)
        notes = {
            "batch.kubernetes.io/job-completion-index": odd,
            "kwok.x-k8s.io/run-seconds": "2",
        }
        owner = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": "none",
            "uid": self._dice.choice(("x", "0" * 36)),
            "controller": True,
        }
        self._pod(
            {"schedulerName": "gpu-scheduler"},
            labels={"gpu-scheduler.io/job": "none"},
            annotations=notes,
            ownerReferences=[owner],
        )

    def _long_grace(self) -> None:
        made = template(
            runs(600, termination_seconds="30"), terminationGracePeriodSeconds=1_000_000_000
        )
        self._gpujob(gpu=1, template=made)

    def _foreign_results(self) -> None:
        """A results ConfigMap that nobody of ours wrote."""
        data = {"results": self._dice.choice(_ODD) + "\n" + "x" * 1000}
        name = f"{self._name()}-results"
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
        self._make(f"/api/v1/namespaces/{HOME}/configmaps", body)

    def _twins(self) -> None:
        """A GPUJob that is deleted and made again under its name at once."""
        for _ in range(4):
            if self._gpujob(gpu=0.1, template=template(runs(3))):
                self._site.editor.send("DELETE", self._alive.pop())

    def _edited_job(self) -> None:
        """An editor changes the Job of one of the hostile team's GPUJobs."""
        found = self._site.admin.get(f"/apis/batch/v1/namespaces/{HOME}/jobs")
        items = found.body.get("items") or [] if found.ok else []
        if items:
            job = self._dice.choice(items)
            path = f"/apis/batch/v1/namespaces/{HOME}/jobs/{job['metadata']['name']}"
            patch = self._dice.choice(
                (
                    {"spec": {"parallelism": 1000}},
                    {"metadata": {"labels": {"gpu-scheduler.io/job": None}}},
                    {"metadata": {"ownerReferences": None}},
                    {"metadata": {"annotations": {"gpu-scheduler.io/moved": "x" * 1000}}},
                    {"spec": {"suspend": True}},
                )
            )
            self._site.editor.patch(path, patch)

    def _absurd_node_labels(self) -> None:
        """A node of nobody's with labels that cannot be."""
        labels = {
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.product": "NVIDIA-A100",
            "nvidia.com/gpu.count": self._dice.choice(("1000000000", "-1", "x", "8")),
            "nvidia.com/gpu.memory": self._dice.choice(("1", "9" * 20, "9" * 40, "0", "-5")),
        }
        body = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self._name(), "labels": labels},
        }
        self._make("/api/v1/nodes", body, by_admin=True)

    def _absurd_devices(self) -> None:
        """A GPUNode of a node that does not exist, with devices that cannot be."""
        name = self._name()
        body = {
            "apiVersion": "gpu-scheduler.io/v1alpha1",
            "kind": "GPUNode",
            "metadata": {"name": name},
        }
        if self._make(f"{GROUP}/gpunodes", body, by_admin=True):
            devices = [
                {
                    "uuid": self._dice.choice(("GPU-x", "")),
                    "index": i,
                    "model": "X",
                    "memoryMiB": 1,
                    "usableMiB": self._dice.choice((0, 1, 2**62)),
                    "healthy": True,
                }
                for i in range(3)
            ]
            path = f"{GROUP}/gpunodes/{name}/status"
            self._site.admin.patch(path, {"status": {"devices": devices}})

    def _disruption_budget(self) -> None:
        """No pod of the team may be evicted."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": self._name()},
            "spec": {"minAvailable": 1_000_000, "selector": {}},
        }
        self._make(f"/apis/policy/v1/namespaces/{HOME}/poddisruptionbudgets", body)
