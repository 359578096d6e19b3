"""What people read: every sentence, with the numbers of its trace, and the line that does it."""

from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as replace_fields
from tests.unit.usage.advice.traces import TRACES

from gpu_scheduler.api.gpuusage import Advice
from gpu_scheduler.usage.advice import phrases
from gpu_scheduler.usage.advice.finding import Finding, RuleName
from gpu_scheduler.usage.advice.rules import advise
from gpu_scheduler.usage.advice.work import EarlierRun

SENTENCES = {
    RuleName.GPU_NEVER_USED: (
        "it has run for 60 minutes and no process of it was ever on the GPU: its code or "
        "image does not use CUDA; make it do so, or ask for no GPU"
    ),
    RuleName.GPU_IDLE: (
        "it holds 1 GPU and has computed nothing there for 30 minutes: release it, which "
        "gives back 24 GPU-hours a day"
    ),
    RuleName.THROTTLED: (
        "heat or a power brake slowed its GPU down in 33 % of the looks of 15 minutes: it is "
        "the hardware; tell who runs the node"
    ),
    RuleName.MEMORY_TIGHT: (
        "its memory cap refused 20 allocations, 9 of them in the last half-hour, and it has "
        "held 77,046 MiB of 77,824 MiB: ask for a GPU with more memory, or use mixed "
        "precision, a smaller batch or gradient accumulation"
    ),
    RuleName.CONTENDED: (
        "its GPU is busy 100 % of the time and neighbours use 30 % of it beyond their shares, "
        "so it gets 57 % of its share: computing time is not divided; take a whole GPU, or "
        "other neighbours"
    ),
    RuleName.DATA_BOUND: (
        "it uses 20 % of its GPU while its CPU is at 95 %: loading or preprocessing keeps the "
        "GPU waiting; give it more CPU, or prepare data on the GPU (DALI), with pinned "
        "memory, from a cache, or once beforehand"
    ),
    RuleName.ADD_WORKERS: (
        "it uses 20 % of its GPU while its CPU is at 30 % and it waits for disks 40 % of the "
        "time: use more loader workers, or faster storage"
    ),
    RuleName.CODE_BOUND: (
        "it uses 20 % of its GPU while its CPU is at 10 % and it hardly waits for disks: what "
        "runs between its kernels runs on few threads; parallelise that code, or use more "
        "loader workers if it is loading"
    ),
    RuleName.STOP_AND_GO: (
        "it stopped 9 times in 15 minutes, which takes 30 % of its time, with 95 % of its GPU in "
        "use in between: its input pipeline stalls; prefetch more, or make pauses such as "
        "evaluation shorter"
    ),
    RuleName.SCALING_INEFFICIENT: (
        "train-4 uses 40 % of its GPU, while the median of 5 pods is 95 %: the others wait "
        "for the slowest; look at its node and its data, or use fewer workers"
    ),
    RuleName.NO_TENSOR_CORES: (
        "it uses 95 % of its GPU, and the tensor cores of the NVIDIA H100 80GB HBM3 0 % of "
        "the time: use mixed precision (BF16, FP16 or TF32), if what it computes allows that"
    ),
    RuleName.OVERSIZED: (
        "95 % of the time it used at most 80 % of a GPU and held at most 23,347 MiB of 81,920 "
        "MiB: ask for 0.8 instead of 1, which gives back 4.8 GPU-hours a day, worth 12.00"
    ),
    RuleName.SMALL_BATCH: (
        "it uses 60 % of its share and has held at most 40 % of its memory, 6,226 MiB of "
        "15,565 MiB: try a larger batch, and scale the learning rate with it"
    ),
}


SMALLER = "kubectl gpu submit train-2 --from train -n team-a -g 0.8"


def first(rule: RuleName, **fields: Any) -> Finding:
    return advise(replace(TRACES[rule](), **fields))[0]


@pytest.mark.parametrize("rule", RuleName)
def test_each_rule_has_its_sentence(rule: RuleName) -> None:
    assert first(rule).message == SENTENCES[rule]


@pytest.mark.parametrize("rule", RuleName)
def test_every_sentence_fits_into_the_object(rule: RuleName) -> None:
    found = first(rule)
    advice = Advice(rule=found.rule, since=None, message=found.message, command=found.command)
    assert (advice.message, advice.command) == (found.message, found.command)


def test_what_is_idle_is_released_by_a_command_of_its_kind() -> None:
    for name, command in {
        "train": "kubectl gpu suspend -n team-a train",
        "deployment/api": "kubectl scale -n team-a deployment/api --replicas=0",
        "statefulset/lab": "kubectl scale -n team-a statefulset/lab --replicas=0",
        "pod/lone": "",
    }.items():
        assert first(RuleName.GPU_IDLE, name=name).command == command


def test_a_smaller_share_is_asked_for_by_a_command_where_it_is_a_job() -> None:
    assert first(RuleName.OVERSIZED).command == SMALLER
    assert first(RuleName.OVERSIZED, name="deployment/api").command == ""


def test_of_several_gpus_each_gets_the_smaller_share() -> None:
    found = first(RuleName.OVERSIZED, gpus=4.0, pods=2)
    assert "ask for 0.8 instead of 1 on each GPU" in found.message
    assert found.command == f"{SMALLER} --gpu-devices 4"
    assert found.saved == pytest.approx(0.2 * 4 * 2 * 24)


def test_only_what_gives_gpus_back_saves_any() -> None:
    saving = {rule for rule in RuleName if first(rule).saved}
    assert saving == {RuleName.GPU_NEVER_USED, RuleName.GPU_IDLE, RuleName.OVERSIZED}


def test_money_is_named_where_there_is_a_price() -> None:
    assert "a day, worth 12.00" in first(RuleName.OVERSIZED, price=2.5).message
    assert "worth" not in first(RuleName.OVERSIZED, price=None).message
    assert "24 GPU-hours a day, worth 60.00" in first(RuleName.GPU_IDLE, price=2.5).message


def test_a_whole_gpu_that_is_too_small_needs_another_model() -> None:
    assert "ask for a GPU with more memory" in first(RuleName.MEMORY_TIGHT).message
    assert "ask for a bigger share" in first(RuleName.MEMORY_TIGHT, share=0.5, gpus=0.5).message


@pytest.mark.parametrize("rule", [RuleName.ADD_WORKERS, RuleName.CODE_BOUND])
def test_where_it_may_be_loaders_or_code_both_are_named(rule: RuleName) -> None:
    work = TRACES[RuleName.CODE_BOUND]()
    cores = {RuleName.ADD_WORKERS: 10.0, RuleName.CODE_BOUND: 8.0}[rule]
    found = advise(replace(work, cpu_cores=cores))[0]
    assert found.rule == rule
    assert "more loader workers" in found.message
    assert "parallelise that" in found.message


def test_a_run_with_fewer_workers_is_named() -> None:
    earlier = EarlierRun("train-1", 1, 0.9)
    work = replace(TRACES[RuleName.SCALING_INEFFICIENT](), members=(), workers=5, earlier=earlier)
    found = advise(replace(work, means=(0.5,) * 4))[0]
    assert found.message == (
        "its 5 workers use 50 % of each GPU, while train-1 with 1 worker used 90 %: more of them "
        "wait for each other or for data; use fewer workers, larger batches, or a faster network"
    )


def test_disks_that_more_workers_would_not_help_are_named() -> None:
    work = TRACES[RuleName.ADD_WORKERS]()
    found = advise(
        replace(work, windows=[replace_fields(each, ram_max=0.9) for each in work.windows])
    )
    assert found[0].message == (
        "it uses 20 % of its GPU and waits for disks 40 % of the time, with 90 % of its memory "
        "beside the GPU in use, so more workers have no room: use faster storage, a cache, or "
        "fewer and larger files"
    )


def test_times_are_never_longer_than_they_were() -> None:
    told = {0: "0 minutes", 60: "1 minute", 599: "9 minutes", 1799: "20 minutes"}
    told |= {7199: "110 minutes", 7200: "2 hours", 172_799: "47 hours", 172_800: "2 days"}
    assert {seconds: phrases.lasting(seconds) for seconds in told} == told
