"""A leader that ends says why in one line and gives the Lease back, and another one leads."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.api.conftest import administrator, own_cluster
from tests.api.replica import CALM_LEASE, LEASE, Replica
from tests.api.tenant import Json, until

from cluster import Running

# For those that end because they cannot renew their Lease, sooner than others.
SHORT_LEASE = {"lease_seconds": "9.0", "renew_deadline_seconds": "8.0", "retry_seconds": "0.2"}


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with own_cluster("leader-ends") as made:
        yield made


@pytest.fixture
def leader(
    running: Running, lease: dict[str, str], end: Callable[[Replica], None]
) -> Iterator[Replica]:
    # At least here, the program as a kubelet starts it.
    replica = Replica(running, "ending", lease, program=end is terminated).start()
    replica.wait_leading()
    yield replica
    if replica.alive():
        replica.kill()


def stolen(replica: Replica) -> None:
    admin = administrator(replica.running)
    assert admin.patch(LEASE, {"spec": {"holderIdentity": "thief"}}).ok
    assert replica.code() == 1
    replica.forget()


def terminated(replica: Replica) -> None:
    assert replica.stop() == 0


def away(replica: Replica) -> None:
    replica.running.stop_process("kube-apiserver", kill=True)
    assert replica.code() == 1
    replica.running.start_process("kube-apiserver")
    replica.running.wait_ready()


def silent(replica: Replica) -> None:
    replica.running.pause_process("kube-apiserver")
    assert replica.code() == 1
    replica.running.resume_process("kube-apiserver")
    replica.running.wait_ready()


@pytest.mark.parametrize(
    ("end", "lease", "level", "why"),
    [
        pytest.param(terminated, CALM_LEASE, "INFO", "it was told to stop", id="SIGTERM"),
        pytest.param(stolen, CALM_LEASE, "ERROR", "is now held by thief", id="another holder"),
        pytest.param(away, SHORT_LEASE, "ERROR", "not renewed within 8 s", id="API server gone"),
        pytest.param(
            silent, SHORT_LEASE, "ERROR", "not renewed within 8 s", id="API server silent"
        ),
    ],
)
def test_a_leader_that_ends_says_why_in_one_line(
    leader: Replica, end: Callable[[Replica], None], level: str, why: str
) -> None:
    end(leader)
    told = leader.told()
    assert "Traceback" not in told, told
    endings = [line for line in told.splitlines() if "this leader ends: " in line]
    # kopf's own lines are about single requests, and come before the end.
    errors = [line for line in told.splitlines() if " ERROR gpu_scheduler." in line]
    after = told.partition("this leader ends: ")[2]
    assert len(endings) == 1, told
    assert f" {level} " in endings[0]
    assert why in endings[0]
    assert errors == (endings if level == "ERROR" else []), told
    assert " ERROR " not in after, told
    assert all(line[:2] == "20" for line in told.splitlines()), told  # nothing of several lines


FAULTY = Path(__file__).with_name("faulty_operator.py")


def lease_of(running: Running) -> Json:
    spec: Json = administrator(running).get(LEASE).body["spec"]
    return spec


@contextmanager
def two(running: Running, program: bool | Path = False) -> Iterator[tuple[Replica, Replica]]:
    """A leader and a stand-by, which has looked."""
    leader = Replica(running, "first", CALM_LEASE, program=program).start()
    standby = Replica(running, "second", CALM_LEASE)
    try:
        leader.wait_leading()
        standby.start()
        until(lambda: "standing by" in standby.told(), "the other one stands by")
        for _ in range(2):  # its first look comes at once
            renewed = lease_of(running)["renewTime"]
            until(lambda at=renewed: lease_of(running)["renewTime"] != at, "the leader renews")
        yield leader, standby
    finally:
        for replica in (leader, standby):
            if replica.alive():
                replica.kill()
        leader.forget()


@pytest.mark.parametrize(
    ("end", "program", "code"),
    [(Replica.stop, False, 0), (Replica.fail, FAULTY, 1)],
    ids=["told to stop", "a part failed"],
)
def test_the_lease_is_given_back_before_the_process_ends_and_another_leads(
    running: Running, end: Callable[[Replica], int], program: bool | Path, code: int
) -> None:
    with two(running, program) as (leader, standby):
        before = lease_of(running)
        assert before["holderIdentity"].startswith("first_")
        assert end(leader) == code
        assert not lease_of(running)["holderIdentity"].startswith("first_")
        standby.wait_leading()
        after = lease_of(running)
        assert after["holderIdentity"].startswith("second_")
        assert after["leaseTransitions"] == before.get("leaseTransitions", 0) + 1
        (line,) = (each for each in leader.told().splitlines() if "this leader ends: " in each)
        assert ("a fault that a test put in" in line) is (code == 1)
        assert ("in fail\n" in leader.told()) is (code == 1)  # of the traceback


def test_a_leader_whose_lease_is_deleted_makes_it_again_and_leads_on(running: Running) -> None:
    admin = administrator(running)
    with two(running) as (leader, standby):
        before = admin.get(LEASE).body
        assert admin.send("DELETE", LEASE).ok
        after: Json = until(
            lambda: admin.get(LEASE).body.get("spec") and admin.get(LEASE).body, "it is made again"
        )
        assert after["metadata"]["uid"] != before["metadata"]["uid"]
        assert after["spec"]["holderIdentity"] == before["spec"]["holderIdentity"]
        assert leader.alive() and not standby.synced()
