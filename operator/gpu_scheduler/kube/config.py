"""Finds the API server: the service account of a pod, or else a kubeconfig.

Called once by main; the client uses the result.
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path

from gpu_scheduler.kube.connection import ConfigError, Connection, Token
from gpu_scheduler.kube.kubeconfig import from_kubeconfig
from gpu_scheduler.kube.tls import Tls

__all__ = ["ConfigError", "Connection", "Token", "from_kubeconfig", "load"]

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def load(
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
    *,
    context: str | None = None,
    login: bool = False,
) -> Connection:
    """The connection for this process: $KUBECONFIG, the pod's service account, ~/.kube/config.

    ``login``: for commands that people call, see ``from_kubeconfig``; so is ``context``.

    Raises:
        ConfigError: nothing found, or something in it that is not supported.
    """
    if files := environ.get("KUBECONFIG"):
        return _checked(from_kubeconfig(files, context, login=login), files)
    if (
        not context
        and environ.get("KUBERNETES_SERVICE_HOST")
        and (service_account / "token").is_file()
    ):
        return _checked(_in_cluster(environ, service_account), service_account)
    home = Path(environ.get("HOME") or "~").expanduser() / ".kube" / "config"
    if home.is_file():
        return _checked(from_kubeconfig(home, context, login=login), home)
    raise ConfigError(
        f"no API server: not in a pod ({service_account}/token is missing), KUBECONFIG is not "
        f"set and {home} does not exist"
    )


def _checked(connection: Connection, source: Path | str) -> Connection:
    """The connection, if its certificates can be used; the first request would be too late."""
    try:
        Tls(connection, time.monotonic)
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None
    return connection


def _in_cluster(environ: Mapping[str, str], folder: Path) -> Connection:
    host = environ["KUBERNETES_SERVICE_HOST"]
    port = environ.get("KUBERNETES_SERVICE_PORT") or "443"
    if ":" in host:
        host = f"[{host}]"
    namespace = folder / "namespace"
    return Connection(
        server=f"https://{host}:{port}",
        namespace=namespace.read_text().strip() if namespace.is_file() else "default",
        token_file=folder / "token",
        ca_file=folder / "ca.crt",
    )
