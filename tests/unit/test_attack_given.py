"""Whoever checks an attack sees each way to a GPU, and takes no honest pod for one."""

import json
from typing import Any

import pytest
from tests.attack.given import VISIBLE, not_given
from tests.attack.on_gpus import NVIDIA, PLUGIN, pod

NODE = {"metadata": {"name": "n"}, "status": {"allocatable": {"nvidia.com/gpu": "8", "cpu": "9"}}}
WITHOUT = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "9"}}}
KEY = "gpu-scheduler.io/c0-devices"
OURS = [
    {"name": VISIBLE, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{KEY}']"}}}
]
VOID = [{"name": VISIBLE, "value": "void"}]


def placed(devices: str = "0", *, node: str = "n") -> dict[str, str]:
    ledger = {"v": 1, "n": node, "c": {"0": {"0": [500, 4000]}}}
    return {"gpu-scheduler.io/allocation": json.dumps(ledger), KEY: devices}


@pytest.mark.parametrize(
    "made",
    [
        pod("plain", nodeName="n"),
        pod("void", env=VOID, **NVIDIA),
        pod("placed", env=OURS, notes=placed(), **NVIDIA),
        pod("not-placed-yet", env=OURS, notes={KEY: "void"}, **NVIDIA),
        pod("asks-for-none", limits={"nvidia.com/gpu": "0", "cpu": "1"}),
        pod("not-offered", limits={"nvidia.com/mig-1g.5gb": "1"}),
        pod("node-without-a-plugin", limits={"nvidia.com/gpu.shared": "1"}),
    ],
    ids=lambda made: str(made["metadata"]["name"]),
)
def test_an_honest_pod_gets_what_it_was_given(made: dict[str, Any]) -> None:
    assert not_given(made, NODE) == []


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (pod("silent", **NVIDIA), "containers main: sees all"),
        (pod("legacy", runtimeClassName="nvidia-legacy"), "containers main: sees all"),
        (pod("picks", env=[*VOID, {"name": VISIBLE, "value": "all"}], **NVIDIA), "sees all"),
        (pod("one-more", env=OURS, notes=placed("0,1"), **NVIDIA), "sees 1, which"),
        (pod("elsewhere", env=OURS, notes=placed(node="m"), nodeName="n"), "is for node m"),
        (pod("unreadable", notes={"gpu-scheduler.io/allocation": "{"}), "cannot be read"),
        (pod("plugin", limits=PLUGIN), "containers main: 1 of nvidia.com/gpu from the device"),
        (pod("first", init=PLUGIN), "initContainers first: 1 of nvidia.com/gpu from the device"),
    ],
    ids=lambda made: made["metadata"]["name"] if isinstance(made, dict) else "",
)
def test_what_nobody_gave_is_told(made: dict[str, Any], told: str) -> None:
    (found,) = not_given(made, NODE)
    assert told in found


def test_a_config_map_counts_where_the_container_says_nothing_itself() -> None:
    def texts(kind: str, name: str) -> dict[str, str]:
        return {VISIBLE: "3", "DEVICES": "4"} if (kind, name) == ("configMap", "c") else {}

    made = pod("from-map", **NVIDIA)
    (main,) = made["spec"]["containers"]
    main["envFrom"] = [{"configMapRef": {"name": "c"}}]
    assert "sees 3" in not_given(made, NODE, texts)[0]
    main["envFrom"][0]["prefix"] = "NVIDIA_VISIBLE_"
    assert "sees 4" in not_given(made, NODE, texts)[0]
    main["env"] = VOID
    assert not_given(made, NODE, texts) == []


def test_where_the_device_plugin_serves_it_chooses_unless_a_config_map_says_more() -> None:
    made = pod("served", limits=PLUGIN, **NVIDIA)
    assert not_given(made, NODE, plugin=True) == []
    made["spec"]["containers"].append({"name": "silent"})
    assert "containers silent: sees all" in not_given(made, NODE, plugin=True)[0]
    assert "containers main: sees all" in not_given(made, WITHOUT, plugin=True)[0]
    (main, _) = made["spec"]["containers"]
    main["envFrom"] = [{"configMapRef": {"name": "c"}}]
    told = not_given(made, NODE, lambda kind, name: {VISIBLE: "7"}, plugin=True)
    assert "containers main: sees 7" in told[0]
