"""Which file is made by which module."""

from collections.abc import Callable, Mapping
from pathlib import Path

from reference import (
    command_line,
    crds,
    extra_settings,
    layers_picture,
    metrics,
    packing_policies,
    reasons,
    settings,
    states_picture,
    values,
)

DOCS = Path(__file__).parents[2] / "docs"
FOLDER = DOCS / "reference"
CHART = DOCS.parent / "charts" / "gpu-scheduler"
PAGES: Mapping[str, Callable[[], str]] = {
    "command-line": command_line.page,
    "crds": crds.page,
    "values": values.page,
    "settings": settings.page,
    "metrics": metrics.page,
    "reasons": reasons.page,
}
FILES: Mapping[Path, Callable[[], str]] = {
    packing_policies.SCHEMA: packing_policies.schema,
    packing_policies.VALUES: packing_policies.values,
    packing_policies.PAGE: packing_policies.page,
    **{FOLDER / f"{name}.md": page for name, page in PAGES.items()},
    CHART / "files" / "settings.yaml": extra_settings.file,
    DOCS / "layers.svg": layers_picture.svg,
    DOCS / "states.md": reasons.states_page,
    DOCS / "states.svg": states_picture.svg,
}
