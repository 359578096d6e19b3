"""Contexts are charged, and what their limits set aside for kernels like any other memory."""

import os
import signal
import threading
from collections.abc import Callable

import pytest
from tests.native.container import OUT_OF_MEMORY, Container
from tests.native.cuda import MIB, SUCCESS, Cuda, Number, wait_until_delayed
from tests.native.partner import Partner

STACK, PRINTF, HEAP = 0, 1, 2
THREADS = 108 * 2048  # of the pretended device, at a time
CONTEXT_MIB = 300


@pytest.fixture
def box(container: Callable[..., Container]) -> Container:
    return container(cap_mib=1024)


def free_after(*values: tuple[int, int]) -> list[object]:
    """Set limits one after the other; the answer to each, and what is free then."""
    cuda, found = Cuda(), list[object]()
    for limit, value in values:
        found += [cuda.cuCtxSetLimit(limit, value), cuda.free_mib()]
    return found


def test_a_heap_for_kernels_is_charged_and_refused_over_the_cap(box: Container) -> None:
    asked = [(HEAP, 520 * MIB), (HEAP, 2000 * MIB), (HEAP, 264 * MIB), (HEAP, 8 * MIB)]
    found = box.call(f"{__name__}:free_after", *asked)
    # 8 MiB of it are the context's own.
    assert found == [0, 512, OUT_OF_MEMORY, 512, 0, 768, 0, 1024]
    assert box.gpu.peak_mib() <= 1024 + CONTEXT_MIB


def test_stacks_count_for_every_thread_that_can_run(box: Container) -> None:
    mib = THREADS * 1024 // MIB  # of one more KiB each
    found = box.call(f"{__name__}:free_after", (STACK, 2048), (STACK, 64 << 10), (PRINTF, 65 * MIB))
    assert found == [0, 1024 - mib, OUT_OF_MEMORY, 1024 - mib, 0, 1024 - mib - 64]


def set_and_reset() -> list[float]:
    """A heap goes with its context, and one that the driver refused was never charged."""
    cuda = Cuda(context=False)
    cuda.ok("cuInit", 0)
    context = cuda.get("cuCtxCreate_v2", 0, 0)
    cuda.ok("cuCtxSetLimit", HEAP, 520 * MIB)
    assert cuda.cuCtxSetLimit(99, 1) != 0
    with_it = cuda.free_mib()
    cuda.ok("cuCtxDestroy_v2", context)
    cuda.ok("cuCtxCreate_v2", Number(), 0, 0)
    return [with_it, cuda.free_mib()]


def test_it_is_given_back_with_the_context(box: Container) -> None:
    assert box.call(f"{__name__}:set_and_reset") == [512, 1024]


def destroy_the_last_while_one_is_made() -> float:
    """What is free after one thread destroyed the only context while another made the next."""
    cuda = Cuda(context=False)
    cuda.ok("cuInit", 0)
    first, second = Number(), Number()
    cuda.ok("cuCtxCreate_v2", first, 0, 0)
    thread = threading.Thread(target=lambda: cuda.ok("cuCtxCreate_v2", second, 0, 0))
    thread.start()
    wait_until_delayed(thread)
    cuda.ok("cuCtxDestroy_v2", int(first))
    thread.join()
    cuda.ok("cuCtxSetCurrent", int(second))
    return cuda.free_mib()


def test_a_context_that_is_being_made_stays_charged(container: Callable[..., Container]) -> None:
    box = container(cap_mib=1024, context_mib=100)
    box.gpu.configure(context_mib=100, context_delay_us=500_000)
    assert box.call(f"{__name__}:destroy_the_last_while_one_is_made") == 924


def crowd(box: Container, told: str | None) -> list[int]:
    """Twenty children on 10 GiB, each with a context and a page: how many got it, how many not."""
    box.cap_mib, box.context_mib = 10 << 10, None
    file = box.folder / "context-mib"
    if told is not None:
        file.write_text(told)
    done = box.run([box.programs / "crowd", "20", "512"], GPUCAP_CONTEXT_FILE=str(file))
    return [int(word) for word in done.stdout.split()]


def test_twenty_children_have_room_once_a_context_was_measured(box: Container) -> None:
    assert crowd(box, "304\n") == [20, 0, 0]
    assert box.log() == []


def test_what_was_measured_is_charged_however_small_the_cap(box: Container) -> None:
    """Each of twenty was charged an eighth of the cap, so that eight of 304 MiB fitted 1000."""
    box.cap_mib, box.context_mib = 1000, None
    file = box.folder / "context-mib"
    file.write_text("304\n")
    done = box.run([box.programs / "crowd", "20", "2"], GPUCAP_CONTEXT_FILE=str(file))
    assert done.stdout.split()[0] == "3"
    assert box.gpu.peak_mib() <= 1000
    assert box.log() == []


def contexts_until_refused() -> int:
    cuda, count = Cuda(context=False), 0
    cuda.ok("cuInit", 0)
    while cuda.cuCtxCreate_v2(Number(), 0, 0) == 0:
        count += 1
    return count


def test_a_cap_for_one_context_says_so_at_the_first(box: Container) -> None:
    box.cap_mib, box.context_mib = 500, None
    file = box.folder / "context-mib"
    file.write_text("304\n")
    found = box.call(f"{__name__}:contexts_until_refused", GPUCAP_CONTEXT_FILE=str(file))
    assert found == 1
    assert box.log() == [
        "contexts: one takes some 304 MiB of this device: a cap of 500 MiB holds 1 of them, in all "
        "its processes together"
    ]


@pytest.mark.alone
def test_what_the_agent_measured_of_one_is_charged_for_the_next(box: Container) -> None:
    box.cap_mib, box.context_mib = 1000, None
    with Partner(box) as first:
        assert box.ledger().held_mib() == 300, "the process has measured it"
        box.write_context_mib(first.pid, 310)
        first.new_context()
        assert box.ledger().held_mib() == 620
        box.write_context_mib(first.pid, 600)
        assert first.new_context_answer() == SUCCESS
        assert first.new_context_answer() == OUT_OF_MEMORY


def test_what_the_agent_measured_of_one_process_is_charged_for_another(box: Container) -> None:
    box.cap_mib, box.context_mib = 800, None
    with Partner(box) as first:
        box.write_context_mib(first.pid, 300)
        with Partner(box) as second:
            assert box.ledger().held_mib() == 600
            assert second.new_context_answer() == OUT_OF_MEMORY


@pytest.mark.alone
def test_where_nobody_measured_the_first_context_is(box: Container) -> None:
    """Each was charged an eighth of the cap, so that eight of 300 MiB fitted 1000."""
    box.cap_mib, box.context_mib = 1000, None
    assert box.call(f"{__name__}:contexts_until_refused") == 3
    assert box.gpu.peak_mib() <= 1000


@pytest.mark.alone
def test_where_nobody_measured_the_first_context_says_what_a_small_cap_holds(
    box: Container,
) -> None:
    box.cap_mib, box.context_mib = 500, None
    assert box.call(f"{__name__}:contexts_until_refused") == 1
    assert box.log() == [
        "contexts: one takes some 300 MiB of this device: a cap of 500 MiB holds 1 of them, in all "
        "its processes together"
    ]


@pytest.mark.alone
def test_a_context_that_turns_out_larger_than_the_cap_is_undone(box: Container) -> None:
    box.cap_mib, box.context_mib = 250, None
    assert box.call(f"{__name__}:contexts_until_refused") == 0
    assert box.call(f"{__name__}:retained_until_refused") == 0
    assert box.gpu.used_mib() == 0
    assert box.ledger().held_mib() == 0


def retained_until_refused() -> int:
    cuda = Cuda(context=False)
    cuda.ok("cuInit", 0)
    return int(cuda.cuDevicePrimaryCtxRetain(Number(), 0) == 0)


@pytest.mark.alone
def test_where_nobody_measured_processes_are_charged_what_the_first_one_took(
    box: Container,
) -> None:
    box.cap_mib, box.context_mib = 1000, None
    with Partner(box) as first, Partner(box), Partner(box):
        assert box.ledger().held_mib() == 900
        assert first.new_context_answer() == OUT_OF_MEMORY


@pytest.mark.alone
def test_what_a_zombie_was_charged_for_its_context_is_not_charged_for_the_next(
    box: Container,
) -> None:
    box.cap_mib, box.context_mib = 1000, None
    with Partner(box) as first:
        box.write_context_mib(first.pid, 400)
        os.kill(first.pid, signal.SIGKILL)
        os.waitid(os.P_PID, first.pid, os.WEXITED | os.WNOWAIT)
        with Partner(box):
            assert box.ledger().held_mib() == CONTEXT_MIB


@pytest.mark.alone
def test_twenty_that_begin_at_once_keep_what_fits(box: Container) -> None:
    box.cap_mib, box.context_mib = 1000, None
    box.gpu.configure(context_delay_us=100_000)
    done = box.run([box.programs / "crowd", "20", "2"])
    assert done.stdout.split()[0] == "3"
    assert box.gpu.peak_mib() <= 1000


def made_by_threads(count: int) -> list[int]:
    """Contexts that so many threads begin at once: the answers to all."""
    cuda, answers = Cuda(context=False), list[int]()
    cuda.ok("cuInit", 0)
    start = threading.Barrier(count)

    def make() -> None:
        start.wait()
        answers.append(cuda.cuCtxCreate_v2(Number(), 0, 0))

    threads = [threading.Thread(target=make) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(answers)


@pytest.mark.alone
@pytest.mark.parametrize("count", [3, 8])
def test_threads_that_begin_at_once_get_as_many_as_fit(box: Container, count: int) -> None:
    box.cap_mib, box.context_mib = 1000, None
    box.gpu.configure(context_delay_us=100_000)
    found = box.call(f"{__name__}:made_by_threads", count)
    assert found == [SUCCESS] * 3 + [OUT_OF_MEMORY] * (count - 3)
    assert box.gpu.peak_mib() <= 1000


@pytest.mark.alone
def test_a_process_after_another_is_not_charged_what_a_neighbour_took_meanwhile(
    container: Callable[..., Container], box: Container
) -> None:
    beside = container(cap_mib=4000)
    box.cap_mib, box.context_mib = 400, None
    with Partner(beside) as neighbour:
        neighbour.allocate(500)
        with Partner(box) as first:
            box.write_context_mib(first.pid, 300)
        neighbour.allocate(400)
        with Partner(box) as second:
            assert second.allocate_answer(350) == SUCCESS


@pytest.mark.alone
def test_beside_a_neighbour_the_second_context_tells_what_one_takes(
    container: Callable[..., Container], box: Container
) -> None:
    """What others hold is not this container's: its first context is charged as before."""
    beside = container(cap_mib=4000)
    box.cap_mib, box.context_mib = 1000, None
    with beside.hold("alloc", 500), Partner(box) as first:
        assert box.ledger().held_mib() == 125
        with Partner(box):
            assert box.ledger().held_mib() == 425
        assert first.new_context_answer() == SUCCESS
        assert box.ledger().held_mib() == 600
        assert first.new_context_answer() == SUCCESS
        assert first.new_context_answer() == OUT_OF_MEMORY


@pytest.mark.alone
def test_what_a_neighbour_holds_is_charged_to_no_first_context(
    container: Callable[..., Container], box: Container
) -> None:
    beside = container(cap_mib=4000)
    box.cap_mib, box.context_mib = 400, None
    with beside.hold("alloc", 500), Partner(box) as first:
        assert first.allocate_answer(350) == SUCCESS


@pytest.mark.parametrize("told", [None, "", "4000", "0", "-1", "much", "3 0 4"])
def test_without_a_figure_that_can_be_true_the_usual_one_is_charged(
    box: Container, told: str | None
) -> None:
    got, *_ = crowd(box, told)
    assert got == 19, "512 MiB each, and pages"


@pytest.mark.alone
def test_what_another_process_has_in_two_contexts_is_not_taken_for_one(box: Container) -> None:
    box.cap_mib, box.context_mib = 1000, None
    with Partner(box) as first:
        first.new_context()
        with Partner(box):
            assert box.ledger().held_mib() == 900
