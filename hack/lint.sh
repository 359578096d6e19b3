#!/usr/bin/env bash
# Every check that needs no cluster; all of them run, then the exit code says whether any failed.
# helm is one of the cluster's programs and is fetched or built on first use.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=.venv/bin
export PYTHONPATH="$PWD/operator:$PWD/hack:$PWD/tools"
failed=()

"$bin/python" -m cluster build core

check() {
  local name=$1
  shift
  if output=$("$@" 2>&1); then
    printf '  ok      %s\n' "$name"
  else
    printf '  FAILED  %s\n%s\n' "$name" "$output"
    failed+=("$name")
  fi
}

helm_lint() {
  local helm
  helm=$("$bin/python" -c 'from cluster.build import binary; print(binary("helm"))') || return
  "$helm" lint --strict charts/gpu-scheduler
}

mapfile -t scripts < <(git ls-files '*.sh' .ci/run)

check "ruff check" "$bin/ruff" check .
check "ruff format" "$bin/ruff" format --check .
check "mypy --strict" "$bin/mypy" operator hack tools
check "import directions" "$bin/lint-imports"
check "module sizes" "$bin/python" hack/module_sizes.py operator/gpu_scheduler hack/cluster hack/demo hack/docs_site hack/reference hack/release tools/gpu_check
check "CUDA headers" "$bin/python" hack/driver_headers.py
check "clang-format" env "PATH=$PWD/$bin:$PATH" make --directory native format-check
check "shellcheck" env "PATH=$PWD/$bin:$PATH" shellcheck "${scripts[@]}"
check "helm lint" helm_lint

if [ ${#failed[@]} -gt 0 ]; then
  printf 'lint: %s failed\n' "$(IFS=,; echo "${failed[*]}")" >&2
  exit 1
fi
