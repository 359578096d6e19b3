"""A leader that ends says why in one line, and nothing else of its end looks like a defect."""

from collections.abc import Callable, Iterator

import pytest
from tests.api.conftest import administrator, own_cluster
from tests.api.replica import CALM_LEASE, LEASE, Replica

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


def gone(replica: Replica) -> None:
    assert administrator(replica.running).send("DELETE", LEASE).ok
    assert replica.code() == 1


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
        pytest.param(gone, CALM_LEASE, "ERROR", "was deleted", id="Lease deleted"),
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
