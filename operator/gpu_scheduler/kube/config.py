"""Where the API server is and how to prove who we are.

``load`` finds the service account of a pod, or else a kubeconfig ($KUBECONFIG, ~/.kube/config).
Secrets are held by the ``Connection`` but never shown: not in its repr, not in an error. A token
that lives in a file is read again by ``Token`` below, since the kubelet replaces it. Called once
by main; the client uses the result.
"""

import base64
import binascii
import os
import ssl
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_MAX_AGE_SECONDS = 60.0

_USER_FIELDS = {
    "token",
    "tokenFile",
    "client-certificate",
    "client-certificate-data",
    "client-key",
    "client-key-data",
}


class ConfigError(Exception):
    """No usable way to the API server; the message names the file and the field."""


@dataclass(frozen=True, slots=True)
class Connection:
    """An API server and the credentials for it.

    Attributes:
        server: Base URL without a trailing slash.
        namespace: The namespace that the configuration implies.
        token: Bearer token, empty when there is none or ``token_file`` is set.
        token_file: File that holds the current bearer token.
        ca_pem: Certificates that sign the server's; empty: those of the system.
        certificate_pem: Client certificate with its chain.
        key_pem: Private key of the client certificate.
        verify: Whether the server's certificate is checked.
        server_name: Name to expect in the server's certificate, empty: the host of ``server``.
    """

    server: str
    namespace: str = "default"
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    ca_pem: str = field(default="", repr=False)
    certificate_pem: str = field(default="", repr=False)
    key_pem: str = field(default="", repr=False)
    verify: bool = True
    server_name: str = ""

    def ssl_context(self) -> ssl.SSLContext | None:
        """TLS settings; None for a plain ``http`` server."""
        if not self.server.startswith("https://"):
            return None
        context = ssl.create_default_context(cadata=self.ca_pem or None)
        # A certificate authority made by a cluster's installer need not carry every extension.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.certificate_pem:
            # The ssl module reads a key from a file only; this one is private and gone at once.
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
                file.write(f"{self.certificate_pem}\n{self.key_pem}\n")
                file.flush()
                context.load_cert_chain(file.name)
        return context


class Token:
    """The current bearer token; a file is read again once a minute, or when asked to."""

    def __init__(self, connection: Connection, clock: Callable[[], float]) -> None:
        self._file = connection.token_file
        self._value = connection.token
        self._clock = clock
        self._read_at: float | None = None

    def current(self) -> str:
        """The token, empty when the connection has none."""
        if self._file is None:
            return self._value
        if self._read_at is None or self._clock() - self._read_at >= TOKEN_MAX_AGE_SECONDS:
            self.refresh()
        return self._value

    def refresh(self) -> bool:
        """Read the file now; True when the token is another one than before.

        Raises:
            ConfigError: the file cannot be read and there is no earlier token.
        """
        if self._file is None:
            return False
        before = self._value
        try:
            self._value = self._file.read_text().strip()
        except OSError as error:
            if not before:
                raise ConfigError(f"{self._file}: {error.strerror}") from None
        self._read_at = self._clock()
        return self._value != before


def load(
    environ: Mapping[str, str] = os.environ, service_account: Path = SERVICE_ACCOUNT
) -> Connection:
    """The connection for this process: $KUBECONFIG, the pod's service account, ~/.kube/config.

    Raises:
        ConfigError: nothing found, or something in it that is not supported.
    """
    if environ.get("KUBECONFIG"):
        # The variable may be a list; merging is kubectl's business, the first that exists counts.
        files = [Path(part) for part in environ["KUBECONFIG"].split(os.pathsep) if part]
        found = next((file for file in files if file.is_file()), None)
        if found is None:
            raise ConfigError(f"KUBECONFIG={environ['KUBECONFIG']}: no such file")
        return from_kubeconfig(found)
    if environ.get("KUBERNETES_SERVICE_HOST") and (service_account / "token").is_file():
        return _in_cluster(environ, service_account)
    home = Path(environ.get("HOME") or "~").expanduser() / ".kube" / "config"
    if home.is_file():
        return from_kubeconfig(home)
    raise ConfigError(
        f"no API server: not in a pod ({service_account}/token is missing), KUBECONFIG is not "
        f"set and {home} does not exist"
    )


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
        ca_pem=_read(folder / "ca.crt", "certificate-authority"),
    )


def from_kubeconfig(path: Path) -> Connection:
    """The current context of a kubeconfig.

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
    for name in user:
        if name not in _USER_FIELDS:
            raise ConfigError(
                f"{path}: users[{context['user']}].user.{name} is not supported; use token, "
                "tokenFile or client-certificate with client-key"
            )
    for name in ("proxy-url",):
        if cluster.get(name):
            raise ConfigError(f"{path}: clusters[].cluster.{name} is not supported")
    if not cluster.get("server"):
        raise ConfigError(f"{path}: clusters[{context.get('cluster')}].cluster.server is not set")
    token_file = user.get("tokenFile")
    certificate = _pem(user, "client-certificate", path)
    key = _pem(user, "client-key", path)
    if bool(certificate) != bool(key):
        raise ConfigError(f"{path}: client-certificate and client-key come together or not at all")
    return Connection(
        server=str(cluster["server"]).rstrip("/"),
        namespace=str(context.get("namespace") or "default"),
        token="" if token_file else str(user.get("token") or ""),
        token_file=path.parent / token_file if token_file else None,
        ca_pem=_pem(cluster, "certificate-authority", path),
        certificate_pem=certificate,
        key_pem=key,
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


def _pem(section: Mapping[str, Any], name: str, path: Path) -> str:
    """PEM text from ``name-data`` (base64, which wins as in kubectl) or from the file ``name``."""
    data = section.get(f"{name}-data")
    if data:
        try:
            return base64.b64decode(data, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError, TypeError):
            raise ConfigError(f"{path}: {name}-data is not base64 of PEM text") from None
    return _read(path.parent / section[name], name) if section.get(name) else ""


def _read(path: Path, name: str) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{name}: {path} cannot be read ({type(error).__name__})") from None
