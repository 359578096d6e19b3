#!/usr/bin/env bash
# Runs the generated tests with fresh seeds until the time is over: what no landing has tried yet.
#
#   hack/explore.sh MINUTES
#
# EXPLORE_SEED in the environment is the first seed, to repeat what failed. Stops at the first failure.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
export PYTHONPATH="$PWD/operator:$PWD/hack:$PWD/tools"
end=$((SECONDS + 60 * ${1:?usage: hack/explore.sh MINUTES}))
seed=${EXPLORE_SEED:-$((RANDOM * 32768 + RANDOM))}

while [ $SECONDS -lt $end ]; do
  echo "explore: EXPLORE_SEED=$seed, $(((end - SECONDS) / 60)) minutes left"
  if ! EXPLORE_SEED=$seed timeout --signal=INT $((end - SECONDS)) \
    "$python" -m pytest tests/unit -q -x -n auto --maxschedchunk 1 -m "hypothesis or long"; then
    [ $SECONDS -lt $end ] || break # ended by the clock
    echo "explore: failed; again with: EXPLORE_SEED=$seed make explore MINUTES=$1" >&2
    exit 1
  fi
  seed=$((seed + 1))
done
echo "explore: no failure"
