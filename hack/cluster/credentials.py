"""Who may talk to the cluster: its users, their tokens and their kubeconfig files.

Tokens are new for each cluster and live in its run folder, which only its owner can
read. Tests act as `admin`, or as `edit-user` and `view-user` to see what the stock
roles of the same names may do.
"""

import secrets
from dataclasses import dataclass
from pathlib import Path

import yaml

from cluster.errors import ClusterError

REAL_NODE_NAME = "real-0"


@dataclass(frozen=True, slots=True)
class User:
    """A user of the API server, by the name of its token here."""

    key: str
    name: str
    groups: tuple[str, ...] = ()


USERS: tuple[User, ...] = (
    User("admin", "admin", ("system:masters",)),
    User("edit-user", "edit-user"),
    User("view-user", "view-user"),
    User("kube-controller-manager", "system:kube-controller-manager"),
    User("kube-scheduler", "system:kube-scheduler"),
    User("kwok", "kwok", ("system:masters",)),
    User("kubelet", f"system:node:{REAL_NODE_NAME}", ("system:nodes",)),
)


def token_file(folder: Path) -> Path:
    """The file that the API server reads tokens from."""
    return folder / "tokens.csv"


def write_tokens(folder: Path) -> None:
    """Makes a token for every user."""
    lines = [
        f'{secrets.token_hex(16)},{user.name},{user.key},"{",".join(user.groups)}"'
        for user in USERS
    ]
    path = token_file(folder)
    path.touch(mode=0o600)
    path.write_text("\n".join(lines) + "\n")


def token(folder: Path, key: str) -> str:
    """The token of the user `key`.

    Raises:
        ClusterError: there is no such user.
    """
    for line in token_file(folder).read_text().splitlines():
        value, _, found, _ = line.split(",", 3)
        if found == key:
            return value
    known = ", ".join(user.key for user in USERS)
    raise ClusterError(f"no user is called {key!r}; there are: {known}")


def kubeconfig_file(folder: Path, key: str) -> Path:
    """The kubeconfig of the user `key`; the one of `admin` is called `kubeconfig`."""
    return folder / ("kubeconfig" if key == "admin" else f"{key}.kubeconfig")


def write_kubeconfigs(folder: Path, *, name: str, server: str) -> None:
    """Writes a kubeconfig for every user."""
    for user in USERS:
        path = kubeconfig_file(folder, user.key)
        path.touch(mode=0o600)
        path.write_text(
            render_kubeconfig(
                name=name, server=server, ca_file=folder / "ca.crt", token=token(folder, user.key)
            )
        )


def render_kubeconfig(*, name: str, server: str, ca_file: Path, token: str) -> str:
    """A kubeconfig with one context."""
    context = f"gpu-scheduler-{name}"
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": context,
            "clusters": [
                {
                    "name": context,
                    "cluster": {"server": server, "certificate-authority": str(ca_file)},
                }
            ],
            "users": [{"name": context, "user": {"token": token}}],
            "contexts": [{"name": context, "context": {"cluster": context, "user": context}}],
        },
        sort_keys=False,
    )
