"""Memory that is bound stays charged when its handle is released: who binds it gets no more."""

from collections.abc import Callable

import pytest
from tests.native.bound_cases import PIECE_MIB
from tests.native.container import Container

CASES = "tests.native.bound_cases"
CAP_MIB = 1024
FITS = CAP_MIB // PIECE_MIB
OBJECTS = "memory memory_v2 address address_v2 endpoint endpoint_address".split()
ARRAYS = ["array", "array by thread", "array of a context", "mipmap"]


@pytest.fixture
def box(container: Callable[..., Container]) -> Container:
    made = container(cap_mib=CAP_MIB)
    made.gpu.configure(context_mib=0)
    return made


@pytest.mark.parametrize("how", OBJECTS)
def test_what_is_bound_is_charged_until_it_is_unbound(box: Container, how: str) -> None:
    assert box.call(f"{CASES}:bound_and_released", how) == {
        "pieces": FITS,
        "full": 0,
        "unbound": 2 * PIECE_MIB,
        "end": CAP_MIB,
        "again": FITS,
    }
    assert box.gpu.peak_mib() == CAP_MIB


@pytest.mark.parametrize("how", ARRAYS)
def test_what_is_mapped_into_an_array_is_charged_until_that_is_gone(
    box: Container, how: str
) -> None:
    """The driver maps it out in stream order, at a time that nobody is told."""
    assert box.call(f"{CASES}:bound_and_released", how) == {
        "pieces": FITS,
        "full": 0,
        "unbound": 0,
        "end": CAP_MIB,
        "again": FITS,
    }
    assert box.gpu.peak_mib() == CAP_MIB


def test_memory_in_several_places_is_charged_once_until_the_last_is_gone(box: Container) -> None:
    assert box.call(f"{CASES}:bound_twice") == [CAP_MIB - PIECE_MIB, CAP_MIB - PIECE_MIB, CAP_MIB]


def test_an_object_that_is_mapped_keeps_what_is_bound_to_it(box: Container) -> None:
    assert box.call(f"{CASES}:mapped_multicast") == [CAP_MIB - PIECE_MIB, CAP_MIB]


def test_a_refused_binding_keeps_nothing(box: Container) -> None:
    assert box.call(f"{CASES}:refused_binding") == CAP_MIB


def test_the_neighbours_memory_is_its_own(container: Callable[..., Container]) -> None:
    greedy, neighbour = container(cap_mib=CAP_MIB), container(cap_mib=2 * CAP_MIB)
    assert greedy.call(f"{CASES}:bound_and_released", "memory")["pieces"] == FITS
    assert neighbour.call(f"{CASES}:bound_and_released", "memory")["pieces"] == 2 * FITS
