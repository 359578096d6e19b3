"""Small traces as files."""

import lzma
from pathlib import Path

NODES = "sn,cpu_milli,memory_mib,gpu,model\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"


def nodes_file(folder: Path, *lines: str) -> Path:
    path = folder / "nodes.csv"
    path.write_text(NODES + "".join(f"{line}\n" for line in lines))
    return path


def pods_file(folder: Path, *lines: str) -> Path:
    path = folder / "pods.csv"
    path.write_text(PODS + "".join(f"{line}\n" for line in lines))
    return path


def compressed(path: Path) -> Path:
    packed = path.with_suffix(".csv.xz")
    packed.write_bytes(lzma.compress(path.read_bytes()))
    return packed
