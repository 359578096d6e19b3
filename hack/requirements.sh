#!/usr/bin/env bash
# Pins requirements/*.txt anew from the extras of pyproject.toml, and clients.txt, clients-large.txt,
# setup.txt and release.txt from their .in files, with hashes, for every platform.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v uv >/dev/null || {
  echo "requirements: uv is needed (pipx install uv)" >&2
  exit 1
}
pin() { # NAME SOURCE...
  uv pip compile "${@:2}" --quiet --universal --python-version 3.11 --generate-hashes --no-header \
    --no-annotate --no-emit-index-url --output-file "requirements/$1.txt"
}
for extra in operator agent cli dev docs tpe; do
  pin "$extra" pyproject.toml --extra "$extra" "$@"
done
pin clients requirements/clients.in "$@"
pin clients-large requirements/clients-large.in "$@"
pin setup requirements/setup.in "$@"
pin release requirements/release.in pyproject.toml --extra cli --extra plan "$@"
