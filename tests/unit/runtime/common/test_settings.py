"""Settings come from the environment; a mistake is one sentence that names the variable."""

from pathlib import Path

import pytest
import yaml

from gpu_scheduler.core.model.preemption_policy import FAIR, STRICT, PreemptionPolicy
from gpu_scheduler.environment import SettingsError
from gpu_scheduler.runtime.common.settings import PREFIX, OperatorSettings, load

VALUES = Path(__file__).parents[4] / "charts" / "gpu-scheduler" / "values.yaml"


def test_nothing_set_means_the_defaults() -> None:
    settings = load({"PATH": "/bin"})
    assert settings == OperatorSettings(identity=settings.identity)
    assert settings.identity


def test_variables_are_read() -> None:
    settings = load({"GPUSCHED_LEASE_SECONDS": "20", "GPUSCHED_PLACEMENT": "gate"})
    assert (settings.lease_seconds, settings.placement) == (20.0, "gate")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NO_SUCH_THING", "1"),
        ("PLACEMENT", "both"),
        ("STUCK_SECONDS", "soon"),
        ("STUCK_SECONDS", "0"),
        ("WRITE_CONCURRENCY", "0"),
        ("ADMIN_PORT", "65536"),
        ("LOG_LEVEL", "loud"),
        # retry < renew deadline < lease, else the election cannot work
        ("LEASE_SECONDS", "10"),
        ("RETRY_SECONDS", "10"),
    ],
)
def test_a_mistake_names_the_variable(name: str, value: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load({PREFIX + name: value})
    assert PREFIX + name in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["inf", "nan"])
def test_a_number_that_is_not_finite_is_refused_by_name(value: str) -> None:
    names = [
        name for name, field in OperatorSettings.model_fields.items() if field.annotation is float
    ]
    assert "lease_seconds" in names
    for name in names:
        with pytest.raises(SettingsError, match=f"^{PREFIX}{name.upper()}: .*finite"):
            load({PREFIX + name.upper(): value})


def test_an_empty_variable_means_the_default() -> None:
    assert load({"GPUSCHED_LEASE_SECONDS": ""}).lease_seconds == 15.0
    assert load({"GPUSCHED_IDENTITY": ""}).identity


def test_an_empty_runtime_class_means_none() -> None:
    assert load({"GPUSCHED_RUNTIME_CLASS": ""}).runtime_class == ""
    assert load({}).runtime_class == "nvidia"


def test_a_port_for_reports_needs_an_address_that_pods_can_call() -> None:
    with pytest.raises(SettingsError, match=f"{PREFIX}REPORT_URL"):
        load({"GPUSCHED_REPORT_PORT": "8081"})
    url = "http://reports.example/reports"
    settings = load({"GPUSCHED_REPORT_PORT": "8081", "GPUSCHED_REPORT_URL": url})
    assert (settings.report_port, settings.report_url) == (8081, url)


def test_every_setting_is_described_or_speaks_for_itself() -> None:
    for name, field in OperatorSettings.model_fields.items():
        assert field.description or name == "log_level"


def snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


def test_the_chart_has_the_same_defaults() -> None:
    values = yaml.safe_load(VALUES.read_text())
    shown = {**values["scheduling"], **values["leaderElection"], "logLevel": values["logLevel"]}
    shown["isolation"] = values["isolation"]["default"]
    assert len(shown) > 5
    for name, value in shown.items():
        assert OperatorSettings.model_fields[snake(name)].default == value, name


def test_promises_are_the_planners_or_strict() -> None:
    given = {"GUARANTEE_SECONDS": "1", "PATIENCE_SECONDS": "2", "MIN_RUNTIME_SECONDS": "3"}
    given |= {"SHARE_WINDOW_SECONDS": "4"}
    environ = {f"{PREFIX}{name}": value for name, value in given.items()}
    assert load({}).preemption_policy == FAIR
    assert load(environ).preemption_policy == PreemptionPolicy(1.0, 2.0, 3.0, 4.0)
    assert load(environ | {f"{PREFIX}PREEMPTION": "strict"}).preemption_policy == STRICT
