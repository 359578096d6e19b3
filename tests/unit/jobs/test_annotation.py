import pytest

from gpu_scheduler.api.names import LABEL_FIRST_RANK, RANK
from gpu_scheduler.jobs.annotation import MAX_TOTAL_BYTES, check, placement, well_formed
from gpu_scheduler.jobs.env import INDEX_ANNOTATION
from gpu_scheduler.jobs.write import NotPlaceableError
from gpu_scheduler.kube.objects import Meta, Pod


@pytest.mark.parametrize(
    "key",
    ["a", "A_b.c-9", "example.com/a", "gpu-scheduler.io/c0-memory-mib", "x" * 63, "a/" + "n" * 63],
)
def test_valid_keys(key: str) -> None:
    assert well_formed(key)


@pytest.mark.parametrize(
    "key",
    ["", "-a", "a-", "a b", "/a", "a/", "a/b/c", "under_score.io/a", "x" * 64, "p" * 254 + "/a"],
)
def test_malformed_keys(key: str) -> None:
    assert not well_formed(key)
    with pytest.raises(NotPlaceableError, match="not a valid key"):
        check({key: ""}, [key])


def test_size_counts_bytes_of_keys_and_values() -> None:
    check({"k": "x" * (MAX_TOTAL_BYTES - 1)}, ["k"])
    with pytest.raises(NotPlaceableError, match=f"{MAX_TOTAL_BYTES + 1} bytes"):
        check({"k": "x" * MAX_TOTAL_BYTES}, ["k"])
    with pytest.raises(NotPlaceableError):
        check({"k": "é" * (MAX_TOTAL_BYTES // 2)}, ["k"])


@pytest.mark.parametrize(
    ("first", "index", "rank"),
    [("2", "3", "5"), ("2", "9" * 5000, None), ("2", "", None), ("x", "1", None), ("", "1", None)],
)
def test_the_rank_is_that_of_the_roles_first_pod_and_the_index(
    first: str, index: str, rank: str | None
) -> None:
    meta = Meta(labels={LABEL_FIRST_RANK: first}, annotations={INDEX_ANNOTATION: index})
    assert placement(Pod(metadata=meta), "node", ()).get(RANK) == rank
