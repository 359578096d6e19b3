"""The agent's image has what requirements/agent.txt names, and the agent imports nothing else."""

import json
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[3]
SCRIPT = """
import json, sys
before = set(sys.modules)
import gpu_scheduler.main, gpu_scheduler.agent.process, gpu_scheduler.agent.selftest
import gpu_scheduler.agent.probe, gpu_scheduler.kube.config
print(json.dumps(sorted({name.split(".")[0] for name in set(sys.modules) - before})))
"""


def test_every_import_is_pinned_for_the_agents_image() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={"PYTHONPATH": str(ROOT / "operator")},
        capture_output=True,
        text=True,
        check=True,
    )
    distributions = packages_distributions()
    needed = {
        name.lower().replace("_", "-")
        for module in json.loads(done.stdout)
        for name in distributions.get(module, ())
    }
    text = (ROOT / "requirements" / "agent.txt").read_text()
    pinned = set(re.findall(r"^([a-z0-9._-]+)==", text, re.MULTILINE))
    assert {"nvidia-ml-py", "aiohttp"} <= needed
    assert needed <= pinned
