"""``make gpu-check``: whether caps on device memory hold on this machine's NVIDIA driver.

One command, no Kubernetes, no root, no CUDA toolkit: it builds libgpucap and a small program with
gcc, runs every way to get device memory in processes of its own under a small cap, and writes a
table and a JSON report. Only the standard library is imported, so a bare machine's ``python3`` runs
it too. With ``--fake`` it does the same on the pretended driver of native/fakegpu.

    findings  what a line of the table is          boxes     a capped process's environment
    machine   what it ran on                       probes    a process that obeys commands
    libraries, building, pretended   preparation   nvml      the driver's view from outside
    rows, together, costs, contexts, frameworks    the checks
    foreign, state_folders, selftests              more of them
    programs, framework_programs     run by path, in processes of their own
    plan      their order                          report    table and JSON
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036  # a bare machine's python3 may be any
    print(f"gpu-check: Python 3.11 or newer is needed, this is {sys.version.split()[0]}")
    raise SystemExit(2)
