"""Reads kubeconfigs: contexts, several files, and ways to log in.

Credentials that stand in the files are read here. For a login (a program, or an issuer) the
kubernetes package is asked, and imported. It writes keys to files, goes on without credentials
where a login fails, asks an issuer without checking its certificate, and quotes secrets in its
errors (ADR 0006). So what it wrote is read and deleted at once, what would change how we log in
unnoticed is an error that names the field, and its own words are not shown.
"""

import base64
import binascii
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu_scheduler.kube.connection import ConfigError, Connection
from gpu_scheduler.kube.package_parts import parts_alone

Pem = tuple[str, Path | None]
"""A certificate or a key: its text, or the file that holds the current one."""

_USER_FIELDS = {
    "token",
    "tokenFile",
    "client-certificate",
    "client-certificate-data",
    "client-key",
    "client-key-data",
}
_FILES = {"certificate-authority", "client-certificate", "client-key", "tokenFile"}
_NO_PEM: Pem = ("", None)
_LOGINS = ("exec", "auth-provider")  # a program or an issuer gives short-lived credentials


def from_kubeconfig(
    files: Path | str, context: str | None = None, *, login: bool = False
) -> Connection:
    """A context of one or more kubeconfigs, merged as kubectl does.

    Args:
        files: as in $KUBECONFIG; those that do not exist are passed over.
        context: its name; None: the first that one of the files calls the current one.
        login: for commands: a program may be run, or an issuer asked, for credentials, which are
            short-lived, and a proxy may stand on the way.

    Raises:
        ConfigError: unreadable, incomplete, no credentials, or a way to log in that is not
            supported.
    """
    try:
        chosen = _Chosen(files, _documents(str(files)), context, login)
        if chosen.login is None:
            return chosen.connection(chosen.credentials())
        return _logged_in(files, context)
    except ConfigError:
        raise
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        raise ConfigError(
            f"{files}: a kubeconfig needs the package {package}: pip install '.[cli]' where the "
            "sources are"
        ) from None
    except Exception as error:  # about what is in the files, which may be secret: its kind only
        raise ConfigError(f"{files}: not a kubeconfig ({type(error).__name__})") from None


def _documents(files: str) -> dict[str, Any]:
    """What the files say, by their paths."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    paths = filter(None, _not_empty(files).split(os.pathsep))
    return {path: yaml.load(Path(path).read_bytes(), loader) for path in paths}


def _logged_in(files: Path | str, context: str | None) -> Connection:
    """A context whose user logs in: by the package, which may write a new token into the files."""
    import tempfile

    with parts_alone():
        from kubernetes.client import Configuration
        from kubernetes.config import kube_config
    with _quiet(), tempfile.TemporaryDirectory(prefix="gpu-scheduler-") as folder:
        package: Any = kube_config
        merged, found = package.KubeConfigMerger(_not_empty(str(files))), Configuration()
        chosen = _Chosen(files, merged.config_files, context, login=True)
        loader = package.KubeConfigLoader(
            chosen.document(), config_persister=merged.save_changes, temp_file_path=folder
        )
        loader.load_and_set(found)
        return chosen.connection(chosen.credentials_of_login(found, Path(folder)))


@dataclass(frozen=True, slots=True, repr=False)
class _Credentials:
    """What proves who we are, which is never shown; a token that is in a file is not among them."""

    token: str
    certificate: Pem
    key: Pem


class _Chosen:
    """A context, with its cluster and its user, checked for what the package would ignore."""

    def __init__(
        self, files: Path | str, found: Mapping[str, Any], context: str | None, login: bool
    ) -> None:
        self._files = files
        self._found = found
        if not found:
            raise ConfigError(f"KUBECONFIG={files}: no such file")
        first = next((name for d in found.values() if (name := d.get("current-context"))), None)
        if not context and not first:
            raise ConfigError(
                f"{files}: current-context is not set (kubectl config use-context NAME)"
            )
        self._name = str(context or first)
        self._context = self._entry("contexts", "context", self._name)
        self._cluster = self._entry("clusters", "cluster", self._context.get("cluster"))
        user = self._context.get("user")
        self._user = self._entry("users", "user", user) if user else {}
        self._check(login)
        self._check_file(self._cluster, "certificate-authority")
        for name in ("client-certificate", "client-key", "tokenFile"):
            self._check_file(self._user, name)

    def document(self) -> dict[str, Any]:
        """A kubeconfig of these three. The package takes a user's files from beside its cluster."""
        cluster, user = self._context["cluster"], self._context.get("user")
        return {
            "current-context": self._name,
            "contexts": [{"name": self._name, "context": self._context}],
            "clusters": [{"name": cluster, "cluster": self._cluster}],
            "users": [{"name": user, "user": self._user}],
        }

    @property
    def login(self) -> str | None:
        """The field by which the user logs in; None: the credentials are in the files."""
        return next((way for way in _LOGINS if way in self._user), None)

    def credentials(self) -> _Credentials:
        """Those that are in the files."""
        return _Credentials(
            str(self._user.get("token") or ""),
            self._pem(self._user, "client-certificate"),
            self._pem(self._user, "client-key"),
        )

    def credentials_of_login(self, found: Any, folder: Path) -> _Credentials:
        """Those that the package found; what it wrote into the folder is read."""
        token = str(found.api_key.get("BearerToken") or "").removeprefix("Bearer ")
        if token in ("", "None") and not found.cert_file:
            section = self._user[str(self.login)]
            hint = section.get("installHint") or f"run {section.get('command', 'kubectl')} to see"
            raise ConfigError(
                f"{self._users}.{self.login} gave no credentials; {str(hint).strip()}"
            )
        return _Credentials(token, _read(found.cert_file, folder), _read(found.key_file, folder))

    def connection(self, by: _Credentials) -> Connection:
        """The cluster, with these credentials."""
        if (by.certificate == _NO_PEM) != (by.key == _NO_PEM):
            raise ConfigError(
                f"{self._files}: client-certificate and client-key come together or not at all"
            )
        token_file = self._user.get("tokenFile")
        ca_pem, ca_file = self._pem(self._cluster, "certificate-authority")
        return Connection(
            server=self._server,
            namespace=str(self._context.get("namespace") or "default"),
            token="" if token_file else by.token,
            token_file=Path(token_file) if token_file else None,
            ca_pem=ca_pem,
            ca_file=ca_file,
            certificate_pem=by.certificate[0],
            certificate_file=by.certificate[1],
            key_pem=by.key[0],
            key_file=by.key[1],
            verify=not self._cluster.get("insecure-skip-tls-verify"),
            server_name=self._cluster.get("tls-server-name") or "",
            proxy=str(self._cluster.get("proxy-url") or ""),
        )

    @property
    def _server(self) -> str:
        server: str = self._cluster["server"].rstrip("/")
        return server

    def _pem(self, section: Mapping[str, Any], name: str) -> Pem:
        """What a section says; without TLS nothing is made of it."""
        if not self._server.startswith("https"):
            return _NO_PEM
        if data := section.get(f"{name}-data"):
            return base64.b64decode(data).decode(), None
        path = section.get(name)
        return "", Path(os.path.normpath(path)) if path else None

    @property
    def _users(self) -> str:
        return f"{self._files}: users[{self._context.get('user')}].user"

    def _entry(self, section: str, part: str, name: object) -> dict[str, Any]:
        """An entry, with whole paths in it: of several by one name the first counts."""
        known = []
        for path, document in self._found.items():
            for entry in document.get(section) or ():
                known.append(str(entry["name"]))
                if entry["name"] == name:
                    return _whole(dict(entry.get(part) or {}), Path(path).absolute().parent)
        raise ConfigError(
            f"{self._files}: {section} has no entry named {name!r}; there are: "
            f"{', '.join(dict.fromkeys(known)) or 'none'}"
        )

    def _check(self, login: bool) -> None:
        where = f"{self._files}: clusters[{self._context.get('cluster')}].cluster"
        if self._cluster.get("proxy-url") and not login:
            raise ConfigError(
                f"{where}.proxy-url is not supported; give the address of the API server itself"
            )
        if not self._cluster.get("server"):
            raise ConfigError(f"{where}.server is not set")
        for field in self._user:
            if field not in _USER_FIELDS and not (login and field in _LOGINS):
                raise ConfigError(
                    f"{self._users}.{field} is not supported; use token, tokenFile or "
                    "client-certificate with client-key"
                )
        provider = self._user.get("auth-provider")
        about = (provider or {}).get("config") or {}
        checked = any(f"idp-certificate-authority{end}" in about for end in ("", "-data"))
        if provider and not (provider.get("name") == "oidc" and checked):
            raise ConfigError(
                f"{self._users}.auth-provider: only oidc with idp-certificate-authority is "
                "supported, by which its issuer is checked; or use exec with a program such as "
                "kubelogin"
            )

    def _check_file(self, section: Mapping[str, Any], name: str) -> None:
        """Data win over a file, as in kubectl."""
        try:
            base64.b64decode(section.get(f"{name}-data") or "", validate=True).decode()
        except (binascii.Error, UnicodeDecodeError, TypeError):
            raise ConfigError(f"{self._files}: {name}-data is not base64 of PEM text") from None
        path = section.get(name)
        if path and not section.get(f"{name}-data") and not Path(path).is_file():
            raise ConfigError(f"{self._files}: {name}: there is no file {path}")


def _not_empty(files: str) -> str:
    """Those that say something, as kubectl hears them."""
    paths = (Path(name).expanduser() for name in files.split(os.pathsep) if name)
    return os.pathsep.join(str(p) for p in paths if p.is_file() and p.read_text().strip())


def _whole(entry: dict[str, Any], folder: Path) -> dict[str, Any]:
    """An entry whose files, and program, are beside the file that it is from."""
    for field in _FILES & entry.keys():
        entry[field] = str(folder / str(entry[field]))
    program = entry.get("exec")
    if isinstance(program, dict) and "/" in str(program.get("command")):
        entry["exec"] = {**program, "command": str(folder / program["command"])}
    return entry


def _read(name: str | None, folder: Path) -> Pem:
    """The text of a file that the package wrote, or else where one of the user's is."""
    if not name:
        return _NO_PEM
    path = Path(name)
    return (path.read_text(), None) if path.is_relative_to(folder) else ("", path)


@contextmanager
def _quiet() -> Iterator[None]:
    """The package logs its errors, with what is in the files."""
    import logging

    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(before)
