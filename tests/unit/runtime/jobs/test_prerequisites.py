"""What a pod names is looked up, as far as the operator may read it."""

import re
from typing import Any

import pytest
from tests.unit.runtime.fake_client import FakeClient, Sent

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.objects import StatusDetails
from gpu_scheduler.runtime.jobs.prerequisites import missing

Json = dict[str, Any]
CLAIMED = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
MADE_FOR_IT = {
    "volumes": [
        {
            "name": "scratch",
            "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "s"}}},
        }
    ]
}
BY_DRA = {"resourceClaims": [{"name": "c", "resourceClaimName": "gpu"}]}
BY_TEMPLATE = {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "gpu"}]}
CLAIM, CLASS = "persistentvolumeclaims/data", "storageclasses/s"
PENDING = {"spec": {"storageClassName": "s"}, "status": {"phase": "Pending"}}
LATER, AT_ONCE = ({"volumeBindingMode": mode} for mode in ("WaitForFirstConsumer", "Immediate"))


async def found(spec: Json, there: dict[str, Json | errors.ApiError]) -> str:
    """What is said of a pod, where these objects are there; of others that they are not."""

    def answer(sent: Sent) -> Any:
        name = sent.path.rpartition("/")[2]
        answer = there.get("/".join(sent.path.split("/")[-2:]))
        none = errors.NotFound(404, "NotFound", "none", StatusDetails(name=name))
        return none if answer is None else answer

    client: Any = FakeClient(answer)
    return await missing(client, "team-a", spec)


@pytest.mark.parametrize(
    "spec, there, said",
    [
        ({}, {}, ""),
        (CLAIMED, {}, "there is no PersistentVolumeClaim data of namespace team-a"),
        (CLAIMED, {CLAIM: {"status": {"phase": "Bound"}}}, ""),
        (CLAIMED, {CLAIM: {"metadata": {"deletionTimestamp": "now"}}}, "data .* is being deleted"),
        (CLAIMED, {CLAIM: {"status": {"phase": "Lost"}}}, "has lost its volume"),
        (CLAIMED, {CLAIM: {"status": {"phase": "Pending"}}}, "names no StorageClass"),
        (CLAIMED, {CLAIM: PENDING}, "there is no StorageClass s"),
        (CLAIMED, {CLAIM: PENDING, CLASS: AT_ONCE}, "is not bound yet"),
        (CLAIMED, {CLAIM: PENDING, CLASS: LATER}, ""),
        (MADE_FOR_IT, {}, "volume scratch: there is no StorageClass s"),
        (MADE_FOR_IT, {CLASS: AT_ONCE}, ""),
        (BY_DRA, {}, "there is no resource claim gpu in namespace team-a"),
        (BY_DRA, {"resourceclaims/gpu": {}}, ""),
        (BY_TEMPLATE, {}, "there is no resource claim template gpu in namespace team-a"),
    ],
)
async def test_what_is_not_there_is_named(spec: Json, there: Any, said: str) -> None:
    told = await found(spec, there)
    assert re.search(said, told) if said else told == ""


async def test_what_may_not_be_read_or_is_not_served_is_not_missing() -> None:
    forbidden = errors.Forbidden(403, "Forbidden", "no")
    unserved = errors.NotFound(404, "NotFound", "the server could not find the resource")
    for error in (forbidden, unserved):
        assert await found(BY_DRA, {"resourceclaims/gpu": error}) == ""
        assert await found(CLAIMED, {CLAIM: PENDING, CLASS: error}) == ""


async def test_no_answer_is_none() -> None:
    with pytest.raises(errors.ServerError):
        await found(CLAIMED, {CLAIM: errors.ServerError(500, "InternalError", "told so")})


async def test_of_a_thousand_claims_a_few_are_looked_at() -> None:
    many = {"resourceClaims": [{"name": str(n), "resourceClaimName": f"c{n}"} for n in range(1000)]}
    asked: list[str] = []

    def answer(sent: Sent) -> Any:
        asked.append(sent.path)
        return {}

    client: Any = FakeClient(answer)
    assert await missing(client, "team-a", many) == ""
    assert len(asked) == 16
