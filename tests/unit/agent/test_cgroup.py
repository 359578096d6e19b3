import pytest

from gpu_scheduler.agent.cgroup import Owner, owner

UID = "0d2f1a5e-1111-4222-8333-444455556666"
FLAT = UID.replace("-", "_")
ID = "0123456789abcdef" * 4
V1 = "\n".join(
    f"{n}:{name}:{{0}}" for n, name in ((12, "pids"), (11, "cpu,cpuacct"), (1, "name=systemd"))
)


@pytest.mark.parametrize(
    "path",
    [
        # cgroupfs driver: containerd and Docker, CRI-O; the three QoS classes
        f"/kubepods/pod{UID}/{ID}",
        f"/kubepods/burstable/pod{UID}/{ID}",
        f"/kubepods/besteffort/pod{UID}/{ID}",
        f"/kubepods/burstable/pod{UID}/crio-{ID}",
        # systemd driver: guaranteed, burstable, best effort; each runtime
        f"/kubepods.slice/kubepods-pod{FLAT}.slice/cri-containerd-{ID}.scope",
        "/kubepods.slice/kubepods-burstable.slice/"
        f"kubepods-burstable-pod{FLAT}.slice/cri-containerd-{ID}.scope",
        "/kubepods.slice/kubepods-besteffort.slice/"
        f"kubepods-besteffort-pod{FLAT}.slice/crio-{ID}.scope",
        "/kubepods.slice/kubepods-besteffort.slice/"
        f"kubepods-besteffort-pod{FLAT}.slice/docker-{ID}.scope",
        # CRI-O puts the processes one below
        f"/kubepods.slice/kubepods-pod{FLAT}.slice/crio-{ID}.scope/container",
        # containerd told to use cgroupfs names on a systemd host
        f"/system.slice/containerd.service/kubepods-burstable-pod{FLAT}.slice:cri-containerd:{ID}",
        # a kubelet in a container (kind), and one with a root of its own
        f"/docker/{'a' * 64}/kubelet.slice/kubelet-kubepods.slice/"
        f"kubelet-kubepods-pod{FLAT}.slice/cri-containerd-{ID}.scope",
        f"/gpu-cluster/kubepods/pod{UID}/{ID}",
        # a reader in its own cgroup namespace
        f"/../../kubepods-burstable-pod{FLAT}.slice/cri-containerd-{ID}.scope",
        f"/../../../burstable/pod{UID}/{ID}",
        # a container that makes cgroups of its own
        f"/kubepods/burstable/pod{UID}/{ID}/init.scope",
    ],
)
@pytest.mark.parametrize("version", ["0::{0}\n", V1])
def test_a_containers_process_is_recognised(path: str, version: str) -> None:
    assert owner(version.format(path)) == Owner(UID, ID)


def test_a_static_pods_uid_is_a_plain_digest() -> None:
    uid = "0123456789abcdef" * 2
    assert owner(f"0::/kubepods/burstable/pod{uid}/{ID}") == Owner(uid, ID)


def test_a_process_in_the_pods_own_group_has_no_container() -> None:
    assert owner(f"0::/kubepods/burstable/pod{UID}") == Owner(UID, None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0::/",
        "0::/init.scope",
        "0::/user.slice/user-1000.slice/session-1.scope",
        "0::/../../../../system.slice/nvidia-persistenced.service",
        f"0::/system.slice/docker-{ID}.scope",
        f"0::/podman/pod{UID[:8]}/{ID}",
        "nonsense",
        "0::/kubepods/podnot-a-uid/x",
    ],
)
def test_other_processes_belong_to_no_pod(text: str) -> None:
    assert owner(text) is None
