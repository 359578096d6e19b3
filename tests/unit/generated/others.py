"""Leases of agents, ConfigMaps of results, logs of trials, and what NVML answers."""

import json
from typing import Any

from hypothesis import strategies as st
from tests.unit.generated.values import LONG, Obj, anything, integers, spoiled, texts

from gpu_scheduler.agent.driver import (
    DeviceLostError,
    DeviceMemory,
    DeviceProperties,
    DriverError,
    GpuProcess,
    UnsupportedError,
    Vitals,
)
from gpu_scheduler.api import names


@st.composite
def hostile_leases(draw: st.DrawFn) -> Obj:
    """An agent's Lease: of node bad-0, of none, or of a node with a strange name."""
    good = {
        "metadata": {
            "name": names.AGENT_LEASE_PREFIX + draw(st.sampled_from(["bad-0", "nowhere", ""])),
            "namespace": "gpu-scheduler",
            "uid": "uid-lease",
            "resourceVersion": "1",
            "labels": {names.LABEL_COMPONENT: names.COMPONENT_AGENT},
        },
        "spec": {
            "holderIdentity": draw(texts),
            "leaseDurationSeconds": draw(integers),
            "renewTime": draw(texts),
        },
    }
    return good


@st.composite
def hostile_configmaps(draw: st.DrawFn) -> Obj:
    """A ConfigMap under the name of a sweep's results."""
    rows = st.one_of(
        texts,
        st.sampled_from(
            ["1\tSucceeded\t0.5", "1\t" * 500, "999999999\tSucceeded\t1e400", "-1\t\t", "1\n1\n1"]
        ),
    )
    good: dict[str, Any] = {
        "metadata": {
            "name": names.results_name("bad-job-0", draw(st.integers(0, 2))),
            "namespace": "team-bad",
            "uid": "uid-results",
            "resourceVersion": "1",
            "labels": {},
            "annotations": {},
            "ownerReferences": [],
        },
        "data": {names.RESULTS_KEY: draw(rows)},
    }
    return good


log_lines = st.one_of(
    texts,
    st.sampled_from(
        ["loss=0.5", "loss=nan", "loss=1e400", "\r" * 10_000, "a" * 40_000, "loss=" + "9" * 5_000]
    ),
)

logs = st.lists(log_lines, max_size=5).map(lambda lines: "\n".join(lines).encode())

reports = st.one_of(
    st.just(b'{"step": 1, "metrics": {"loss": 0.5}}'),
    st.sampled_from([b"", b"{", b"[" * 2_000, b"\xff\xfe", LONG.encode(), b'{"step": 1e999}']),
    st.builds(
        lambda step, value: json.dumps({"step": step, "metrics": {"loss": value}}).encode(),
        anything,
        anything,
    ),
    anything.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=40),
)


# NVML's types are C's: unsigned 64 bits, texts of at most 96 bytes, a version of two ints.
@st.composite
def hostile_orders(draw: st.DrawFn) -> bytes:
    """What an agent's file says of its node, and what may become of such a file."""
    container = {"index": 0, "name": "main", "id": "", "capsMib": {"GPU-a": draw(integers)}}
    ours = {"uid": "u", "namespace": "team-a", "name": draw(texts), "containers": [container] * 2}
    good = {
        "nodeUid": "n",
        "v": draw(st.sampled_from([1, 1, 1, 0, 2])),
        "gpuNode": draw(st.sampled_from([None, {"uid": "g", "version": "1"}])),
        "pods": [{**ours, "kill": draw(st.booleans())}],
        "others": [{"uid": "o", "namespace": "x", "name": "y", "wholeGpus": True}],
    }
    text = json.dumps(draw(st.one_of(st.just(good), spoiled(good)))).encode()
    return draw(st.sampled_from([text, text, text, text[:-3], b""]))


_bytes = st.sampled_from([0, 1, 512 << 20, 40_960 << 20, 2**63 - 1, 2**64 - 1])
_version_parts = st.sampled_from([0, 1, 8, 99, 100, -1, 2**31 - 1])


@st.composite
def nvml_facts(draw: st.DrawFn) -> list[DeviceProperties]:
    """Devices as a driver may describe them: twice the same one, none, nameless, of no memory."""
    return draw(
        st.lists(
            st.builds(
                DeviceProperties,
                uuid=st.sampled_from(["GPU-a", "GPU-b", "", "x" * 96, "MIG-\u0001"]),
                index=st.integers(0, 16),
                model=texts.map(lambda text: text[:96]),
                compute_capability=st.builds("{}.{}".format, _version_parts, _version_parts),
                memory=st.none() | st.builds(DeviceMemory, _bytes, _bytes, _bytes),
                mig=st.booleans(),
            ),
            max_size=4,
        )
    )


nvml_processes = st.lists(
    st.builds(GpuProcess, st.sampled_from([0, 1, 4_000_000_000, 2**32 - 1]), st.none() | _bytes),
    max_size=3,
)

nvml_errors = st.sampled_from(
    [None, DriverError(""), DriverError(LONG), DeviceLostError("gone"), UnsupportedError("no")]
)

nvml_vitals = st.builds(
    Vitals,
    uncorrected_ecc=st.none() | integers,
    remapped_after_corrected=st.none() | integers,
    remapped_after_uncorrected=st.none() | integers,
    remap_failed=st.booleans(),
    recovery_action=st.none() | integers,
)
