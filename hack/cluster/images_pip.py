"""The pip settings of this machine, for a build that must fetch packages as its user would.

Only for the time of a build: they are mounted into it, never copied into an image. Sources, the
later wins: pip's configuration files, then PIP_* variables, as pip itself has it.
"""

import configparser
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

# Settings that decide from where packages come. What decides where they go stays out.
_KEYS = (
    "index-url",
    "extra-index-url",
    "find-links",
    "no-index",
    "trusted-host",
    "proxy",
    "timeout",
    "retries",
    "cert",
)
_CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")

CONFIG = "/etc/pip.conf"
CERTIFICATES = "/etc/build-ca-certificates.crt"


def settings(environment: Mapping[str, str], files: Sequence[Path]) -> dict[str, str]:
    """The settings that are in force, by pip's names for them."""
    found: dict[str, str] = {}
    for file in files:
        parser = configparser.RawConfigParser()
        parser.read(file)
        for section in ("global", "install"):
            if parser.has_section(section):
                found.update((key, value) for key, value in parser.items(section) if key in _KEYS)
    for key in _KEYS:
        value = environment.get("PIP_" + key.upper().replace("-", "_"))
        if value:
            found[key] = value
    if "cert" not in found:
        for name in _CERTIFICATE_VARIABLES:
            if environment.get(name):
                found["cert"] = environment[name]
                break
    return found


def configuration_files(environment: Mapping[str, str]) -> list[Path]:
    """Where pip looks for its configuration, in its order."""
    home = Path(environment.get("HOME", "/"))
    user = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    files = [Path("/etc/pip.conf"), home / ".pip" / "pip.conf", user / "pip" / "pip.conf"]
    if environment.get("PIP_CONFIG_FILE"):
        files.append(Path(environment["PIP_CONFIG_FILE"]))
    return [file for file in files if file.is_file()]


def mounts(folder: Path) -> list[str]:
    """Arguments ``--volume=…`` for buildah; ``folder`` holds the configuration meanwhile."""
    in_force = settings(os.environ, configuration_files(os.environ))
    volumes = []
    certificates = in_force.get("cert")
    if certificates and Path(certificates).is_file():
        volumes.append(f"--volume={Path(certificates).resolve()}:{CERTIFICATES}:ro")
        in_force["cert"] = CERTIFICATES
    else:
        in_force.pop("cert", None)
    links = in_force.get("find-links", "").split()
    volumes += [
        f"--volume={Path(each).resolve()}:{each}:ro" for each in links if Path(each).is_dir()
    ]
    file = folder / "pip.conf"
    file.write_text(render(in_force))
    return [f"--volume={file}:{CONFIG}:ro", *volumes]


def render(in_force: Mapping[str, str]) -> str:
    """A pip.conf with these settings."""
    parser = configparser.RawConfigParser()
    parser["global"] = dict(in_force)
    text = io.StringIO()
    parser.write(text)
    return text.getvalue()
