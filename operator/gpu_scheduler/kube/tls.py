"""TLS settings of the moment: authorities and client certificates in files are read again.

A cluster's authority is rotated while programs run, and the kubelet then replaces ``ca.crt``
under them. Connections that are open stay as they are; those opened from then on use what the
files hold. Files that are half written, gone or not a pair yet change nothing: the last good
settings stay until the files are good again. Owned by the transport, which asks at every request
and, once a server's certificate is not believed, asks for the files at once.
"""

import logging
import ssl
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from gpu_scheduler.kube.connection import ConfigError, Connection

TLS_MAX_AGE_SECONDS = 10.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Pems:
    authorities: str = field(repr=False)
    certificate: str = field(repr=False)
    key: str = field(repr=False)


class Tls:
    """The settings for new connections; files are read again every ten seconds, or when asked to.

    Raises:
        ConfigError: a certificate or key cannot be read or is none; the message names the field.
    """

    def __init__(self, connection: Connection, clock: Callable[[], float]) -> None:
        self._connection = connection
        self._clock = clock
        files = (connection.ca_file, connection.certificate_file, connection.key_file)
        self._in_files = any(file is not None for file in files)
        self._read_at = clock()
        self._context: ssl.SSLContext | None = None
        self._complaint = ""
        if connection.server.startswith("https://"):
            self._pems = _read(connection)
            self._context = _context(self._pems, verify=connection.verify)

    def context(self) -> ssl.SSLContext | None:
        """What a connection opened now uses; None for a plain ``http`` server."""
        if self._in_files and self._clock() - self._read_at >= TLS_MAX_AGE_SECONDS:
            self.refresh()
        return self._context

    def refresh(self) -> bool:
        """Read the files now; True when they hold something else than before, and it is good."""
        if self._context is None or not self._in_files:
            return False
        self._read_at = self._clock()
        try:
            pems = _read(self._connection)
            if pems == self._pems:
                self._complaint = ""
                return False
            self._context = _context(pems, verify=self._connection.verify)
        except ConfigError as error:
            if str(error) != self._complaint:
                log.warning("%s; what was read before stays in use", error)
            self._complaint = str(error)
            return False
        self._pems = pems
        self._complaint = ""
        log.info("certificates were read again: the files have changed")
        return True


def _read_pem(path: Path, name: str) -> str:
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{name}: {path} cannot be read ({type(error).__name__})") from None
    if not text.strip():
        # An authority that is empty would mean those of the system.
        raise ConfigError(f"{name}: {path} is empty")
    return text


def _read(connection: Connection) -> _Pems:
    def current(text: str, file: Path | None, name: str) -> str:
        return text if file is None else _read_pem(file, name)

    return _Pems(
        current(connection.ca_pem, connection.ca_file, "certificate-authority"),
        current(connection.certificate_pem, connection.certificate_file, "client-certificate"),
        current(connection.key_pem, connection.key_file, "client-key"),
    )


def _context(pems: _Pems, *, verify: bool) -> ssl.SSLContext:
    # Bundles may have comments in any language, which the ssl module does not take.
    authorities = pems.authorities.encode("ascii", "ignore").decode()
    try:
        context = ssl.create_default_context(cadata=authorities or None)
    except ssl.SSLError:
        raise ConfigError("certificate-authority: is no certificate in PEM") from None
    # A certificate authority made by a cluster's installer need not carry every extension.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if pems.certificate:
        # The ssl module reads a key from a file only; this one is private and gone at once.
        with tempfile.NamedTemporaryFile("w", suffix=".pem", encoding="utf-8") as file:
            file.write(f"{pems.certificate}\n{pems.key}\n")
            file.flush()
            try:
                context.load_cert_chain(file.name)
            except ssl.SSLError:
                raise ConfigError(
                    "client-certificate and client-key: are no certificate and key in PEM "
                    "that belong together"
                ) from None
    return context
