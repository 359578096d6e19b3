#!/usr/bin/env bash
# Runs the tiers of the tests one after the other and stops at the first that fails.
#
#   hack/test.sh [unit|native|chart|api|e2e]…
#
# Exit code: that of the pytest run that failed; 3 when CI=true and a tier cannot run here. The
# last lines are always pytest's own.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
export PYTHONPATH="$PWD/operator:$PWD/hack:$PWD/tools"

tiers=("$@")
[ ${#tiers[@]} -gt 0 ] || tiers=(unit native chart api e2e)

# e2e needs a real node: containerd and the kubelet run as root, on Linux.
can_run_e2e() { [ "$(id -u)" = 0 ] && [ "$(uname -s)" = Linux ]; }

runnable=()
for tier in "${tiers[@]}"; do
  if [ "$tier" = e2e ] && ! can_run_e2e; then
    echo "test: the e2e tier is SKIPPED: its real node needs root on Linux (sudo make test)"
    if [ "${CI:-}" = true ]; then
      echo "test: with CI=true a tier that is skipped is a failure" >&2
      exit 3
    fi
    continue
  fi
  [ -d "tests/$tier" ] || { echo "test: there is no tier $tier in tests/" >&2; exit 2; }
  runnable+=("$tier")
done
[ ${#runnable[@]} -gt 0 ] || exit 3

heading() { printf '\n=== %s\n' "$*"; }

began=$SECONDS
# Setup leaves byte code to who imports; here a hundred processes would each make it anew.
"$python" -m compileall -qq -j 0 "$(dirname "$python")/../lib" || true
if [[ " ${runnable[*]} " =~ \ (chart|api|e2e)\  ]]; then
  heading "tools: Kubernetes, helm and the rest, fetched or built once per user"
  "$python" -m cluster build core check
fi

run_tier() { # run_tier TIER [COMMAND…]: in place of the shell, by a command such as nice
  local arguments=()
  case $1 in
    # The tests with 2,000 examples stand together: a worker that is done takes some of another's.
    unit | native) arguments+=(-n auto --dist worksteal) ;;
    # Half of it is waiting, so one more than there are cores; each has a cluster of its own.
    # What goes to whom, and in which order: tests/api/by_length.py.
    api) arguments+=(-n $(($(nproc) < 5 ? $(nproc) + 1 : 5)) --durations 15 --durations-min 10) ;;
    e2e) arguments+=(--durations 15 --durations-min 10) ;;
  esac
  exec "${@:2}" "$python" -m pytest "tests/$1" "${arguments[@]}"
}

# The e2e tier waits for three quarters of its time. With E2E_BESIDE=true it runs beside the others,
# which make way for it (nice), and what it says is shown in one piece after them: 19 minutes instead
# of 30. Not by itself: of five such runs two met a race within one of its tests.
beside=
if [[ ${E2E_BESIDE:-} = true && " ${runnable[*]:0:${#runnable[@]}-1} " =~ \ (unit|api)\  && ${runnable[-1]} = e2e ]]; then
  said=$(mktemp)
  # Background jobs of a script ignore SIGINT. In a session of its own it gets one from here alone.
  run_tier e2e setsid env --default-signal=INT >"$said" 2>&1 &
  beside=$!
  trap 'kill -INT "$beside" 2>/dev/null; wait "$beside"; rm -f "$said"' EXIT
fi

for tier in "${runnable[@]}"; do
  heading "$tier tests ($((SECONDS - began)) s so far; tiers: ${runnable[*]})"
  code=0
  if [ "$tier" = e2e ] && [ -n "$beside" ]; then
    wait "$beside" || code=$?
    trap 'rm -f "$said"' EXIT
    cat "$said"
  else
    (run_tier "$tier" ${beside:+nice}) || code=$?
  fi
  if [ $code != 0 ]; then
    echo "test: the $tier tier failed; run it alone with: make test-$tier" >&2
    exit $code
  fi
done
