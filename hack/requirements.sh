#!/usr/bin/env bash
# Pins requirements/*.txt anew from the extras of pyproject.toml, with hashes, for every platform.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v uv >/dev/null || {
  echo "requirements: uv is needed (pipx install uv)" >&2
  exit 1
}
for extra in operator agent cli dev tpe; do
  uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --extra "$extra" \
    --generate-hashes --no-header --no-annotate --no-emit-index-url \
    --output-file "requirements/$extra.txt" "$@"
done
