"""What a pod is told that has a place and whose claim keeps kube-scheduler from binding it."""

from typing import Any

import pytest
from tests.unit.state.builders import half, make_pod

from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.state.pods.pod import PodRecord, record


def placed(said: str, **more: Any) -> PodRecord:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": said,
    }
    return record(
        make_pod(path="other", devices=half(), allocated_node="a", conditions=(condition,), **more)
    )


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            '0/3 nodes are available: persistentvolumeclaim "data" not found. not found',
            "PersistentVolumeClaim data of namespace team-a is not there: whoever made the pod has"
            " to make it, or name another",
        ),
        (
            'persistentvolumeclaim "data" is being deleted',
            "PersistentVolumeClaim data of namespace team-a is being deleted: whoever made the pod"
            " has to make it anew",
        ),
        (
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv-1"',
            "PersistentVolumeClaim data of namespace team-a is bound to a PersistentVolume that is"
            " gone: whoever made the pod has to make it anew",
        ),
        (
            "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
            "a PersistentVolumeClaim of pod job-0 is not bound to a volume, and no other node"
            " helps: kubectl get pvc -n team-a shows which",
        ),
    ],
)
def test_the_claim_is_named_with_who_has_to_mend_it(said: str, told: str) -> None:
    trouble = placed(said).trouble
    assert trouble is not None and trouble.reason is Reason.VOLUME_NOT_MOUNTED
    assert trouble.message == told


def test_other_words_of_kube_scheduler_are_no_claims() -> None:
    assert placed("0/1 nodes are available: 1 Insufficient cpu").trouble is None
    assert placed('persistentvolumeclaim "data" not found', node="a").trouble is None
