"""The handler's view must follow what exists, whatever order lists and events come in."""

import logging

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gpu_scheduler.kube.objects import Meta, Pod
from gpu_scheduler.kube.store import Store

NAMES = ["a", "b", "c"]


def make_pod(name: str, uid: str, version: int) -> Pod:
    return Pod(metadata=Meta(name=name, namespace="team", uid=uid, resource_version=str(version)))


class Ledger:
    """A handler that checks what it is told."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.calls = 0

    def changed(self, obj: Pod) -> None:
        meta = obj.metadata
        self.calls += 1
        same_name = [p for p in self.pods.values() if p.metadata.name == meta.name]
        assert all(p.metadata.uid == meta.uid for p in same_name), "the old one is still there"
        self.pods[meta.uid] = obj

    def gone(self, namespace: str, name: str, uid: str) -> None:
        self.calls += 1
        pod = self.pods.pop(uid)  # KeyError: told twice, or never told of it
        assert (pod.metadata.namespace, pod.metadata.name) == (namespace, name)


class StoreMachine(RuleBasedStateMachine):
    """Objects come, change and go; some news get lost until the next list."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.store: Store[Pod] = Store(self.ledger)
        self.state: dict[str, Pod] = {}
        self.unreadable: dict[str, Pod] = {}
        self.version = 0
        self.in_step = True

    @rule(name=st.sampled_from(NAMES), heard=st.booleans())
    def put(self, name: str, heard: bool) -> None:
        self.version += 1
        old = self.state.get(name)
        uid = old.metadata.uid if old else f"u{self.version}"
        self.state[name] = make_pod(name, uid, self.version)
        if heard and self.in_step:
            self.store.upsert(self.state[name])
        else:
            self.in_step = False

    @rule(name=st.sampled_from(NAMES), heard=st.booleans())
    def delete(self, name: str, heard: bool) -> None:
        old = self.state.pop(name, None)
        if old is None:
            return
        if heard and self.in_step:
            self.store.remove(old.metadata)
        else:
            self.in_step = False

    @rule()
    def list_again(self) -> None:
        self.store.replace(self.state.values(), [])
        self.in_step = True

    @rule(name=st.sampled_from(NAMES))
    def list_with_one_unreadable(self, name: str) -> None:
        readable = [p for n, p in self.state.items() if n != name]
        bad = [p.metadata for n, p in self.state.items() if n == name]
        had = {u for u, p in self.ledger.pods.items() if p.metadata.name == name}
        self.store.replace(readable, bad)
        has = {u for u, p in self.ledger.pods.items() if p.metadata.name == name}
        assert has == had & {m.uid for m in bad}
        self.in_step = False

    @invariant()
    def the_sink_knows_the_world(self) -> None:
        if self.in_step:
            expected = {p.metadata.uid: p for p in self.state.values()}
            assert self.ledger.pods == expected
        assert len(self.store) == len(self.ledger.pods)


TestMirror = StoreMachine.TestCase
TestMirror.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def test_a_namesake_ends_the_one_before_even_without_a_deletion() -> None:
    ledger = Ledger()
    mirror: Store[Pod] = Store(ledger)
    mirror.upsert(make_pod("a", "old", 1))
    mirror.upsert(make_pod("a", "new", 2))
    assert list(ledger.pods) == ["new"]


def test_an_unreadable_namesake_ends_the_one_before() -> None:
    ledger = Ledger()
    mirror: Store[Pod] = Store(ledger)
    mirror.upsert(make_pod("a", "old", 1))
    mirror.replace([], [make_pod("a", "new", 2).metadata])
    assert ledger.pods == {}


def test_a_list_without_news_costs_no_call() -> None:
    ledger = Ledger()
    mirror: Store[Pod] = Store(ledger)
    pods = [make_pod(name, f"u-{name}", 5) for name in NAMES]
    mirror.replace(pods, [])
    mirror.replace(pods, [])
    assert ledger.calls == 3


def test_the_deletion_of_an_older_namesake_is_not_ours() -> None:
    ledger = Ledger()
    mirror: Store[Pod] = Store(ledger)
    mirror.upsert(make_pod("a", "new", 9))
    mirror.remove(make_pod("a", "old", 8).metadata)
    assert list(ledger.pods) == ["new"]


def test_a_sink_that_raises_is_logged_and_told_of_the_next_object(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Picky(Ledger):
        def changed(self, obj: Pod) -> None:
            if obj.metadata.name == "a":
                raise ValueError("no")
            super().changed(obj)

    ledger = Picky()
    mirror: Store[Pod] = Store(ledger)
    with caplog.at_level(logging.ERROR):
        mirror.replace([make_pod("a", "1", 1), make_pod("b", "2", 2)], [])
    assert list(ledger.pods) == ["2"]
    assert "team/a" in caplog.text
