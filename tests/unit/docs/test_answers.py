"""What newcomers look for by name has a page in the navigation that says it."""

import pytest
import yaml
from tests.unit.docs.pages import ROOT


def listed(nav: object) -> list[str]:
    """The pages of a part of the navigation."""
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    assert isinstance(parts, list) or hasattr(parts, "__iter__")
    return [page for part in parts for page in listed(part)]


def navigation() -> list[str]:
    # Extensions of Zensical are written with tags that nobody here knows.
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    return listed(yaml.safe_load(text[text.index("nav:") :])["nav"])


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("clusters.md", ["GKE", "EKS", "AKS", "OpenShift", "GPU operator"]),
        ("notebooks.md", ["Two notebooks on one GPU", "Kubeflow"]),
    ],
)
def test_a_name_that_is_looked_for_is_a_heading(page: str, names: list[str]) -> None:
    assert page in navigation()
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    headings = [line for line in text.splitlines() if line.startswith("#")]
    for name in names:
        assert any(name in heading for heading in headings), name
    assert "not tried yet" in text or "was tried yet" in text
