from pathlib import Path

import pytest
import yaml

from cluster.credentials import (
    USERS,
    kubeconfig_file,
    token,
    token_file,
    write_kubeconfigs,
    write_tokens,
)
from cluster.errors import ClusterError


def test_every_user_has_a_token_of_its_own(tmp_path: Path) -> None:
    write_tokens(tmp_path)
    assert len({token(tmp_path, user.key) for user in USERS}) == len(USERS)
    assert token_file(tmp_path).stat().st_mode & 0o077 == 0


def test_an_unknown_user_is_told_who_is_known(tmp_path: Path) -> None:
    write_tokens(tmp_path)
    with pytest.raises(ClusterError, match="admin"):
        token(tmp_path, "nobody")


def test_a_kubeconfig_leads_to_the_cluster_as_its_user(tmp_path: Path) -> None:
    write_tokens(tmp_path)
    write_kubeconfigs(tmp_path, name="try", server="https://127.0.0.1:1")
    config = yaml.safe_load(kubeconfig_file(tmp_path, "view-user").read_text())
    assert config["current-context"] == config["contexts"][0]["name"] == "gpu-scheduler-try"
    assert config["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:1"
    assert config["users"][0]["user"]["token"] == token(tmp_path, "view-user")
    assert kubeconfig_file(tmp_path, "view-user").stat().st_mode & 0o077 == 0
