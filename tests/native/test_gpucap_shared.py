"""Memory that several processes hold is charged once, as long as anybody of the container does."""

import os
import select
import signal
from collections.abc import Callable

import pytest
from tests.native.container import Container
from tests.native.cuda import OUT_OF_MEMORY, SUCCESS
from tests.native.partner import Partner, hand_over

CAP = 1024


@pytest.fixture
def box(container: Callable[..., Container]) -> Container:
    return container(cap_mib=CAP)


def left(partner: Partner) -> float:
    """What of the cap the container has left: what is told, and what is given."""
    free: float = partner.free_mib()
    assert partner.allocate_answer(int(free) + 2) == OUT_OF_MEMORY
    if free:
        handle = partner.allocate(free)
        partner.free(handle)
    return free


@pytest.mark.parametrize("kept_by", ["a duplicate", "a child", "another process", "a message"])
def test_a_descriptor_keeps_the_memory_charged_wherever_it_is(box: Container, kept_by: str) -> None:
    with Partner(box) as maker, Partner(box) as other:
        handle = maker.create(800)
        file = maker.export(handle)
        maker.release(handle)
        copy = child = None
        if kept_by == "a duplicate":
            copy = maker.dup(file)
        elif kept_by == "a child":
            child = maker.fork()
        else:
            name = f"keeps-{maker.pid}"
            other.listen(name)
            maker.send(file, name)
            if kept_by == "another process":
                copy = other.receive()
        maker.close(file)
        assert (left(maker), left(other)) == (224, 224)
        if child:
            maker.end_child(child)
        elif kept_by == "a message":
            other.hang_up()
        else:
            (maker if kept_by == "a duplicate" else other).close(copy)
        assert maker.create_answer(CAP) == SUCCESS, "it is free"
    assert box.gpu.used_mib() == 0
    assert box.gpu.peak_mib() <= CAP + 2 * 300


def test_what_a_killed_process_held_is_charged_while_its_child_has_its_descriptors(
    box: Container,
) -> None:
    with Partner(box) as other, Partner(box) as maker:
        maker.allocate(500)
        child = maker.fork()
        end = os.pidfd_open(child)
        try:
            maker.process.kill()
            maker.process.wait()
            assert left(other) == CAP - 500
            (line,) = box.log()
            assert f"what process {maker.pid} held is charged though that is gone" in line
            with Partner(box) as next_one:
                assert left(next_one) == CAP - 500
        finally:
            signal.pidfd_send_signal(end, signal.SIGKILL)
            select.select([end], [], [])
            os.close(end)
        assert other.allocate_answer(CAP) == SUCCESS


@pytest.mark.parametrize("ends", ["released", "killed"])
@pytest.mark.parametrize("way", ["a descriptor", "an IPC handle"])
def test_who_holds_it_after_its_maker_pays(box: Container, way: str, ends: str) -> None:
    with Partner(box) as maker, Partner(box) as other:
        if way == "a descriptor":
            made = maker.create(800)
            file = hand_over(maker, maker.export(made), other)
            held = other.import_(file)
            other.close(file)
        else:
            made = maker.allocate(800)
            answer, held = other.ipc_open(maker.ipc_handle(made))
            assert answer == SUCCESS
        assert (left(maker), left(other)) == (224, 224), "both hold it, it is charged once"
        if ends == "killed":
            maker.kill()
        elif way == "a descriptor":
            maker.release(made)
        else:
            maker.free(made)
        assert left(other) == 224
        if way == "a descriptor":
            other.release(held)
        else:
            other.ipc_close(held)
        assert left(other) == CAP


@pytest.mark.parametrize("ends", ["freed", "killed"])
def test_a_small_allocation_that_others_have_open_keeps_its_page_charged(
    box: Container, ends: str
) -> None:
    with Partner(box) as maker, Partner(box) as other:
        made, beside = maker.allocate(0.25), maker.allocate(0.25)
        answer, held = other.ipc_open(maker.ipc_handle(made))
        assert answer == SUCCESS
        assert left(other) == CAP - 4, "a page by itself, and the one that it was in"
        if ends == "killed":
            maker.kill()
            assert other.allocate_answer(CAP) == OUT_OF_MEMORY, "the dead are looked for then"
        else:
            maker.free(made)
            assert left(other) == CAP - 4
            maker.free(beside)
        assert left(other) == CAP - 2
        other.ipc_close(held)
        assert left(other) == CAP


def test_what_is_imported_where_it_was_made_is_charged_once(box: Container) -> None:
    with Partner(box) as maker:
        handle = maker.create(400)
        file = maker.export(handle)
        again = maker.import_(file)
        maker.close(file)
        maker.release(handle)
        assert left(maker) == 624
        at = maker.map(again, 400)
        maker.release(again)
        assert left(maker) == 624
        maker.unmap(at, 400)
        assert left(maker) == CAP


@pytest.mark.parametrize("way", ["a descriptor", "an IPC handle"])
def test_it_goes_from_one_to_the_next_and_is_free_after_the_last(box: Container, way: str) -> None:
    with Partner(box) as maker, Partner(box) as second, Partner(box) as third:
        if way == "a descriptor":
            handle = maker.create(800)
            first, other = maker.export(handle), maker.export(handle)
            for each, file in ((second, first), (third, other)):
                there = hand_over(maker, file, each)
                each.import_(there)
                each.close(there)
        else:
            name = maker.ipc_handle(maker.allocate(800))
            for each in (second, third):
                assert each.ipc_open(name)[0] == SUCCESS
        maker.kill()
        assert left(third) == 224
        second.kill()
        assert left(third) == 224
        third.kill()
        with Partner(box) as last:
            assert left(last) == CAP


def test_a_dead_makers_memory_is_charged_to_who_imports_it_then(box: Container) -> None:
    with Partner(box) as maker, Partner(box) as other:
        file = hand_over(maker, maker.export(maker.create(800)), other)
        maker.kill()
        other.import_(file)
        assert left(other) == 224


def test_memory_of_another_container_is_its_own(
    container: Callable[..., Container], box: Container
) -> None:
    with Partner(box) as maker, Partner(container(cap_mib=CAP)) as other:
        file = hand_over(maker, maker.export(maker.create(800)), other)
        other.import_(file)
        assert other.ipc_open(maker.ipc_handle(maker.allocate(100)))[0] == SUCCESS
        assert (left(maker), left(other)) == (124, CAP)


def test_more_shared_memory_than_the_ledger_has_room_for(box: Container) -> None:
    with Partner(box) as maker:
        files = []
        for _ in range(100):
            handle = maker.create(2)
            files.append(maker.export(handle))
            maker.release(handle)
        assert left(maker) == CAP - 200
        for file in files:
            maker.close(file)
        assert maker.create_answer(CAP) == SUCCESS


def test_a_context_takes_what_was_opened_in_it(box: Container) -> None:
    with Partner(box) as maker, Partner(box) as other:
        context = other.new_context()
        pointer = maker.allocate(400)
        other.ipc_open(maker.ipc_handle(pointer))
        maker.free(pointer)
        assert left(maker) == 624
        other.destroy_context(context)
        assert left(maker) == CAP
