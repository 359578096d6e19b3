"""Where the API server is and what proves who we are.

Secrets are held by a ``Connection`` but never shown: not in its repr, not in an error. A token
that lives in a file is read again by ``Token``, since the kubelet replaces it. Made by
``config.load``, used by the transport.
"""

import ssl
import tempfile
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
        """TLS settings; None for a plain ``http`` server.

        Raises:
            ConfigError: a certificate or key is none; the message names the field.
        """
        if not self.server.startswith("https://"):
            return None
        # Bundles may have comments in any language, which the ssl module does not take.
        authorities = self.ca_pem.encode("ascii", "ignore").decode()
        try:
            context = ssl.create_default_context(cadata=authorities or None)
        except ssl.SSLError:
            raise ConfigError("certificate-authority: is no certificate in PEM") from None
        # A certificate authority made by a cluster's installer need not carry every extension.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.certificate_pem:
            # The ssl module reads a key from a file only; this one is private and gone at once.
            with tempfile.NamedTemporaryFile("w", suffix=".pem", encoding="utf-8") as file:
                file.write(f"{self.certificate_pem}\n{self.key_pem}\n")
                file.flush()
                try:
                    context.load_cert_chain(file.name)
                except ssl.SSLError:
                    raise ConfigError(
                        "client-certificate and client-key: are no certificate and key in PEM "
                        "that belong together"
                    ) from None
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


def read_pem(path: Path, name: str) -> str:
    """PEM text from a file.

    Args:
        path: The file.
        name: The field that names it, for the error.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{name}: {path} cannot be read ({type(error).__name__})") from None
