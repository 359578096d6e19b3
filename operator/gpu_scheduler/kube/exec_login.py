"""Credentials from a program that the kubeconfig names, as managed clusters want it.

For people at a terminal only: the operator has a service account, and a long-running process would
have to run the program again and again. The protocol is that of client.authentication.k8s.io (v1
and v1beta1). Nothing that the program prints is ever shown. Passed to ``config.load`` by commands.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from gpu_scheduler.kube.connection import ConfigError

_GROUP = "client.authentication.k8s.io/"
_SECONDS = 120  # somebody may have to type a code


def log_in(section: Mapping[str, Any], cluster: Mapping[str, Any]) -> dict[str, str]:
    """Fields of a kubeconfig's user: a token, or a client certificate with its key.

    Args:
        section: ``users[].user.exec``.
        cluster: ``clusters[].cluster``, for programs that want to know it.

    Raises:
        ConfigError: the program cannot be run, fails, or gives no credentials.
    """
    command, version = str(section.get("command") or ""), str(section.get("apiVersion") or "")
    if not command or not version.startswith(_GROUP):
        raise ConfigError(f"user.exec: needs a command and an apiVersion of {_GROUP}")
    answer = _run([command, *map(str, section.get("args") or ())], section, cluster, version)
    try:
        status = json.loads(answer)["status"]
        token = status.get("token")
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(f"user.exec: {command} printed no ExecCredential") from None
    if not token and not (certificate and key):
        raise ConfigError(f"user.exec: {command} gave neither a token nor a certificate with key")
    found = {"token": token, "client-certificate": certificate, "client-key": key}
    return {name: str(value) for name, value in found.items() if value}


def _run(
    command: list[str], section: Mapping[str, Any], cluster: Mapping[str, Any], version: str
) -> bytes:
    spec: dict[str, Any] = {"interactive": sys.stdin is not None and sys.stdin.isatty()}
    if section.get("provideClusterInfo"):
        known = ("server", "certificate-authority-data", "tls-server-name")
        spec["cluster"] = {name: cluster[name] for name in known if cluster.get(name)}
    info = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
    added = {str(e["name"]): str(e["value"]) for e in section.get("env") or ()}
    environment = {**os.environ, **added, "KUBERNETES_EXEC_INFO": json.dumps(info)}
    try:
        # stderr and stdin stay those of the terminal: the program may have to ask.
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, check=False, timeout=_SECONDS
        )
    except OSError as error:
        hint = section.get("installHint")
        more = f"; {str(hint).strip()}" if hint else ""
        raise ConfigError(f"user.exec: {command[0]}: {error.strerror}{more}") from None
    except subprocess.TimeoutExpired:
        raise ConfigError(f"user.exec: {command[0]} did not end within {_SECONDS} s") from None
    if done.returncode:
        raise ConfigError(f"user.exec: {command[0]} ended with {done.returncode}")
    return done.stdout
