#!/usr/bin/env bash
# Runs what CI runs, in a clean clone of HEAD, several times: is it green each time, and how long?
#
#   hack/prove.sh RUNS [BUSY]
#
# BUSY loops that never sleep keep as many cores busy meanwhile, at normal priority. A line for each
# run; stops at the first that fails, and leaves its output.
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${1:?usage: hack/prove.sh RUNS [BUSY]}
busy=${2:-0}

folder=$(mktemp -d)
loops=
clean_up() {
  [ -z "$loops" ] || kill -- "-$loops" 2>/dev/null || true
  rm -rf "$folder/clone"
}
trap clean_up EXIT
if [ "$busy" -gt 0 ]; then
  # In a session of their own, as somebody else's work is: Linux shares by sessions. They end with us.
  # shellcheck disable=SC2016  # the inner shell's arguments
  setsid bash -c 'for ((i = 0; i < $1; i++)); do while kill -0 "$2" 2>/dev/null; do :; done & done
    wait' loops "$busy" "$$" &
  loops=$!
fi

echo "prove: $(git rev-parse --short HEAD), $(nproc) processors, $busy of them kept busy; output in $folder"
for ((run = 1; run <= runs; run++)); do
  rm -rf "$folder/clone"
  git clone -q . "$folder/clone"
  began=$SECONDS code=0
  (cd "$folder/clone" && CI=true bash .ci/run </dev/null) >"$folder/$run.log" 2>&1 || code=$?
  echo "run $run: exit $code after $((SECONDS - began)) s; $(tail -n 1 "$folder/$run.log")"
  [ $code = 0 ] || exit $code
done
