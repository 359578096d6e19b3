"""Random programs against a model of a driver's accounting: ``make caps-programs`` for 5,000."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.native.build import NativeBuild
from tests.native.caps_programs import program as programs
from tests.native.caps_programs.__main__ import UNMEASURED, is_measured
from tests.native.caps_programs.generator import program
from tests.native.caps_programs.minimise import minimised
from tests.native.caps_programs.model import CONTEXT, MIB, Model
from tests.native.caps_programs.program import Op, Program
from tests.native.caps_programs.stage import Stage

CAP_MIB, PROGRAMS = 200, 20
TAKES_MORE: Program = (
    (Op("spawn", 0, made=1),),
    (Op("retain", 1),),
    (Op("alloc", 1, made=2, kib=64 << 10), Op("alloc", 1, 1, made=3, kib=64 << 10)),
    (Op("alloc", 1, made=4, kib=64 << 10),),
)


@pytest.fixture(scope="module")
def stage(native: NativeBuild, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    made = Stage(tmp_path_factory.mktemp("caps"), native, CAP_MIB)
    yield made
    made.close()


def test_programs_are_never_above_their_cap_and_leave_nothing(stage: Stage) -> None:
    for seed in range(1, PROGRAMS + 1):
        fault = stage.play(program(seed))
        assert fault is None, f"seed {seed}: {fault}; python -m tests.native.caps_programs"


@pytest.fixture(scope="module")
def unmeasured(native: NativeBuild, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    made = Stage(tmp_path_factory.mktemp("caps"), native, CAP_MIB, measured=False)
    yield made
    made.close()


def test_programs_whose_contexts_nobody_measured_are_never_above_their_cap(
    unmeasured: Stage,
) -> None:
    for seed in range(UNMEASURED, PROGRAMS + 1, UNMEASURED):
        assert not is_measured(seed)
        fault = unmeasured.play(program(seed))
        assert fault is None, f"seed {seed}: {fault}; python -m tests.native.caps_programs"


def test_what_a_dead_process_learned_of_a_context_is_forgotten(unmeasured: Stage) -> None:
    """What only a forked child keeps looked like part of one, when nobody was charged for it."""
    then = (Op("fork", 1, made=3), Op("fork", 3, made=4), Op("exit", 1), Op("retain", 4))
    fault = unmeasured.play(tuple((op,) for op in (*MAPPED, *then)))
    assert fault is None, str(fault)


def test_a_process_that_is_ended_in_a_call_leaves_nothing(stage: Stage) -> None:
    begin = ((Op("spawn", 0, made=1),), (Op("retain", 1),), (Op("alloc", 1, made=2, kib=2048),))
    busy = (Op("alloc", 1, 1, made=3, kib=4096), Op("fork", 1, made=4), Op("kill", 1))
    for _ in range(5):
        fault = stage.play((*begin, busy))
        assert fault is None, str(fault)


def test_what_a_process_takes_without_the_library_is_found(
    native: NativeBuild, tmp_path: Path
) -> None:
    free = Stage(tmp_path, native, CAP_MIB, library=False)
    try:
        fault = free.play(TAKES_MORE)
    finally:
        free.close()
    assert fault is not None
    assert str(fault) == "step 3: 208 MiB are held, 8 above the cap"


def test_the_same_seed_is_the_same_program_and_survives_its_file() -> None:
    assert program(7) == program(7) != program(8)
    assert programs.read(programs.written(program(7)).splitlines()) == program(7)


def test_what_a_program_does_is_spread_over_all_that_can_be_done() -> None:
    from tests.native.caps_programs.model import DONE

    done = {op.what for seed in range(200) for step in program(seed) for op in step}
    assert done == DONE.keys()


def test_a_failing_program_is_made_as_short_as_it_can_be() -> None:
    def fails(tried: Program) -> bool:
        done = [op.what for step in tried for op in step]
        return "spawn" in done and done.count("kill") >= 1

    short = minimised(next(p for p in map(program, range(1, 99)) if fails(p)), fails)
    assert short is not None
    assert sorted(op.what for step in short for op in step) == ["kill", "spawn"]
    assert minimised(TAKES_MORE, fails) is None


def model_of(*ops: Op, exports_stay: bool = True) -> tuple[int, int]:
    """What is held at the end, MiB beyond contexts."""
    model = Model(exports_stay=exports_stay)
    for op in ops:
        assert model.allows(op), op
        model.did(op)
    contexts = sum(CONTEXT for process in model.processes.values() if process.primary)
    least, most = model.span()
    return (least - contexts) // MIB, (most - contexts) // MIB


TWO = (Op("spawn", 0, made=1), Op("spawn", 0, made=2), Op("retain", 1), Op("retain", 2))
SHARED = (
    *TWO,
    Op("exportable", 1, made=3, kib=8192),
    Op("export", 1, of=3),
    Op("import", 2, of=3, kib=8192),
)


@pytest.mark.parametrize(
    ("then", "stays", "kind"),
    [
        ((), 8, 8),
        ((Op("close", 1, of=3), Op("release", 1, of=3)), 8, 0),
        ((Op("kill", 1),), 8, 0),
        ((Op("kill", 1), Op("kill", 2)), 0, 0),
        ((Op("release", 1, of=3), Op("release", 2, of=3)), 8, 8),
        ((Op("map", 2, of=3), Op("release", 2, of=3), Op("kill", 1)), 8, 0),
    ],
)
def test_exported_memory_stays_until_the_last_lets_go(
    then: tuple[Op, ...], stays: int, kind: int
) -> None:
    assert model_of(*SHARED, *then) == (stays, stays)
    assert model_of(*SHARED, *then, exports_stay=False) == (kind, kind)


BEGIN = (Op("spawn", 0, made=1), Op("retain", 1))
REOPENED = (Op("reopen", 1), Op("retain", 1))


@pytest.mark.parametrize(
    "then",
    [
        (
            Op("graph", 1, made=2, kib=65536),
            Op("launch", 1, of=2),
            *REOPENED,
            Op("trim_graphs", 1),
        ),
        (Op("alloc", 1, made=2, kib=367), *REOPENED, Op("alloc", 1, made=3, kib=133)),
        (
            Op("alloc", 1, made=2, kib=367),
            *REOPENED,
            Op("alloc", 1, made=3, kib=133),
            Op("free", 1, of=3),
            Op("reset", 1, kib=65536),
        ),
        (Op("async", 1, made=2, kib=32768), *REOPENED, Op("sync", 1), Op("reset", 1)),
        (Op("exportable", 1, made=2, kib=8192), Op("export", 1, of=2), *REOPENED, Op("info", 1)),
        (Op("spawn", 0, made=2), Op("retain", 2), Op("alloc", 2, made=3, kib=38912))
        + (Op("open", 1, made=4, of=3), Op("free", 2, of=3), *REOPENED),
        (Op("context", 1, made=2), Op("alloc_in", 1, made=3, of=2, kib=512), *REOPENED)
        + (Op("context", 1, made=4), Op("destroy_context", 1, of=4), Op("reset", 1)),
    ],
)
def test_what_a_closed_driver_held_stays_charged_whatever_the_next_one_does(
    stage: Stage, then: tuple[Op, ...]
) -> None:
    fault = stage.play(tuple((op,) for op in (*BEGIN, *then)))
    assert fault is None, str(fault)


MAPPED = (
    Op("spawn", 0, made=1),
    Op("retain", 1),
    Op("exportable", 1, made=2, kib=8192),
    Op("map", 1, of=2),
)


@pytest.mark.parametrize(
    ("then", "uncharged_mib"),
    [
        ((Op("fork", 1, made=3), Op("kill", 1), Op("retain", 3)), 0),
        ((Op("fork", 1, made=3), Op("fork", 3, made=4), Op("kill", 3), Op("exit", 1)), 0),
        ((Op("release", 1, of=2), Op("fork", 1, made=3), Op("unmap", 1, of=2)), 8),
        ((Op("reopen", 1), Op("fork", 1, made=3), Op("kill", 1), Op("retain", 3)), 0),
        ((Op("fork", 1, made=3), Op("kill", 1), Op("retain", 3), Op("reopen", 3)), 0),
    ],
)
def test_what_its_maker_let_go_of_and_forked_children_alone_keep_is_charged_to_nobody(
    stage: Stage, then: tuple[Op, ...], uncharged_mib: int
) -> None:
    model = Model(exports_stay=True)
    for op in (*MAPPED, *then):
        assert model.allows(op), op
        model.did(op)
    assert model.uncharged() == uncharged_mib * MIB
    for end in [Op("kill", number) for number in model.processes]:
        model.did(end)
    assert model.uncharged() == 0
    fault = stage.play(tuple((op,) for op in (*MAPPED, *then)))
    assert fault is None, str(fault)


HOLDS = (*BEGIN, Op("alloc", 1, made=2, kib=65536), Op("fork", 1, made=3))


@pytest.mark.parametrize(
    ("then", "mib"),
    [
        ((Op("kill", 1),), 64 + 16),
        ((Op("alloc", 1, made=4, kib=2048), Op("exit", 1)), 66 + 16),  # also what came later
        ((Op("exec", 1),), 64 + 16),
        ((Op("exec", 1), Op("retain", 1), Op("alloc", 1, made=4, kib=2048)), 64 + 16 + 2),
        ((Op("exec", 1), Op("retain", 1), Op("kill", 3)), 0),
        ((Op("kill", 1), Op("fork", 3, made=4), Op("kill", 3)), 64 + 16),
        ((Op("kill", 1), Op("fork", 3, made=4), Op("kill", 3), Op("kill", 4)), 0),
        ((Op("kill", 1), Op("exec", 3)), 0),
        ((Op("exec", 3), Op("kill", 1)), 0),
        ((Op("fork", 3, made=4), Op("exec", 3), Op("kill", 1)), 64 + 16),
    ],
)
def test_what_a_dead_process_held_stays_and_is_charged_while_a_forked_child_has_its_descriptors(
    stage: Stage, then: tuple[Op, ...], mib: int
) -> None:
    assert model_of(*HOLDS, *then) == (mib, mib)
    fault = stage.play(tuple((op,) for op in (*HOLDS, *then)))
    assert fault is None, str(fault)


def test_a_child_keeps_nothing_of_a_driver_that_its_parent_loaded_later(stage: Stage) -> None:
    first = (*BEGIN, Op("fork", 1, made=3), Op("retain", 3), Op("reopen", 3), Op("fork", 3, made=4))
    then = (Op("retain", 3), Op("alloc", 3, made=5, kib=65536), Op("kill", 3))
    fault = stage.play(tuple((op,) for op in (*first, *then)))
    assert fault is None, str(fault)


def test_a_child_of_who_has_not_used_the_driver_yet_keeps_nothing(stage: Stage) -> None:
    ops = (Op("spawn", 0, made=1), Op("fork", 1, made=2), Op("retain", 1), Op("kill", 1))
    assert model_of(*ops) == (0, 0)
    fault = stage.play(tuple((op,) for op in ops))
    assert fault is None, str(fault)


def test_what_goes_with_a_context_a_process_and_a_library() -> None:
    held = (*TWO, Op("context", 1, made=4), Op("alloc_in", 1, made=5, of=4, kib=4096))
    assert model_of(*held) == (20, 20)
    assert model_of(*held, Op("destroy_context", 1, of=4)) == (0, 0)
    more = (*TWO, Op("alloc", 1, made=5, kib=4096), Op("vmm", 1, made=6, kib=2048))
    assert model_of(*more, Op("reset", 1)) == (2, 2)
    assert model_of(*more, Op("exec", 1)) == (0, 0)
    assert model_of(*more, Op("reopen", 1)) == (0, 22)
    assert model_of(*TWO, *(Op("alloc", 1, made=5 + i, kib=700) for i in range(3))) == (4, 4)
