"""Which namespaces rights are asked for."""

from tests.unit.state.builders import make_gpujob, make_project
from tests.unit.web.dashboard.fakes import Time

from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.web.dashboard.namespaces import SECONDS, WorkNamespaces


def test_those_with_work_and_those_of_projects() -> None:
    state, time = ClusterState(), Time()
    namespaces = WorkNamespaces(lambda: state, time)
    assert namespaces() == frozenset()
    state.project_changed(make_project("vision", "a", "b"))
    job = make_gpujob()
    state.gpujob_changed(job)
    time.now += SECONDS
    assert namespaces() == {"a", "b", job.namespace}


def test_the_same_object_while_nothing_changes() -> None:
    state, time = ClusterState(), Time()
    state.project_changed(make_project("vision", "a"))
    namespaces = WorkNamespaces(lambda: state, time)
    before = namespaces()
    time.now += SECONDS
    assert namespaces() is before


def test_a_stand_by_knows_of_none() -> None:
    assert WorkNamespaces(lambda: None, Time())() == frozenset()
