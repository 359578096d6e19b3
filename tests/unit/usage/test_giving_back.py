import pytest

from gpu_scheduler.usage.giving_back import give_back


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("GPUJob", "kubectl gpu suspend -n team-a train"),
        ("Deployment", "kubectl scale -n team-a deployment/train --replicas=0"),
        ("StatefulSet", "kubectl scale -n team-a statefulset/train --replicas=0"),
        ("Pod", "kubectl delete -n team-a pod/train"),
        (
            "Job",
            'kubectl patch -n team-a job/train --type=merge -p \'{"spec":{"suspend":true}}\'',
        ),
    ],
)
def test_each_kind_gives_its_gpus_back_in_its_own_way(kind: str, command: str) -> None:
    assert give_back(kind, "team-a", "train") == command
