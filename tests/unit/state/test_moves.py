"""What is remembered of pods that may be moved."""

from gpu_scheduler.core.consolidation import REST_SECONDS
from gpu_scheduler.core.occupants import Occupant
from gpu_scheduler.core.request import JobKey, PodUID, ProjectName, Shape
from gpu_scheduler.state.moves import Moves
from gpu_scheduler.state.occupants import OccupantBook

SHAPE = Shape(cpu_milli=5)


def occupant(uid: str = "u", name: str = "job-0-x7k2p", job: str = "ns/job") -> Occupant:
    return Occupant(PodUID(uid), name, JobKey(job), ProjectName("p"), "a", ())


def test_an_occupant_carries_the_shape_with_which_it_was_placed() -> None:
    book = OccupantBook()
    book.moves.placed(PodUID("u"), SHAPE)
    book.put(occupant())
    book.put(occupant("other"))
    found = book.get(PodUID("u")), book.get(PodUID("other"))
    assert [each and each.shape for each in found] == [SHAPE, None]


def test_the_pod_that_takes_the_place_of_one_that_moved_counts_as_moved() -> None:
    moves = Moves()
    moves.moved(occupant(), 100.0)
    assert moves.complete(occupant("new", "job-0-q9f4d")).moved == 100.0
    assert moves.complete(occupant("mate", "job-1-q9f4d")).moved == 0.0
    assert moves.complete(occupant("same", "job-0-q9f4d", "ns/other")).moved == 0.0


def test_moves_are_forgotten_when_they_no_longer_matter() -> None:
    moves = Moves()
    moves.moved(occupant(), 100.0)
    moves.moved(occupant("u2", "job-1-abcde"), 100.0 + REST_SECONDS)
    assert moves.complete(occupant("new", "job-0-q9f4d")).moved == 0.0
    assert moves.complete(occupant("new", "job-1-q9f4d")).moved == 100.0 + REST_SECONDS
