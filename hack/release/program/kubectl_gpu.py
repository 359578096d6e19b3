"""What the stand-alone program runs; `__complete` stands for `kubectl_complete-gpu`."""

import sys

from gpu_scheduler.main import kubectl_complete, kubectl_gpu

if sys.argv[1:2] == ["__complete"]:
    del sys.argv[1]
    kubectl_complete()
else:
    kubectl_gpu()
