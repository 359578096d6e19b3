import pytest

from cluster.images_operator import agent_tag


@pytest.mark.parametrize(
    ("tag", "agent"),
    [
        ("gpu-scheduler:dev", "gpu-scheduler-agent:dev"),
        ("gpu-scheduler/operator:dev", "gpu-scheduler/operator-agent:dev"),
        ("host:5000/gpu-scheduler:1.0", "host:5000/gpu-scheduler-agent:1.0"),
        ("host:5000/gpu-scheduler", "host:5000/gpu-scheduler-agent"),
        ("gpu-scheduler", "gpu-scheduler-agent"),
    ],
)
def test_the_agents_image_is_named_after_the_operators(tag: str, agent: str) -> None:
    assert agent_tag(tag) == agent
