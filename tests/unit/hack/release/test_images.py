"""What a released image says of how it starts, and not of how it was built."""

from pathlib import Path

from cluster.images_operator import REQUIREMENTS
from release.images import Builder, configuration, rfc3339
from release.source import Source

BUILT = {
    "created": "2026-11-26T02:00:41.040881922Z",
    "container": "9d010aa9",
    "architecture": "arm64",
    "os": "linux",
    "config": {
        "Hostname": "5f2fe9ce52db",
        "User": "65532:65532",
        "Env": ["PATH=/bin"],
        "Cmd": ["operator"],
        "Volumes": {},
        "Labels": {"io.buildah.version": "1.28.2", "org.opencontainers.image.title": "x"},
    },
    "history": [{"created": "2026-11-26T01:59:09.509210832Z"}],
}


def test_what_tells_of_the_build_goes_and_the_rest_stays() -> None:
    found = configuration(BUILT, ["sha256:1"], 0, {"version": "1.0"})
    assert found == {
        "architecture": "arm64",
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": {
            "User": "65532:65532",
            "Env": ["PATH=/bin"],
            "Cmd": ["operator"],
            "Labels": {
                "org.opencontainers.image.title": "x",
                "org.opencontainers.image.version": "1.0",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": ["sha256:1"]},
    }


def test_times_are_those_of_utc() -> None:
    assert rfc3339(1_764_122_400) == "2025-11-26T02:00:00Z"


def test_all_images_are_released_under_the_names_that_the_chart_expects() -> None:
    builder = Builder(Source(Path(), "1.0+dirty", 0, ""), ())
    assert {target: builder.name(target) for target in REQUIREMENTS} == {
        "operator": "gpu-scheduler:1.0-dirty",
        "operator-dashboard": "gpu-scheduler:1.0-dirty-dashboard",
        "operator-tpe": "gpu-scheduler:1.0-dirty-tpe",
        "operator-tpe-dashboard": "gpu-scheduler:1.0-dirty-tpe-dashboard",
        "agent": "gpu-scheduler-agent:1.0-dirty",
    }
