"""Programs that use a GPU as CUDA programs do, by ctypes on libcuda, and jobs that run them.

They run in the operator's image, which has Python and the C library that libgpucap needs. Every
line that they print is one JSON object.
"""

import json
from typing import Any

from tests.e2e.gpu_jobs import template

from cluster import Running, node_gpus
from demo import install

Json = dict[str, Any]

OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
PYTHON = "/opt/venv/bin/python"
EVADER = f"{node_gpus.CONTAINER_PROGRAMS}/evader"
STATIC_EVADER = f"{node_gpus.CONTAINER_PROGRAMS}/evader-static"

DRIVER = """
import ctypes, json, os, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    return getattr(cuda, name)(*arguments)
def check(name, *arguments):
    code = call(name, *arguments)
    if code:
        sys.exit(f"{name}: {code}")
def start():
    check("cuInit", 0)
    device, context = ctypes.c_int(), ctypes.c_void_p()
    check("cuDeviceGet", ctypes.byref(device), 0)
    check("cuCtxCreate_v2", ctypes.byref(context), 0, device)
def allocate(mib):
    pointer = ctypes.c_uint64()
    return call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(mib << 20)), pointer
def totals():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    check("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return {"freeMiB": free.value >> 20, "totalMiB": total.value >> 20}
def say(**words):
    print(json.dumps(words), flush=True)
"""

# Takes 256 MiB at a time until the driver says no; ends with that answer.
GREEDY = (
    DRIVER
    + """
start()
say(**totals())
got = 0
while True:
    code, _ = allocate(256)
    if code:
        break
    got += 256
say(code=code, gotMiB=got, **totals())
sys.exit(1 if code else 0)
"""
)

# Allocates and frees a gigabyte until it is told to end; any refusal ends it badly. Says when
# it has begun, and at the end how often it did.
NEIGHBOUR = (
    DRIVER
    + """
start()
rounds = 0
while not os.path.exists("/tmp/finish"):
    code, pointer = allocate(1024)
    if code:
        say(code=code, rounds=rounds)
        sys.exit(1)
    check("cuMemFree_v2", pointer)
    rounds += 1
    if rounds == 10:
        say(rounds=rounds)
    time.sleep(0.01)
say(code=0, rounds=rounds)
"""
)

# Holds 64 MiB and tells the totals four times a second.
WATCHER = (
    DRIVER
    + """
start()
assert allocate(64)[0] == 0
while True:
    say(**totals())
    time.sleep(0.25)
"""
)

# Holds 64 MiB and a third of a core, as a notebook does that works beside its GPU.
NOTEBOOK = (
    DRIVER
    + """
start()
assert allocate(64)[0] == 0
while True:
    enough = time.process_time() + 0.03
    while time.process_time() < enough:
        pass
    time.sleep(0.07)
"""
)

# Keeps the device busy for 20 % of the time until it is told to stop; then it stays and idles.
USED_ONCE = (
    DRIVER
    + """
start()
assert allocate(64)[0] == 0
check("fakegpu_busy", b"20")
while not os.path.exists("/tmp/finish"):
    time.sleep(0.1)
check("fakegpu_busy", b"0")
while True:
    time.sleep(60)
"""
)


def python(program: str, **more: Any) -> Json:
    """A pod template that runs a program."""
    image = f"docker.io/{install.REPOSITORY}:{install.TAG}"
    container = {"name": "main", "image": image, "imagePullPolicy": "Never"}
    return template({**container, "command": [PYTHON, "-c", program]}, **more)


def command(*words: str) -> Json:
    """A pod template that runs a command of the image, or one that came with the GPU."""
    made = python("")
    made["spec"]["containers"][0]["command"] = list(words)
    return made


def printed(cluster: Running, pod: Json, *, container: str = "main") -> list[Json]:
    """What a container's program has printed so far."""
    meta = pod["metadata"]
    where = ("-n", meta["namespace"], meta["name"], "-c", container)
    text = cluster.kubectl("logs", *where, check=False).stdout
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]
