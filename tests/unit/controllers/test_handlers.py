"""kopf tells us of events, and writes nothing to anybody's objects."""

import threading
from typing import Any

import kopf
import pytest
import uvloop
from kopf._core.actions.invocation import invoke

from gpu_scheduler.controllers.handlers import registry, settings
from gpu_scheduler.controllers.session import KopfTransport
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.connection import Connection
from gpu_scheduler.kube.unexpected import counts

SERVER = Connection(server="http://10.0.0.1:8080", token="t")
CLIENT = Client(SERVER)


async def never(path: str) -> str:
    raise AssertionError("nothing is listed here")


class FakeIntake:
    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.threads: set[threading.Thread] = set()

    def __getattr__(self, name: str) -> Any:
        def tell(*args: Any) -> None:
            self.told.append((name, *args))
            self.threads.add(threading.current_thread())

        return tell


def handlers(custom_resources: FakeIntake) -> dict[str, Any]:
    found = registry(custom_resources, CLIENT, never)._watching.get_all_handlers()  # type: ignore[arg-type]
    return {handler.selector.any_name: handler for handler in found}


def pass_on(
    custom_resources: FakeIntake, plural: str, kind: str | None, raw: dict[str, Any]
) -> None:
    """Let kopf call the handler, in its own way."""
    event = {"event": {"type": kind, "object": raw}, "body": raw}
    uvloop.run(invoke(handlers(custom_resources)[plural].fn, settings=settings(), kwargs=event))


def body(**meta: str) -> dict[str, Any]:
    return {"metadata": {"name": "x", "uid": "u", **meta}}


def test_every_kind_of_ours_is_watched_and_nothing_else() -> None:
    found = handlers(FakeIntake())
    assert set(found) == {"gpujobs", "gpuprojects", "gpunodes", "gpuclasses"}
    for handler in found.values():
        assert (handler.selector.group, handler.selector.version) == (
            "gpu-scheduler.io",
            "v1alpha1",
        )


def test_only_event_handlers_which_need_no_finalizer_and_no_annotation() -> None:
    made = registry(FakeIntake(), CLIENT, never)  # type: ignore[arg-type]
    assert list(made._changing.get_all_handlers()) == []
    assert list(made._spawning.get_all_handlers()) == []
    assert list(made._indexing.get_all_handlers()) == []


@pytest.mark.parametrize("kind", [None, "ADDED", "MODIFIED"])
@pytest.mark.parametrize(
    ("plural", "method"),
    [
        ("gpujobs", "gpujob"),
        ("gpuprojects", "project"),
        ("gpunodes", "node"),
        ("gpuclasses", "gpuclass"),
    ],
)
def test_news_are_passed_on(kind: str | None, plural: str, method: str) -> None:
    """``None`` is kopf's word for what it found in its first list."""
    custom_resources, raw = FakeIntake(), body(namespace="ns")
    pass_on(custom_resources, plural, kind, raw)
    assert [name for name, _ in custom_resources.told] == [method]
    assert custom_resources.told[0][1] is raw
    assert custom_resources.threads == {threading.current_thread()}  # that of the event loop


def test_kopf_holds_nothing_of_what_was_taken_in() -> None:
    """It keeps an event until it has heard nothing of the object for seconds."""
    raw = body(namespace="ns") | {"spec": {"args": ["x" * 1000]}, "status": {"phase": "Pending"}}
    pass_on(FakeIntake(), "gpujobs", "ADDED", raw)
    assert raw == body(namespace="ns")


@pytest.mark.parametrize(
    ("plural", "told"),
    [
        ("gpujobs", ("gpujob_gone", "ns", "x", "u")),
        ("gpuprojects", ("project_gone", "x", "u")),
        ("gpunodes", ("node_gone", "x", "u")),
        ("gpuclasses", ("gpuclass_gone", "x", "u")),
    ],
)
def test_deletions_are_passed_on(plural: str, told: tuple[str, ...]) -> None:
    custom_resources, raw = FakeIntake(), body(namespace="ns")
    pass_on(custom_resources, plural, "DELETED", raw)
    assert custom_resources.told == [told]


def test_kopf_posts_nothing_and_elects_nobody() -> None:
    chosen = settings()
    assert not chosen.posting.enabled
    assert chosen.peering.standalone
    assert chosen.scanning.disabled


async def test_kopf_speaks_through_our_own_client() -> None:
    async with Client(SERVER) as client:
        (login,) = registry(FakeIntake(), client, never)._activities.get_all_handlers()  # type: ignore[arg-type]
        info = await login.fn()  # type: ignore[call-arg, misc]
        assert isinstance(info, kopf.AiohttpSession)
        assert info.server == SERVER.server
        assert isinstance(info.aiohttp_session, KopfTransport)


def test_a_handler_that_fails_is_counted_and_kopf_hears_nothing_of_it() -> None:
    class Broken(FakeIntake):
        def __getattr__(self, name: str) -> Any:
            def fail(*_: Any) -> None:
                raise RuntimeError("a mistake of ours")

            return fail

    before = counts["kopf"]
    pass_on(Broken(), "gpujobs", "ADDED", body(namespace="ns"))
    assert counts["kopf"] == before + 1
