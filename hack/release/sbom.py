"""Bills of materials as CycloneDX, through its own library, in the release's environment.

The same contents make the same document: its serial number is derived from them, its time is the
commit's. Run as `python -m release.sbom` by `build`, with what `contents` found on standard
input.
"""

import json
import sys
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from release.contents import Component

_NAMESPACE = uuid.UUID("6f0d6d2e-7a5b-5f0e-9c1e-3c1c8a2f7b11")


def question(name: str, version: str, epoch: int, parts: Iterable[Component]) -> str:
    """What `document` is asked, as JSON.

    Args:
        name: of the image or file that holds the parts.
        version: its version.
        epoch: its time, in seconds since 1970.
        parts: what is in it.
    """
    listed = [asdict(part) for part in parts]
    return json.dumps({"name": name, "version": version, "epoch": epoch, "parts": listed})


def document(asked: Mapping[str, Any]) -> str:
    """The CycloneDX document, checked against its schema.

    Raises:
        ValueError: it is not valid.
    """
    from cyclonedx.model.bom import Bom, BomMetaData
    from cyclonedx.model.component import Component as Part
    from cyclonedx.model.component import ComponentType
    from cyclonedx.output.json import JsonV1Dot6
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    key = json.dumps(asked, sort_keys=True)
    kind = (
        ComponentType.CONTAINER if asked["name"].startswith("image ") else ComponentType.APPLICATION
    )
    subject = Part(
        type=kind,
        name=asked["name"].removeprefix("image "),
        version=asked["version"],
        bom_ref="subject",
    )
    parts = [_part(part) for part in asked["parts"]]
    bom = Bom(
        serial_number=uuid.uuid5(_NAMESPACE, key),
        metadata=BomMetaData(
            timestamp=datetime.fromtimestamp(asked["epoch"], UTC), component=subject
        ),
        components=parts,
    )
    bom.register_dependency(subject, parts)
    text = str(JsonV1Dot6(bom).output_as_string(indent=1))
    if wrong := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise ValueError(f"the bill of materials of {asked['name']} is not valid: {wrong}")
    return text + "\n"


def _part(said: Mapping[str, Any]) -> Any:
    from cyclonedx.contrib.license.factories import LicenseFactory
    from cyclonedx.model import HashAlgorithm, HashType
    from cyclonedx.model.component import Component as Part
    from cyclonedx.model.component import ComponentType
    from packageurl import PackageURL

    kind, name, version = said["kind"], said["name"], said["version"]
    make = LicenseFactory()
    licences: list[Any]
    if len(said["licences"]) == 1:
        licences = [make.make_from_string(said["licences"][0])]
    else:  # expressions stand alone, and Debian's names are not SPDX's
        licences = [make.make_with_name(text) for text in said["licences"]]
    if kind == "file":
        hashes = [HashType(alg=HashAlgorithm.SHA_256, content=said["sha256"])]
        return Part(
            type=ComponentType.FILE, name=name, bom_ref=name, hashes=hashes, licenses=licences
        )
    qualifiers = {"arch": said["architecture"]} if kind == "deb" else None
    url = PackageURL(kind, "debian" if kind == "deb" else None, name, version, qualifiers)
    return Part(
        type=ComponentType.LIBRARY,
        name=name,
        version=version,
        purl=url,
        bom_ref=url.to_string(),
        licenses=licences,
    )


if __name__ == "__main__":
    sys.stdout.write(document(json.load(sys.stdin)))
