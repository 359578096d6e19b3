"""Where the API server is and what proves who we are.

Secrets are held by a ``Connection`` but never shown: not in its repr, not in an error. What lives
in a file is read again while the process runs: the token by ``Token``, since the kubelet replaces
it, certificates by ``tls.Tls``, since authorities are rotated. Made by ``config.load``, used by the
transport.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

TOKEN_MAX_AGE_SECONDS = 60.0


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
        ca_pem: Certificates that sign the server's, when they are in no file.
        ca_file: File that holds the current ones; without either: those of the system.
        certificate_pem: Client certificate with its chain, when it is in no file.
        certificate_file: File that holds the current one.
        key_pem: Private key of the client certificate, when it is in no file.
        key_file: File that holds the current one.
        verify: Whether the server's certificate is checked.
        server_name: Name to expect in the server's certificate, empty: the host of ``server``.
        proxy: URL of an HTTP proxy on the way; commands alone go by one.
    """

    server: str
    namespace: str = "default"
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    ca_pem: str = field(default="", repr=False)
    ca_file: Path | None = None
    certificate_pem: str = field(default="", repr=False)
    certificate_file: Path | None = None
    key_pem: str = field(default="", repr=False)
    key_file: Path | None = None
    verify: bool = True
    server_name: str = ""
    proxy: str = field(default="", repr=False)


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
