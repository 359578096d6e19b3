"""An administrator of the soak who deletes a CRD breaks nothing of the soak, and loses no job."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.api.caller import Answer
from tests.soak.administrators import Administrators
from tests.soak.load import Load, Promise
from tests.soak.site import Site

NONE: Any = None
TERMINATING = (
    'gpujobs.gpu-scheduler.io "gate-60" is forbidden: create not allowed while custom resource '
    "definition is terminating"
)


@pytest.mark.parametrize(
    ("status", "message", "failures"),
    [
        (403, TERMINATING, 0),
        (403, "gpujobs is forbidden: User x cannot create", 1),
        (404, "the server could not find the requested resource", 0),
        (422, "spec.gpu: Invalid value", 1),
    ],
)
def test_what_is_created_while_the_kind_goes_may_be_refused(
    status: int, message: str, failures: int
) -> None:
    site = Site(NONE, 1, NONE, NONE)
    site.must(Answer(status, {"message": message}), "gate")
    assert len(site.failures) == failures


def test_a_job_that_comes_while_the_kind_goes_is_not_lost() -> None:
    site = Site(NONE, 1, cast(Any, Cluster()), NONE)
    load = Load(site)
    admins = Administrators(site, load, crds=True)
    site.enough.set()  # nobody waits
    site.stop.set()

    def comes() -> None:
        load.preemption_policy["red", "late"] = Promise("red", "late", "share", 1)

    asked = SimpleNamespace(delete=lambda name: comes())
    admins._delete = asked.delete  # type: ignore[method-assign]
    admins._surely = lambda work: work()  # type: ignore[method-assign]
    admins._dice = cast(Any, SimpleNamespace(choice=lambda _: "gpujobs", uniform=lambda a, b: 0))
    admins._crd()
    assert load.preemption_policy["red", "late"].deleted


class Cluster:
    """Has the CRD, then has it no more, and takes it again."""

    def __init__(self) -> None:
        self.asked = 0

    def get(self, path: str) -> Answer:
        self.asked += 1
        there = {"metadata": {"name": path.rpartition("/")[2]}, "spec": {}}
        return Answer(200, there) if self.asked == 1 else Answer(404, {})

    def create(self, path: str, body: Any) -> Answer:
        return Answer(201, body)
