#!/usr/bin/env bash
# The core of the api tier on other versions of Kubernetes than the usual one, which is the newest that can be had.
#
#   hack/versions.sh [VERSION…]     all but the usual one, unless told (hack/cluster/programs.py)
#
# Their programs are built from source once, about 15 minutes for a version on two cores. Prints a
# line for each version; stops at the first that fails.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
export PYTHONPATH="$PWD/operator:$PWD/hack:$PWD/tools"

# What a scheduler does with an API server: places, quotas, gangs, sweeps, ends, leaders, policies.
core=(
  tests/api/admission
  tests/api/test_chart_release.py
  tests/api/test_classes.py
  tests/api/test_crds.py
  tests/api/test_fair_share.py
  tests/api/test_faults.py
  tests/api/test_gang_failures.py
  tests/api/test_gangs.py
  tests/api/test_leader_ends.py
  tests/api/test_lifecycle.py
  tests/api/test_quota.py
  tests/api/test_restart.py
  tests/api/test_shares.py
  tests/api/test_states.py
  tests/api/test_sweeps.py
)

versions=("$@")
[ ${#versions[@]} -gt 0 ] ||
  mapfile -t versions < <("$python" -c 'from cluster.programs import KUBERNETES as k; print(*list(k)[1:], sep="\n")')
for version in "${versions[@]}"; do
  export GPU_SCHEDULER_KUBERNETES=$version
  began=$SECONDS code=0
  "$python" -m cluster build core
  "$python" -m pytest -n $(($(nproc) < 5 ? $(nproc) + 1 : 5)) "${core[@]}" || code=$?
  echo "versions: Kubernetes $version: exit $code after $((SECONDS - began)) s"
  [ $code = 0 ] || exit $code
done
