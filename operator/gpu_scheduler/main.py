"""The programs: console scripts of the distribution, and ``python -m gpu_scheduler.main``.

``gpu-scheduler`` and ``kubectl-gpu`` are one; what they call themselves differs. kubectl runs the
latter as ``kubectl gpu``, and ``kubectl_complete-gpu`` to complete it.
"""

import atexit
import gc
import os
import sys

from gpu_scheduler.cli.root import app

__all__ = ["app", "kubectl_complete", "kubectl_gpu", "main"]


def main() -> None:
    """``gpu-scheduler``."""
    _collect_seldom()
    app(prog_name="gpu-scheduler", complete_var="_GPU_SCHEDULER_COMPLETE")


def kubectl_gpu() -> None:
    """``kubectl-gpu``, which kubectl finds as its plugin ``gpu``."""
    _collect_seldom()
    # pydantic would look for some in all that is installed beside us, before its first model.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    app(prog_name="kubectl gpu", complete_var="_KUBECTL_GPU_COMPLETE")


def kubectl_complete() -> None:
    """``kubectl_complete-gpu``: says nothing where something is wrong, as nobody would read it."""
    from gpu_scheduler.cli.commands.completion import candidates

    try:
        found = list(candidates(app, sys.argv[1:]))
    except Exception:
        found = [":1"]  # ShellCompDirectiveError
    print("\n".join(found))  # noqa: T201


def _collect_seldom() -> None:
    """Few objects of ours are garbage, and there are many.

    Of a command that is over in a second a tenth would go into looking for it, and as much again at
    its end, and the operator's loop would stand still for most of a second.
    """
    gc.set_threshold(50_000, 20, 100)
    atexit.register(gc.freeze)


if __name__ == "__main__":
    main()
