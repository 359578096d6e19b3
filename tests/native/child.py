"""Runs one function of a test module in this process and prints its result as JSON.

python -m tests.native.child tests.native.test_fake_cuda:some_function '[1, 2]'
"""

import importlib
import json
import sys

if __name__ == "__main__":
    module, function = sys.argv[1].split(":")
    result = getattr(importlib.import_module(module), function)(*json.loads(sys.argv[2]))
    sys.stdout.write(json.dumps(result) + "\n")
