"""Pods as a cluster holds them: strangers, forged ones, and ones that are broken."""

from typing import Any

from hypothesis import strategies as st
from tests.unit.generated.values import LONG, Obj, integers, quantities, texts

from gpu_scheduler.api import names
from gpu_scheduler.api.allocation import annotations
from gpu_scheduler.core.model.decision import DeviceAllocation

_RULE: dict[str, Any] = {
    "topologyKey": "kubernetes.io/hostname",
    "labelSelector": {
        "matchLabels": {names.LABEL_JOB: "bad"},
        "matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}],
    },
    "matchLabelKeys": ["a"],
}
# It would keep everybody away from everywhere, if it could.
_NEAR: dict[str, Any] = {
    "topologyKey": "nvidia.com/gpu.product",
    "labelSelector": {},
    "namespaces": ["team-bad", "team-good"],
    "namespaceSelector": {},
    "mismatchLabelKeys": ["b"],
}
INDEX = "batch.kubernetes.io/job-completion-index"


def pod(
    name: str = "stranger",
    namespace: str = "team-bad",
    *,
    node: str = "",
    owner_uid: str = "",
    index: str = "0",
    scheduler: str = names.SCHEDULER_NAME,
    gates: tuple[str, ...] = (),
    annotated: dict[str, str] | None = None,
    requests: dict[str, str] | None = None,
    limits: dict[str, str] | None = None,
    phase: str = "Pending",
) -> Obj:
    """A pod; with ``owner_uid`` one that calls itself a Job's."""
    owner = {"kind": "Job", "name": "job", "uid": owner_uid, "controller": True}
    spec: dict[str, Any] = {
        "schedulerName": scheduler,
        "schedulingGates": [{"name": gate} for gate in gates],
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "whenUnsatisfiable": "DoNotSchedule",
                "minDomains": 2,
                "nodeAffinityPolicy": "Ignore",
                "nodeTaintsPolicy": "Honor",
                **_RULE,
            }
        ],
        "affinity": {
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_NEAR]},
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_NEAR]},
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}
                    ]
                }
            },
        },
        "nodeSelector": {"a": "b"},
        "containers": [
            {
                "name": "main",
                "image": "registry/x:1",
                "resources": {"requests": requests or {"cpu": "1"}, "limits": limits or {}},
            }
        ],
        "initContainers": [{"name": "first", "restartPolicy": "Always"}],
        "overhead": {"cpu": "1m"},
    }
    if node:
        spec["nodeName"] = node
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{namespace}-{name}",
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {names.LABEL_JOB: "bad"},
            "annotations": {INDEX: index, **(annotated or {})},
            "ownerReferences": [owner] if owner_uid else [],
        },
        "spec": spec,
        "status": {
            "phase": phase,
            "startTime": "2026-01-01T00:00:00Z",
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "0/1 nodes are available",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ],
            "containerStatuses": [
                {"name": "main", "state": {"terminated": {"exitCode": 1, "message": "a"}}}
            ],
        },
    }


forged_allocations = st.one_of(
    texts,
    st.builds(
        lambda node, device, milli, mib: annotations(
            node, [DeviceAllocation(0, device, milli, mib)]
        )[names.ALLOCATION],
        st.sampled_from(["bad-0", "nowhere", ""]),
        st.sampled_from(["0", "GPU-x", "", "999", LONG]),
        st.sampled_from([0, 1, 500, 1000, 10**6, -1, -(10**9), 2**63]),
        st.sampled_from([0, 1, 40_000, 10**9, -1, 2**63]),
    ),
)

phases = st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown", "", "Nonsense"])


@st.composite
def hostile_pods(draw: st.DrawFn, owners: tuple[str, ...] = ("",)) -> Obj:
    """A pod of namespace team-bad; on node bad-0, or nowhere, so that it is in nobody's way.

    ``owners``: uids of Jobs that it may call its own.
    """
    annotated = draw(
        st.dictionaries(
            st.sampled_from(
                [
                    names.ALLOCATION,
                    names.devices_annotation(0),
                    names.memory_mib_annotation(0),
                    names.TRIAL,
                    names.HPARAMS,
                    names.REPORT_URL,
                    names.CHECKPOINT_URL,
                    names.CHECKPOINTED,
                    names.RANK,
                ]
            ),
            forged_allocations,
            max_size=3,
        )
    )
    amounts = st.dictionaries(
        st.sampled_from(
            [
                "cpu",
                "memory",
                "ephemeral-storage",
                "pods",
                "nvidia.com/gpu",
                "nvidia.com/gpu.shared",
                "nvidia.com/mig-1g.5gb",
                "",
            ]
        ),
        quantities,
        max_size=3,
    )
    good = pod(
        draw(st.sampled_from(["p0", "p1", "p2"])),
        node=draw(st.sampled_from(["", "bad-0", "bad-0", "nowhere"])),
        owner_uid=draw(st.sampled_from(owners)),
        index=draw(st.one_of(st.sampled_from(["0", "1", "7"]), texts, integers.map(str))),
        scheduler=draw(st.sampled_from([names.SCHEDULER_NAME, "default-scheduler", ""])),
        gates=draw(st.sampled_from([(), (names.GATE,), (names.GATE, "other"), ("other",)])),
        annotated=annotated,
        requests=draw(amounts),
        limits=draw(amounts),
        phase=draw(phases),
    )
    return good
