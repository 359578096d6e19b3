"""The kubelet's sockets have to fit below the cluster's folder."""

import socket
from pathlib import Path

import pytest

from cluster.node_layout import NodeLayout


@pytest.mark.parametrize("letters", range(60, 80))
def test_a_folder_is_too_deep_when_a_socket_of_the_kubelet_cannot_be_there(letters: int) -> None:
    layout = NodeLayout(Path("/" + "a" * letters))
    path = f"{layout.kubelet_root}/pod-resources/4294967295"
    bound = socket.socket(socket.AF_UNIX)
    try:
        bound.bind(path)
    except FileNotFoundError:  # the path is short enough, and its folder is not there
        assert layout.bytes_too_many() == 0
    except OSError as error:
        assert "too long" in str(error)
        shorter = NodeLayout(Path("/" + "a" * (letters - layout.bytes_too_many())))
        assert layout.bytes_too_many() > 0 == shorter.bytes_too_many()
    finally:
        bound.close()
