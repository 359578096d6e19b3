"""The reference of the command line is what the commands say of themselves."""

import command_reference


def test_the_page_is_the_one_that_would_be_written() -> None:
    page = command_reference.PAGE.read_text(encoding="utf-8")
    assert page == command_reference.page(), "make reference writes it anew"


def test_every_command_has_a_section_with_its_options() -> None:
    page = command_reference.page()
    for command in ("submit", "why", "top gpus", "project create", "sweep trials", "check"):
        assert f"## kubectl gpu {command}\n" in page
    assert "kubectl gpu submit [OPTIONS] NAME [-- ARGUMENTS]" in page
    assert "| `-g, --gpu N` |" in page
    assert "kubectl gpu operator" not in page and "\b" not in page
