import pytest

from gpu_scheduler.agent.settings import DAEMONS, load
from gpu_scheduler.environment import SettingsError


def test_the_defaults_are_those_of_the_contract() -> None:
    settings = load({"GPUSCHED_AGENT_NODE": "n1"})
    assert (settings.lease_seconds, settings.renew_seconds) == (40, 10)
    assert (settings.sample_seconds, settings.over_cap_samples) == (3, 3)
    assert not settings.kernel_limits


def test_lists_are_separated_by_commas() -> None:
    settings = load(
        {
            "GPUSCHED_AGENT_NODE": "n1",
            "GPUSCHED_AGENT_IGNORED_XIDS": "63, 74",
            "GPUSCHED_AGENT_DAEMONS": "Xorg,my-daemon",
        }
    )
    assert settings.ignored_xids == (63, 74)
    assert settings.daemons == ("Xorg", "my-daemon")


def test_a_command_in_proc_has_at_most_15_letters() -> None:
    assert all(len(name) <= 15 for name in DAEMONS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GPUSCHED_AGENT_SAMPLE_SECONDS", "0"),
        ("GPUSCHED_AGENT_SAMPLE_SECONDS", "often"),
        ("GPUSCHED_AGENT_IGNORED_XIDS", "13,x"),
        ("GPUSCHED_AGENT_TYPO", "1"),
        ("GPUSCHED_AGENT_RENEW_SECONDS", "30"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name):
        load({"GPUSCHED_AGENT_NODE": "n1", name: value})


def test_settings_of_the_operator_are_no_business_of_the_agent() -> None:
    load({"GPUSCHED_AGENT_NODE": "n1", "GPUSCHED_PLACEMENT": "both"})
