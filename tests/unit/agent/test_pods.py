from tests.unit.agent.builders import CONTAINER, OTHER_POD, POD, ordered, orders
from tests.unit.agent.fake_driver import gpu

from gpu_scheduler.agent.pods import REMEMBER_SECONDS, Pods
from gpu_scheduler.api.orders import Neighbour


def test_a_container_is_known_as_the_operator_says() -> None:
    pods = Pods()
    pods.take(orders(ordered(kill=True)), 0.0)
    ((found,),) = pods.containers.values()
    assert (found.pod.namespace, found.pod.name, found.pod.job) == ("team-a", "train-0", "train")
    assert (found.pod.project, found.pod.kill) == ("project-a", True)
    assert (found.own.index, found.own.name, found.own.id) == (0, "main", CONTAINER)
    assert found.own.caps_mib == {gpu(0): 20000}
    assert found.own.promised
    assert not found.ended


def test_other_pods_are_told_apart() -> None:
    pods = Pods()
    other = Neighbour(OTHER_POD, "kube-system", "dcgm", whole_gpus=True)
    pods.take(orders(others=(other,)), 0.0)
    assert pods.others == {OTHER_POD: other}


def test_only_a_change_of_ours_is_news() -> None:
    news: list[int] = []
    pods = Pods(lambda: news.append(1))
    pods.take(orders(ordered()), 0.0)
    pods.take(orders(ordered(), lease_version="9"), 1.0)
    assert len(news) == 1
    pods.take(orders(ordered(caps={gpu(0): 5000})), 2.0)
    assert len(news) == 2


def test_a_pod_that_left_is_known_as_ended_for_a_while() -> None:
    pods = Pods()
    pods.take(orders(ordered()), 0.0)
    pods.take(orders(), 5.0)
    assert not pods.containers
    assert [each.ended for each in pods.at(5.0 + REMEMBER_SECONDS - 1)[POD]] == [True]
    assert pods.at(5.0 + REMEMBER_SECONDS) == {}


def test_a_pod_that_came_back_is_as_it_was() -> None:
    pods = Pods()
    pods.take(orders(ordered()), 0.0)
    pods.take(orders(), 1.0)
    pods.take(orders(ordered()), 2.0)
    assert [each.ended for each in pods.at(3.0)[POD]] == [False]
