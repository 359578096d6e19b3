"""The pages of docs/reference are what the code says of itself."""

import re
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gpu_scheduler.agent import settings as agent
from gpu_scheduler.api.condition import CONDITIONS, ConditionType
from gpu_scheduler.api.states import EDGES, Group
from gpu_scheduler.runtime.common import settings as operator
from reference import crds, metrics, reasons, settings, states_picture, values
from reference.chart_environment import Source, sources
from reference.markdown import Undescribed, prose
from reference.pages import DOCS, FILES, FOLDER, PAGES

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_is_the_one_that_would_be_written(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == FILES[path](), "make reference writes it anew"


def test_no_other_page_is_there() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_headings_are_there_once_so_that_anchors_are_stable(name: str) -> None:
    page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    assert sorted(set(headings)) == sorted(headings)


def test_every_command_has_a_section_with_its_options() -> None:
    page = PAGES["command-line"]()
    for command in ("submit", "why", "top gpus", "project create", "sweep trials", "check"):
        assert f"## kubectl gpu {command}\n" in page
    assert "kubectl gpu submit [OPTIONS] NAME [-- ARGUMENTS]" in page
    assert "| `-g, --gpu N` |" in page
    assert "kubectl gpu operator" not in page and "\b" not in page


def test_a_field_has_its_type_its_limits_and_the_words_of_a_refusal() -> None:
    page = PAGES["crds"]()
    _, _, rest = page.partition("#### gpujob.spec.gpu\n\n")
    entry = rest.partition("\n####")[0]
    assert entry.startswith("number · at most 1,024 · cannot be changed\n")
    assert "- at most three decimals, such as 0.333" in entry
    assert "cannot be changed; delete" not in entry
    assert "`.spec.restartPolicy`: must be Never or absent" in page
    assert "gpujob.spec.template.spec.volumes" not in page


def test_a_field_without_a_description_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    (job,) = (crd for crd in crds.kinds() if crd["spec"]["names"]["kind"] == "GPUJob")
    del crds.schema_of(job)["properties"]["spec"]["properties"]["gpu"]["description"]
    monkeypatch.setattr(crds, "kinds", lambda: [job])
    with pytest.raises(Undescribed, match=r"gpujob\.spec\.gpu has no description"):
        crds.page()


def _chart(folder: Path, monkeypatch: pytest.MonkeyPatch, lines: str) -> None:
    (folder / "values.yaml").write_text(lines)
    schema = '{"properties": {"a": {"properties": {"b": {"type": "integer", "minimum": 1}}}}'
    (folder / "values.schema.json").write_text(f'{schema}, "definitions": {{}}}}')
    monkeypatch.setattr(values, "CHART", folder)


def test_a_value_is_described_by_the_comment_above_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _chart(
        tmp_path, monkeypatch, "# All of a.\na:\n  # not this\n  # -- How many,\n  # b.\n  b: 3\n"
    )
    assert (
        "## a\n\nAll of a.\n\n### a.b\n\ninteger · default `3` · at least 1\n\nHow many, b.\n"
        in (values.page())
    )


def test_a_value_without_a_comment_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _chart(tmp_path, monkeypatch, "a:\n  # of something else\n  b: 3\n")
    with pytest.raises(Undescribed, match=r"a\.b has no comment"):
        values.page()


def test_the_values_behind_a_setting_are_read_off_the_templates() -> None:
    found = sources("deployment.yaml")
    assert found["GPUSCHED_PACKING"].values == ("scheduling.packing",)
    assert found["GPUSCHED_HOLDERS"].only_with == ("holders.enabled",)
    assert "image.repository" in found["GPUSCHED_CAP_IMAGE"].values
    assert found["GPUSCHED_REPORT_PORT"].values == ("sweeps.reports.port",)
    assert found["GPUSCHED_ADMIN_PORT"] == Source((), (), "8080")
    assert sources("agent-daemonset.yaml")["GPUSCHED_AGENT_DAEMONS"].values == ("agent.daemons",)


def test_the_words_of_a_value_are_those_of_its_setting() -> None:
    """But for what a release says in another way: off, or nothing at all."""
    by_path = {value.path: value.schema for value in values.values()}
    compared = 0
    for model, prefix, template in (
        (operator.OperatorSettings, operator.PREFIX, "deployment.yaml"),
        (agent.AgentSettings, agent.PREFIX, "agent-daemonset.yaml"),
    ):
        by_chart = sources(template)
        for name, _, schema in settings.variables(model, prefix):
            for path in by_chart[name].values if name in by_chart else ():
                if words := by_path.get(path, {}).get("enum"):
                    assert words == [w for w in schema["enum"] if w not in ("", "off")], path
                    compared += 1
    assert compared >= 9


def test_every_variable_of_the_templates_is_a_setting() -> None:
    known: Mapping[str, set[str]] = {
        "deployment.yaml": {
            n for n, *_ in settings.variables(operator.OperatorSettings, operator.PREFIX)
        },
        "agent-daemonset.yaml": {
            n for n, *_ in settings.variables(agent.AgentSettings, agent.PREFIX)
        },
    }
    for template, names in known.items():
        assert set(sources(template)) <= names


def test_metrics_of_the_leader_are_there_without_a_cluster() -> None:
    of_operator = {name for family in metrics.of_operator() for name in metrics.names(family)}
    assert {
        "gpusched_pending_jobs",
        "gpusched_preemptions_total",
        "gpusched_scheduling_cycle_seconds_bucket",
        "gpusched_holders",
    } <= of_operator
    assert (
        "### gpusched_gpu_utilization_ratio\n\ngauge · labels `node`, `gpu`" in PAGES["metrics"]()
    )


def test_every_reason_has_a_section_that_says_what_to_do() -> None:
    text = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    headings = re.findall(r"^#+ `?(\w+)`?$", text, re.MULTILINE)
    missing = [word for word in reasons.words() if word not in headings]
    assert not missing, "docs/troubleshooting.md has no section of these reasons"


def test_the_picture_of_states_has_every_word_and_every_way() -> None:
    picture = ElementTree.fromstring(states_picture.svg())
    texts = [each.text for each in picture.iter(f"{SVG}text")]
    assert sorted(filter(None, texts)) == sorted(
        [*reasons.words(), *(str(group).capitalize() for group in Group)]
    )
    ways = [each for each in picture.iter(f"{SVG}path") if each.get("class") == "way"]
    assert len(ways) == len(EDGES)


def test_every_type_of_condition_is_described() -> None:
    assert set(CONDITIONS) == set(ConditionType)


def test_a_description_reads_as_it_was_written() -> None:
    assert prose("a <b> * `<c> *` see docs/packing.md") == (
        r"a &lt;b> \* `<c> *` see [packing](../packing.md)"
    )
