"""Jobs of batch/v1 that an editor of a namespace makes by hand, in the likeness of ours."""

from hypothesis import strategies as st
from tests.unit.generated.values import LONG, Obj, integers, texts

from gpu_scheduler.api import names

indexes = st.sampled_from(
    ["", "0", "0-3", "3-0", "0-4999999", "1,3-5,7", ",", "-", "a-b", "-1", "0-" + "9" * 30, LONG]
)


def uid_of(name: str) -> str:
    """Of a Job made by hand."""
    return f"uid-hand-{name}"


@st.composite
def hostile_jobs(draw: st.DrawFn, owners: tuple[tuple[str, str], ...]) -> Obj:
    """A Job of team-bad that calls itself a GPUJob's; ``owners``: names and uids of these."""
    number = draw(st.integers(0, 2))
    owner, owner_uid = draw(st.sampled_from([*owners, ("nobody", "uid-nobody")]))
    name = draw(st.sampled_from([owner, f"hand-{number}"]))
    count = st.one_of(st.integers(0, 3), integers.filter(lambda n: abs(n) < 2**31))
    good = {
        "metadata": {
            "name": name,
            "namespace": "team-bad",
            "uid": uid_of(name),
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {names.LABEL_JOB: owner, names.LABEL_ROLE: draw(texts)},
            "annotations": {
                names.SEGMENT: draw(st.one_of(texts, integers.map(str))),
                names.FIRST_TRIAL: draw(st.one_of(texts, integers.map(str))),
                names.RENDERED: draw(texts),
                f"{names.MOVED_PREFIX}0": draw(texts),
            },
            "ownerReferences": [
                {"kind": "GPUJob", "name": owner, "uid": owner_uid, "controller": True}
            ],
        },
        "spec": {
            "parallelism": draw(count),
            "completions": draw(count),
            "suspend": draw(st.booleans()),
        },
        "status": {
            "active": draw(count),
            "succeeded": draw(count),
            "failed": draw(count),
            "failedIndexes": draw(indexes),
            "completedIndexes": draw(indexes),
            "conditions": [
                {
                    "type": draw(st.sampled_from(["Complete", "Failed", "Suspended", ""])),
                    "status": draw(st.sampled_from(["True", "False", ""])),
                    "reason": "BackoffLimitExceeded",
                    "message": draw(texts),
                    "lastTransitionTime": draw(texts),
                }
            ],
            "startTime": draw(texts),
            "completionTime": draw(texts),
        },
    }
    return good
