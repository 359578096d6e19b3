#!/usr/bin/env bash
# Every check that needs no cluster; all of them run, then the exit code says whether any failed.
# helm is one of the cluster's programs and is fetched or built on first use.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=.venv/bin
export PYTHONPATH="$PWD/operator:$PWD/hack:$PWD/tools"
failed=()

# What mypy keeps between runs outlives the checkout: it goes by what is in the files. Two checkouts
# that are linted at once take turns, as each would read half of what the other writes.
MYPY_CACHE_DIR=$("$bin/python" -c 'from cluster.cache import cache_folder; print(cache_folder())')/mypy
export MYPY_CACHE_DIR

"$bin/python" -m cluster build core

outputs=$(mktemp -d)
trap 'rm -rf "$outputs"' EXIT
names=()
running=()

check() { # check NAME COMMAND…: begin it, beside the others
  names+=("$1")
  "${@:2}" >"$outputs/${#names[@]}" 2>&1 &
  running+=($!)
}

tell() { # in the order in which they began
  local number output
  for number in "${!names[@]}"; do
    if wait "${running[$number]}"; then
      printf '  ok      %s\n' "${names[$number]}"
    else
      output=$(<"$outputs/$((number + 1))")
      printf '  FAILED  %s\n%s\n' "${names[$number]}" "$output"
      failed+=("${names[$number]}")
    fi
  done
}

helm_lint() {
  local helm
  helm=$("$bin/python" -c 'from cluster.build import binary; print(binary("helm"))') || return
  "$helm" lint --strict charts/gpu-scheduler
}

no_merge_markers() {
  ! git grep -nE '^(<{7}|>{7}) '
}

mapfile -t scripts < <(git ls-files '*.sh' .ci/run)

check "ruff check" "$bin/ruff" check .
check "merge markers" no_merge_markers
check "ruff format" "$bin/ruff" format --check .
check "mypy --strict" flock "$MYPY_CACHE_DIR.lock" "$bin/mypy" operator hack tools
# No test runs a benchmark: what it calls must be there all the same.
check "mypy --strict, benchmarks" flock "$MYPY_CACHE_DIR.lock" \
  "$bin/mypy" --follow-imports=silent tests/perf
check "import directions" "$bin/lint-imports"
check "structure" "$bin/python" hack/structure.py --check \
  --only "modules above|median|definitions|arguments|attributes|circles|pairs|packed"
check "CUDA headers" "$bin/python" hack/driver_headers.py
check "clang-format" env "PATH=$PWD/$bin:$PATH" make --directory native format-check
check "shellcheck" env "PATH=$PWD/$bin:$PATH" shellcheck -x "${scripts[@]}"
check "helm lint" helm_lint
check "dashboard" hack/dashboard.sh lint
tell

if [ ${#failed[@]} -gt 0 ]; then
  printf 'lint: %s failed\n' "$(IFS=,; echo "${failed[*]}")" >&2
  exit 1
fi
