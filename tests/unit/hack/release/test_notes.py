"""A release's notes are its section of the changelog."""

import pytest

from release.notes import section

TEXT = """# Changelog

## Unreleased

- not yet

## 0.2.0 — 2027-01-01

### Added

- this

## 0.4.0 — 2026-11-26

"""


def test_the_section_of_the_version_is_cut_out() -> None:
    assert section(TEXT, "0.2.0") == "# 0.2.0 — 2027-01-01\n\n### Added\n\n- this\n"
    assert section(TEXT, "0.2.0+dirty") == section(TEXT, "0.2.0")


@pytest.mark.parametrize("version", ["0.4.0", "0.2", "0.3.0"])
def test_a_version_without_words_is_refused(version: str) -> None:
    with pytest.raises(KeyError, match=version):
        section(TEXT, version)
