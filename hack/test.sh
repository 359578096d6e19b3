#!/usr/bin/env bash
# Runs the tiers of the tests and stops at the first that fails; the last lines say what took how long.
#
#   hack/test.sh [unit|long|native|chart|dashboard|api|e2e]…
#   hack/test.sh quick [SINCE]      the unit tests that what differs from SINCE (main) can affect
#
# `unit` is tests/unit without, `long` with the tests marked `long` alone, `dashboard` the front end's own
# (dashboard/tests), skipped with what decides about them unchanged. The e2e tier waits for most
# of its time: it runs beside the others, which make way for it (nice), and is shown after them.
#
# Exit code: that of the pytest run that failed; 3 when CI=true and a tier cannot run here.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
export PYTHONPATH="$PWD/operator:$PWD/hack:$PWD/tools"
# Whoever starts a hundred processes wants byte code kept: compiling costs each of them two seconds.
# So do asserts that pytest rewrites, ten seconds for each of its processes.
unset PYTHONDONTWRITEBYTECODE

heading() { printf '\n=== %s\n' "$*"; }
# Longest first, one by one (tests/conftest.py); garbage is looked for seldom.
spread=(-n auto --maxschedchunk 1 -p tests.suite.garbage)

if [ "${1:-}" = quick ]; then
  mapfile -t files < <("$python" -m tests.suite.affected --since "${2:-main}" tests/unit)
  [ ${#files[@]} -gt 0 ] || { echo "test: nothing differs that a unit test could notice"; exit 0; }
  exec "$python" -m pytest "${spread[@]}" -m "not long" "${files[@]}"
fi

tiers=("$@")
[ ${#tiers[@]} -gt 0 ] || tiers=(unit long native chart dashboard api e2e)

# e2e needs a real node: containerd and the kubelet run as root, on Linux.
can_run_e2e() { [ "$(id -u)" = 0 ] && [ "$(uname -s)" = Linux ]; }

# The front end's tools run in Node.js, which nothing else of the tests needs.
can_run_dashboard() { command -v node >/dev/null && command -v npm >/dev/null; }

cannot_run() { # cannot_run TIER WHY
  echo "test: the $1 tier is SKIPPED: $2"
  if [ "${CI:-}" = true ]; then
    echo "test: with CI=true a tier that is skipped is a failure" >&2
    exit 3
  fi
}

runnable=()
for tier in "${tiers[@]}"; do
  if [ "$tier" = e2e ] && ! can_run_e2e; then
    cannot_run e2e "its real node needs root on Linux (sudo make test)"
    continue
  fi
  if [ "$tier" = dashboard ] && ! can_run_dashboard; then
    cannot_run dashboard "it needs Node.js 20.19 or later, with npm"
    continue
  fi
  [ "$tier" = long ] || [ -d "tests/$tier" ] || { echo "test: there is no tier $tier in tests/" >&2; exit 2; }
  runnable+=("$tier")
done
[ ${#runnable[@]} -gt 0 ] || exit 3

began=$SECONDS
# Setup leaves byte code to who imports; here many would make it at once. Whether some is still to be
# made is found out soonest by one process; a new clone has all of it to make, on all cores.
jobs=1
[ -d operator/gpu_scheduler/__pycache__ ] || jobs=0
"$python" -m compileall -qq -j "$jobs" "$(dirname "$python")/../lib" operator hack tools || true
if [[ " ${runnable[*]} " =~ \ (chart|api|e2e)\  ]]; then
  heading "tools: Kubernetes, helm and the rest, fetched or built once per user"
  "$python" -m cluster build core check
fi

results=$(mktemp -d)
beside=
clean_up() {
  if [ -n "$beside" ] && kill -INT "$beside" 2>/dev/null; then wait "$beside" || true; fi
  rm -rf "$results"
}
trap clean_up EXIT

run_tier() { # run_tier TIER [COMMAND…]: in place of the shell, by a command such as nice
  local arguments=("tests/$1") program=pytest
  case $1 in
    unit) arguments+=("${spread[@]}" -m "not long") ;;
    long)
      mapfile -t arguments < <(grep -rl --include='test_*.py' 'mark\.long' tests/unit | sort)
      arguments+=("${spread[@]}" -m long)
      ;;
    dashboard) program=tests.dashboard.tier arguments=() ;;
    native | chart) arguments+=("${spread[@]}") ;;
    # Half of it is waiting, so one more than there are cores; each has a cluster of its own.
    # What goes to whom, and in which order: tests/api/by_length.py.
    api) arguments+=(-n $(($(nproc) < 5 ? $(nproc) + 1 : 5))) ;;
  esac
  TEST_TIMES=$results/$1.json exec "${@:2}" "$python" -m "$program" "${arguments[@]}"
}

failed() { # failed TIER CODE
  echo "test: the $1 tier failed; run it alone with: make test-$1" >&2
  exit "$2"
}

if [[ ${#runnable[@]} -gt 1 && ${runnable[-1]} = e2e ]]; then
  # Background jobs of a script ignore SIGINT. In a session of its own it gets one from here alone.
  run_tier e2e setsid env --default-signal=INT >"$results/e2e.log" 2>&1 &
  beside=$!
  unset 'runnable[-1]'
fi

for tier in "${runnable[@]}"; do
  heading "$tier tests ($((SECONDS - began)) s so far; tiers: ${runnable[*]}${beside:+, beside them e2e})"
  code=0
  (trap - EXIT; run_tier "$tier" ${beside:+nice}) || code=$?
  [ $code = 0 ] || failed "$tier" $code
done

if [ -n "$beside" ]; then
  heading "e2e tests, begun beside the others ($((SECONDS - began)) s so far)"
  tail -n +1 -f --pid="$beside" "$results/e2e.log"
  code=0
  wait "$beside" || code=$?
  beside=
  [ $code = 0 ] || failed e2e $code
fi

heading "all of it: $((SECONDS - began)) s"
"$python" -m tests.suite.summary "$results"
