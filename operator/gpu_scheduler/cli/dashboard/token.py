"""The token to log in with: the kubeconfig's, or else a short-lived one of the chart's viewer.

A client certificate cannot be shown to the dashboard. Who owns the operator's namespace may make
tokens of the account that the chart makes for this; others are told what is missing.
"""

import time
from typing import NoReturn

from gpu_scheduler.cli.cluster_access import ClusterAccess
from gpu_scheduler.cli.ending import Failed
from gpu_scheduler.kube import errors, paths
from gpu_scheduler.kube.connection import Token

_VIEWER = "gpu-scheduler.io/dashboard-viewer=true"
_SECONDS = 3600


def login_token(cluster: ClusterAccess, namespace: str) -> tuple[str, str]:
    """The token, and what is to be said about it, which may be empty.

    Raises:
        Failed: there is none, and which way there would be.
        errors.ApiError: the cluster does not answer.
    """
    own = Token(cluster.client.connection, time.monotonic).current()
    if own:
        return own, ""
    try:
        accounts = list(cluster.client.items(paths.core("serviceaccounts", namespace), _VIEWER))
        if not accounts:
            _none(f"the chart has made no account for it in {namespace} (dashboard.viewer)")
        name = str(accounts[0]["metadata"]["name"])
        made = cluster.client.create(
            paths.core("serviceaccounts", namespace, name, "token"),
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": _SECONDS},
            },
        )
    except errors.Forbidden:
        _none(f"you may not create tokens of the chart's viewer account in {namespace}")
    said = f"your kubeconfig has no token: you log in as {namespace}/{name}, for an hour"
    return str(made["status"]["token"]), said


def _none(why: str) -> NoReturn:
    raise Failed(
        f"your kubeconfig has no token to log in with, and {why}; use a context whose user has a "
        "token or an exec plugin, or paste one: kubectl create token ACCOUNT -n NAMESPACE"
    ) from None
