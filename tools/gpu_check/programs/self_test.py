"""The agent's self-test of one library: ``self_test.py LIBRARY``. Prints JSON.

The agent's own code, which imports the standard library only. Imports nothing of this package.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpu_scheduler.agent import selftest


def main(library: str) -> None:
    """Print what came of it, and whether a node would be closed for it."""
    answer: dict[str, Any] = {}

    def run(how: str, environment: Mapping[str, str]) -> dict[str, Any]:
        answer.update(selftest.run_probe(how, environment))
        return answer

    layer = selftest.interposer(run, library=Path(library))
    found = {
        "result": layer.result,
        "detail": layer.detail,
        "closes": bool(selftest.verdict(layer).failed),
        "cap_mib": selftest.LIMIT_MIB,
        "got_mib": max(answer.get("got_mib", {}).values(), default=0),
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
