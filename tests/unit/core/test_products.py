"""Which products a model means."""

import pytest
from tests.unit.builders import A100, ClusterBuilder, job, pod_shape, project, projects

from gpu_scheduler.core.fairness.flavors import by_length, flavor_of
from gpu_scheduler.core.model.catalogue import Catalogue, GPUType
from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.core.products import means, spelt

SXM = "NVIDIA-A100-SXM4-40GB"


@pytest.mark.parametrize(
    ("model", "product"),
    [
        ("A100", SXM),
        ("a100", SXM),
        ("A100-SXM4", SXM),
        ("A100 SXM4 40GB", SXM),
        ("nvidia_a100", SXM),
        (SXM, SXM),
        ("A10", "NVIDIA-A10"),
        ("A10", "NVIDIA A10"),
        ("T4", "Tesla-T4"),
        ("RTX 3090", "NVIDIA-GeForce-RTX-3090-Ti"),
        ("V100M16", "V100M16"),
        ("", "NVIDIA-A10"),
        ("-", "NVIDIA-A10"),
    ],
)
def test_a_model_means_products_that_have_its_words(model: str, product: str) -> None:
    assert means(model, product)


@pytest.mark.parametrize(
    ("model", "product"),
    [
        ("A10", SXM),
        ("100", SXM),
        ("A100-40GB", SXM),
        ("SXM4-A100", SXM),
        ("L4", "NVIDIA-L40S"),
        ("V100", "Tesla-V100S-PCIE-32GB"),
        ("A100", "NVIDIA-A10"),
        ("NVIDIA-A100-SXM4-40GB-SHARED", SXM),
        ("T4", ""),
    ],
)
def test_parts_of_words_mean_nothing(model: str, product: str) -> None:
    assert not means(model, product)


@pytest.mark.parametrize(
    ("model", "product", "shown"),
    [
        ("a100", SXM, "A100"),
        ("a100 sxm4", SXM, "A100-SXM4"),
        ("a10", "NVIDIA-A100-A10", "A10"),
        ("k80", SXM, "k80"),
    ],
)
def test_a_model_is_shown_as_the_product_spells_it(model: str, product: str, shown: str) -> None:
    assert spelt(model, product) == shown


def test_a_job_for_an_a10_does_not_start_on_an_a100() -> None:
    cluster = ClusterBuilder().node("a", 2, A100).obj()
    teams = projects(project("team-a", 4000))
    result = plan(PlanInput(cluster, teams, [job("j", pod_shape(500, models=("a10",)))]))
    assert result.assignments == ()
    assert result.waits[0].reason is Reason.UNSATISFIABLE
    assert result.waits[0].message == (
        "needs 0.5 of a GPU (a10); no GPU is of that model; models in the cluster:"
        " NVIDIA-A100-PCIE-40GB"
    )


def test_classes_and_quotas_compare_models_alike() -> None:
    classes = Catalogue((GPUType("a10", "a10"), GPUType("other", "")))
    found = [kind.name if (kind := classes.of(p)) else "" for p in (SXM, "NVIDIA-A10")]
    assert found == ["other", "a10"]
    models = by_length(["a10", "a100", "a100-sxm4"])
    assert [flavor_of(p, models) for p in (SXM, A100, "NVIDIA-A10", "Tesla-T4")] == [
        "a100-sxm4",
        "a100",
        "a10",
        "",
    ]
