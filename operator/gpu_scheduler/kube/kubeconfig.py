"""Reads the current context of a kubeconfig.

Supported: token, tokenFile, client certificates, certificate authorities (files or data) and
insecure-skip-tls-verify; a program that logs in (exec) where the caller brings a ``Login``.
Anything else that would change how we log in is an error that names the field: silence would end
in a puzzling 401. Called by ``config.load``.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from gpu_scheduler.kube.connection import ConfigError, Connection

_USER_FIELDS = {
    "token",
    "tokenFile",
    "client-certificate",
    "client-certificate-data",
    "client-key",
    "client-key-data",
}


class _Pem(NamedTuple):
    text: str = ""
    file: Path | None = None


# From a user's exec section and the cluster to fields of a user; see ``exec_login``.
Login = Callable[[Mapping[str, Any], Mapping[str, Any]], Mapping[str, str]]


def from_kubeconfig(path: Path, login: Login | None = None) -> Connection:
    """The current context of a kubeconfig; ``login`` runs the program that it may name.

    Raises:
        ConfigError: unreadable, incomplete, or a way to log in that is not supported.
    """
    try:
        document = yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError) as error:
        # The parser's message quotes the file, which holds secrets: name the kind only.
        raise ConfigError(f"{path}: cannot be read as YAML ({type(error).__name__})") from None
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: not a kubeconfig")
    current = document.get("current-context")
    if not current:
        raise ConfigError(f"{path}: current-context is not set (kubectl config use-context NAME)")
    context = _named(document, "contexts", "context", current, path)
    cluster = _named(document, "clusters", "cluster", str(context.get("cluster", "")), path)
    user: dict[str, Any] = {}
    if context.get("user"):
        user = _named(document, "users", "user", str(context["user"]), path)
    certificate, key = _Pem(), _Pem()
    if login is not None and isinstance(user.get("exec"), dict):
        user = dict(login(user["exec"], cluster))
        certificate = _Pem(user.pop("client-certificate", ""))
        key = _Pem(user.pop("client-key", ""))
    for name in user:
        if name not in _USER_FIELDS:
            raise ConfigError(
                f"{path}: users[{context['user']}].user.{name} is not supported; use token, "
                "tokenFile or client-certificate with client-key"
            )
    if cluster.get("proxy-url"):
        raise ConfigError(
            f"{path}: clusters[{context.get('cluster')}].cluster.proxy-url is not supported; "
            "give the address of the API server itself"
        )
    if not cluster.get("server"):
        raise ConfigError(f"{path}: clusters[{context.get('cluster')}].cluster.server is not set")
    token_file = user.get("tokenFile")
    if certificate == _Pem():
        certificate = _pem(user, "client-certificate", path)
        key = _pem(user, "client-key", path)
    authority = _pem(cluster, "certificate-authority", path)
    if (certificate == _Pem()) != (key == _Pem()):
        raise ConfigError(f"{path}: client-certificate and client-key come together or not at all")
    return Connection(
        server=str(cluster["server"]).rstrip("/"),
        namespace=str(context.get("namespace") or "default"),
        token="" if token_file else str(user.get("token") or ""),
        token_file=path.parent / token_file if token_file else None,
        ca_pem=authority.text,
        ca_file=authority.file,
        certificate_pem=certificate.text,
        certificate_file=certificate.file,
        key_pem=key.text,
        key_file=key.file,
        verify=not cluster.get("insecure-skip-tls-verify", False),
        server_name=str(cluster.get("tls-server-name") or ""),
    )


def _named(
    document: Mapping[str, Any], section: str, part: str, name: str, path: Path
) -> dict[str, Any]:
    for entry in document.get(section) or ():
        if isinstance(entry, dict) and entry.get("name") == name:
            value = entry.get(part)
            return value if isinstance(value, dict) else {}
    raise ConfigError(f"{path}: {section} has no entry named {name!r}")


def _pem(section: Mapping[str, Any], name: str, path: Path) -> _Pem:
    """PEM text from ``name-data`` (base64, which wins as in kubectl) or else the file ``name``."""
    data = section.get(f"{name}-data")
    if data:
        try:
            return _Pem(base64.b64decode(data, validate=True).decode())
        except (binascii.Error, UnicodeDecodeError, TypeError):
            raise ConfigError(f"{path}: {name}-data is not base64 of PEM text") from None
    return _Pem(file=path.parent / section[name]) if section.get(name) else _Pem()
