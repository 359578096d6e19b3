"""Every program of the local cluster: its Go module, package and build flags.

The version of a program is in its module's go.mod and nowhere else, except where
a program prints its version only if the linker is told. `build.py` reads this
table; `key` is what makes a changed version replace its module's programs and no others.
"""

import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

TOOLS_FOLDER = Path(__file__).parent / "tools"

# By version, the folder of its module. The first is what a cluster has unless it is told otherwise,
# the others are those before it on which the chart is tried: `make test-versions`.
KUBERNETES = {
    "1.37.2": "kubernetes-1.37",
    "1.35.4": "kubernetes-1.35",
    "1.36.3": "kubernetes",
}
VARIABLE = "GPU_SCHEDULER_KUBERNETES"
KUBERNETES_VERSION = os.environ.get(VARIABLE) or next(iter(KUBERNETES))
if KUBERNETES_VERSION not in KUBERNETES:
    raise SystemExit(f"{VARIABLE}={KUBERNETES_VERSION}: it may be one of {', '.join(KUBERNETES)}")
KUBERNETES_MINOR = int(KUBERNETES_VERSION.split(".")[1])
_KUBERNETES_FLAGS = " ".join(
    f"-X k8s.io/component-base/version.{name}={value}"
    for name, value in (
        ("gitVersion", f"v{KUBERNETES_VERSION}"),
        ("gitMajor", KUBERNETES_VERSION.split(".")[0]),
        ("gitMinor", KUBERNETES_VERSION.split(".")[1]),
    )
)
# The runtime opens libnvidia-ml itself and late; its symbols must not be wanted at start.
_NVIDIA_FLAGS = "-extldflags=-Wl,-z,lazy"


@dataclass(frozen=True, slots=True)
class Program:
    """One program, built from the package `package` of the module folder `module`."""

    name: str
    module: str
    package: str
    group: str
    linker_flags: str = ""
    cgo: bool = False

    @property
    def flags(self) -> tuple[str, ...]:
        """What `go build` gets besides the package and the output."""
        linker = " ".join(part for part in ("-s -w", self.linker_flags) if part)
        return ("-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", linker)


def _kubernetes(name: str, group: str = "core") -> Program:
    module, package = KUBERNETES[KUBERNETES_VERSION], f"k8s.io/kubernetes/cmd/{name}"
    return Program(name, module, package, group, _KUBERNETES_FLAGS)


PROGRAMS: tuple[Program, ...] = (
    Program("certs", "certs", ".", "core"),
    Program("etcd", "etcd", ".", "core"),
    _kubernetes("kube-apiserver"),
    _kubernetes("kube-controller-manager"),
    _kubernetes("kube-scheduler"),
    _kubernetes("kubectl"),
    Program(
        "kwok",
        "kwok",
        "sigs.k8s.io/kwok/cmd/kwok",
        "core",
        "-X sigs.k8s.io/kwok/pkg/consts.Version=v0.8.0",
    ),
    Program(
        "helm",
        "helm",
        "helm.sh/helm/v4/cmd/helm",
        "core",
        "-X helm.sh/helm/v4/internal/version.version=v4.3.1",
    ),
    _kubernetes("kubelet", "node"),
    Program(
        "nvidia-container-runtime",
        "nvidia",
        "github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-container-runtime",
        "node",
        _NVIDIA_FLAGS,
        cgo=True,
    ),
    Program("kubeconform", "kubeconform", "github.com/yannh/kubeconform/cmd/kubeconform", "check"),
    Program(
        "helm-unittest",
        "helm-unittest",
        "github.com/helm-unittest/helm-unittest/cmd/helm-unittest",
        "check",
    ),
)
GROUPS: tuple[str, ...] = ("core", "node", "check")


def in_groups(groups: Iterable[str]) -> tuple[Program, ...]:
    """The programs of `groups`, in the order in which they are built."""
    wanted = set(groups)
    return tuple(program for program in PROGRAMS if program.group in wanted)


def version(program: Program, tools: Path = TOOLS_FOLDER) -> str:
    """The released version that go.mod names, such as 1.36.3; empty for a program of ours."""
    text = (tools / program.module / "go.mod").read_text(encoding="utf-8")
    match = re.search(r"^require \S+ v(\S+)$", text, re.MULTILINE)
    return match[1] if match else ""


def key(program: Program, tools: Path = TOOLS_FOLDER) -> str:
    """A digest of all that decides what `program` is: its module's files and its flags."""
    digest = hashlib.sha256()
    module = tools / program.module
    for path in sorted([module / "go.mod", *module.glob("go.sum"), *module.glob("*.go")]):
        digest.update(f"{path.name} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    digest.update("\0".join((program.package, str(program.cgo), *program.flags)).encode())
    return digest.hexdigest()[:16]
