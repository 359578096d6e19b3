#!/bin/sh
# The program of the image gpu-scheduler/quickstart: shows what this container was given, then
# "trains" for QUICKSTART_SECONDS (or the first argument) and ends well. Arguments and env:
#   quickstart [SECONDS]        QUICKSTART_SECONDS=5   QUICKSTART_ALLOW_NO_GPU=   QUICKSTART_FAIL=
set -eu

seconds=${1:-${QUICKSTART_SECONDS:-5}}
mounted=/etc/gpu-scheduler
here=/dev/fakegpu

show() { printf '%-10s %s\n' "$1" "$2"; }

show job "${GPUJOB_NAME:-none}, pod ${GPUJOB_INDEX:-0} of ${GPUJOB_COMPLETIONS:-1}"
show visible "${NVIDIA_VISIBLE_DEVICES:-none}"

devices=0
for file in "$here"/*; do
    [ -e "$file" ] || continue
    devices=$((devices + 1))
    show device "$(cat "$file")"
done

show cap "${GPU_MEMORY_LIMIT_MIB:-none} MiB per device"
if [ -r "$mounted/memory-limit-mib" ]; then
    show "cap file" "$(cat "$mounted/memory-limit-mib") MiB per device"
fi

if [ "$devices" -eq 0 ] && [ -z "${QUICKSTART_ALLOW_NO_GPU:-}" ]; then
    echo "quickstart: this container was given no GPU (set QUICKSTART_ALLOW_NO_GPU=1 to go on)" >&2
    exit 1
fi

trap 'echo "stopped"; exit 143' TERM INT

elapsed=0
while [ "$elapsed" -lt "$seconds" ]; do
    sleep 1 &
    wait $!
    elapsed=$((elapsed + 1))
    echo "step $elapsed of $seconds"
done

if [ -n "${QUICKSTART_FAIL:-}" ]; then
    echo "quickstart: failing, as QUICKSTART_FAIL asks" >&2
    exit "$QUICKSTART_FAIL"
fi
echo "done"
