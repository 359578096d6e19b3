"""What of a template does not count is told with the field that does."""

from typing import Any

import pytest

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.jobs.unhonoured import unhonoured

MAIN = {"containers": [{"name": "main", "image": "x"}]}


def said(template: dict[str, Any], **more: Any) -> str:
    return unhonoured(GPUJobSpec.model_validate({"gpu": 0.5, "template": template, **more}))


def test_everything_counts_of_a_job_that_says_nothing_twice() -> None:
    assert unhonoured(GPUJobSpec.model_validate({"gpu": 1, "image": "x"})) == ""
    template = {"metadata": {"labels": {"team": "a"}}, "spec": MAIN}
    assert said(template, timeLimitSeconds=5) == ""
    assert said({"spec": {**MAIN, "activeDeadlineSeconds": 5}}) == "", "which is the limit then"


@pytest.mark.parametrize("odd", [None, [], "x", 5])
def test_metadata_of_another_form_is_passed_over(odd: object) -> None:
    """Who judges templates says what is wrong with it."""
    assert said({"metadata": {"labels": odd}, "spec": MAIN}) == ""


def test_another_scheduler_is_named() -> None:
    sentence = said({"spec": {**MAIN, "schedulerName": "default-scheduler"}})
    assert sentence.startswith("spec.template.spec.schedulerName: default-scheduler does not count")
    assert "remove the field" in sentence


def test_of_two_time_limits_the_one_that_counts_is_named() -> None:
    sentence = said({"spec": {**MAIN, "activeDeadlineSeconds": 5}}, timeLimitSeconds=60)
    assert "spec.template.spec.activeDeadlineSeconds does not count" in sentence
    assert "spec.timeLimitSeconds (60 s)" in sentence


@pytest.mark.parametrize("kind", ["labels", "annotations"])
def test_keys_with_which_pods_ask_by_themselves_are_named(kind: str) -> None:
    template = {"metadata": {kind: {"gpu-scheduler.io/gpu": "0.25", "a": "b"}}, "spec": MAIN}
    sentence = said(template)
    assert f"spec.template.metadata.{kind}: gpu-scheduler.io/gpu does not count" in sentence
    assert "spec.gpu" in sentence


def test_of_a_role_the_place_is_the_roles() -> None:
    template = {"spec": {**MAIN, "schedulerName": "default-scheduler"}}
    roles = [{"name": "a", "gpu": 1, "image": "x"}, {"name": "b", "gpu": 1, "template": template}]
    sentence = unhonoured(GPUJobSpec.model_validate({"roles": roles}))
    assert sentence.startswith("spec.roles[1].template.spec.schedulerName: ")
    shared = unhonoured(
        GPUJobSpec.model_validate({"template": template, "roles": [{"name": "a"}, {"name": "b"}]})
    )
    assert shared.count("schedulerName") == 1, "said once of a template that several roles have"
