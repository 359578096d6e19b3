import socket

import pytest

from cluster.errors import ClusterError
from cluster.ports import BLOCK, FIRST, LAST, block, choose, is_free


def test_the_first_block_is_chosen_when_nothing_is_in_use() -> None:
    assert choose(set(), lambda _: True) == FIRST


def test_a_block_that_another_cluster_holds_is_passed_over() -> None:
    assert choose({FIRST, FIRST + BLOCK}, lambda _: True) == FIRST + 2 * BLOCK


def test_one_used_port_spoils_its_block() -> None:
    assert choose(set(), lambda port: port != FIRST + BLOCK - 1) == FIRST + BLOCK


def test_no_free_block_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(ClusterError, match="down --all"):
        choose(set(), lambda _: False)


def test_ports_of_neighbouring_blocks_are_disjoint() -> None:
    here, there = (
        {getattr(block(first), name) for name in block(first).__dataclass_fields__}
        for first in (FIRST, FIRST + BLOCK)
    )
    assert len(here) == 5
    assert not here & there
    assert max(there) < LAST


def test_a_listening_port_is_not_free() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        assert not is_free(server.getsockname()[1])
