"""Manifests as text, with every pod that asks for a share made ours; the rest as it was.

What a GPUJob says of containers is no pod template of others: GPUJobs stay as they are.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from gpu_scheduler.api.names import API_VERSION, LABEL_SHARE, SHARE_RENDERED
from gpu_scheduler.api.problem import Problem
from gpu_scheduler.api.share_hints import hints, of_limits
from gpu_scheduler.api.share_keys import Compat
from gpu_scheduler.api.unstructured import part
from gpu_scheduler.jobs.share import Installation, share
from gpu_scheduler.manifests.templates import templates


class RenderError(Exception):
    """Some pods cannot be made ours; ``problems``: a line each."""

    def __init__(self, problems: Iterable[str]) -> None:
        """Keep them."""
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


def rendered(text: str, given: Installation, source: str = "", compat: Compat | None = None) -> str:
    """The manifests of a text, YAML or JSON, as YAML.

    Args:
        text: documents; what is no manifest is passed on.
        given: what the pods are made for.
        source: name of the text, for messages.
        compat: whose keys they may ask with beside ours.

    Raises:
        RenderError: the text cannot be read, or what pods ask for cannot be meant.
    """
    try:
        documents = [each for each in yaml.safe_load_all(text) if each is not None]
    except yaml.YAMLError as error:
        raise RenderError([f"{source}: {' '.join(str(error).split())}"]) from None
    wrong = [
        f"{source}: {each}" for document in documents for each in _render(document, given, compat)
    ]
    if wrong:
        raise RenderError(wrong)
    return yaml.safe_dump_all(documents, sort_keys=False, default_flow_style=False)


def odd_keys(text: str, source: str = "") -> list[str]:
    """What of the manifests of a text does not count, as the chart's policy warns of it."""
    found = dict[str, None]()
    for document in yaml.safe_load_all(text):
        if isinstance(document, dict) and document.get("apiVersion") == API_VERSION:
            continue
        for each in templates(document):
            own = None if each.body is document else each.body
            limits = of_limits(part(document, "spec")) if own is None else ()
            for problem in (*hints(part(document, "metadata"), own, each.field), *limits):
                found[f"{source}: {_said(document, '', problem)}"] = None
    return list(found)


def _render(document: Any, given: Installation, compat: Compat | None) -> Iterator[str]:
    """Change a document; what is wrong with it."""
    if isinstance(document, dict) and document.get("apiVersion") == API_VERSION:
        return
    for found in templates(document):
        body = found.body
        if not isinstance(body.get("metadata") or {}, dict):
            yield _said(document, found.field, Problem("metadata", "must be an object"))
            continue
        made = share(
            body.get("metadata") or {},
            body["spec"],
            given,
            controlled=found.controlled,
            compat=compat,
        )
        if made is None:
            continue
        if isinstance(made[0], Problem):
            yield from (_said(document, found.field, each) for each in made)
        else:
            body["metadata"], body["spec"] = made
            body["metadata"]["labels"][LABEL_SHARE] = SHARE_RENDERED


def _said(document: Any, field: str, problem: object) -> str:
    kind = document.get("kind", "object") if isinstance(document, dict) else "list"
    metadata = document.get("metadata") if isinstance(document, dict) else None
    name = metadata.get("name", "") if isinstance(metadata, dict) else ""
    return f"{kind} {name}: {field}{'.' if field else ''}{problem}"
