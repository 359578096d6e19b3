"""SIGKILL to processes on a GPU, and to no other process that got its pid meanwhile.

A pidfd names one process for good: it is opened first, then the process behind the pid is checked
to be still the one that was judged (start time and container), and the signal goes through the
pidfd.
"""

import logging
import os
import signal
from collections.abc import Iterable

from gpu_scheduler.agent.cgroup import owner
from gpu_scheduler.agent.procfs import ProcFS
from gpu_scheduler.agent.sampler import DeviceProcess

log = logging.getLogger(__name__)


def kill(procfs: ProcFS, pod_uid: str, processes: Iterable[DeviceProcess]) -> list[int]:
    """Kill those of the processes that still are what they were.

    Args:
        procfs: Where to look.
        pod_uid: The pod that they must belong to.
        processes: As they were seen in the sample.

    Returns:
        The pids that were killed.
    """
    killed = []
    for gpu_process in processes:
        if gpu_process.process is None:
            continue
        try:
            descriptor = os.pidfd_open(gpu_process.pid)
        except (OSError, OverflowError):
            continue  # gone, or a number that no process has
        try:
            now = procfs.process(gpu_process.pid)
            of = owner(now.cgroup) if now is not None else None
            same = now is not None and now.started == gpu_process.process.started
            if not same or of is None or of.pod_uid != pod_uid:
                continue
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            killed.append(gpu_process.pid)
        except PermissionError:
            log.error(
                "process %d cannot be killed: the capability KILL is missing", gpu_process.pid
            )
        except ProcessLookupError:
            pass
        finally:
            os.close(descriptor)
    return killed
