"""What the driver itself says of devices and processes, as ``nvidia-smi pmon`` asks it.

Asked in the agent's container, which sees the devices and the processes of all others; which pod a
process is of is read from its cgroup, so nothing of what the agent makes of it is in here.
"""

import json

from tests.e2e.gpu_jobs import FIRST, Json

from cluster import Running
from demo.install import RELEASE

_LOOK = """
import json, sys
import pynvml
pynvml.nvmlInit()
device = pynvml.nvmlDeviceGetHandleByUUID(sys.argv[1])
try:
    busy = {p.pid: p.smUtil for p in pynvml.nvmlDeviceGetProcessUtilization(device, 0)}
except pynvml.NVMLError_NotFound:
    busy = {}
found = []
for each in pynvml.nvmlDeviceGetComputeRunningProcesses(device):
    with open(f"/proc/{each.pid}/cgroup") as file:
        cgroup = file.read()
    mib = each.usedGpuMemory >> 20
    found.append({"cgroup": cgroup, "busy": busy.get(each.pid, 0), "mib": mib})
rates = pynvml.nvmlDeviceGetUtilizationRates(device)
print(json.dumps({"busy": rates.gpu, "processes": found}))
"""


def look(cluster: Running, device: str = FIRST) -> Json:
    """Of a device: ``busy``, and of each process ``cgroup``, ``busy`` and ``mib``."""
    where = (f"daemonset/{RELEASE}-agent", "-n", RELEASE, "-c", "agent")
    words = ("/opt/venv/bin/python", "-c", _LOOK, device)
    found: Json = json.loads(cluster.kubectl("exec", *where, "--", *words).stdout)
    return found


def of_pod(seen: Json, pod: Json) -> Json:
    """The only process of a pod."""
    uid = pod["metadata"]["uid"]
    (found,) = [p for p in seen["processes"] if f"pod{uid}" in p["cgroup"].replace("_", "-")]
    one: Json = found
    return one
