"""JSON schemas for kubeconform, from the OpenAPI of an API server instead of the internet.

One file per kind, as kubeconform names them, strict: a field that the server does not know is an
error.
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Fetch = Callable[[str], dict[str, Any]]

# kubeconform fills this in; KindSuffix is "-v1" or "-apps-v1".
FILE_TEMPLATE = "{{ .ResourceKind }}{{ .KindSuffix }}.json"

_REF = "#/components/schemas/"
_OPEN = ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource")


def write_schemas(fetch: Fetch, api_versions: Iterable[str], folder: Path) -> int:
    """Write a schema for each kind of the API versions; the number of files.

    Args:
        fetch: answers the JSON at a path of the API server.
        api_versions: such as ``v1`` and ``apps/v1``.
        folder: where to; it is made.

    Raises:
        KeyError: the server does not serve one of the API versions.
    """
    folder.mkdir(parents=True, exist_ok=True)
    served = fetch("/openapi/v3")["paths"]
    count = 0
    for api_version in sorted(set(api_versions)):
        path = f"apis/{api_version}" if "/" in api_version else f"api/{api_version}"
        schemas = fetch(served[path]["serverRelativeURL"])["components"]["schemas"]
        definitions = {name: _converted(schema) for name, schema in schemas.items()}
        for name, schema in schemas.items():
            for kind in _kinds(schema, api_version):
                document = {"$ref": f"#/definitions/{name}", "definitions": definitions}
                (folder / _file_name(kind, api_version)).write_text(json.dumps(document))
                count += 1
    return count


def _kinds(schema: dict[str, Any], api_version: str) -> Iterable[str]:
    for entry in schema.get("x-kubernetes-group-version-kind", ()):
        if "/".join(part for part in (entry["group"], entry["version"]) if part) == api_version:
            yield entry["kind"]


def _file_name(kind: str, api_version: str) -> str:
    group, _, version = api_version.rpartition("/")
    suffix = "-".join(part for part in (group.split(".")[0], version) if part)
    return f"{kind.lower()}-{suffix}.json"


def _converted(node: Any) -> Any:
    """OpenAPI 3.0 as JSON schema: references moved, and closed where fields are listed."""
    if isinstance(node, list):
        return [_converted(each) for each in node]
    if not isinstance(node, dict):
        return node
    made = {key: _converted(value) for key, value in node.items()}
    if isinstance(made.get("$ref"), str):
        made["$ref"] = made["$ref"].replace(_REF, "#/definitions/")
    listed = isinstance(made.get("properties"), dict) and made.get("type") == "object"
    if listed and not any(made.get(key) for key in _OPEN):
        made.setdefault("additionalProperties", False)
    return made
