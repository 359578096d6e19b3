#!/usr/bin/env bash
# Builds the operator's image: with Docker where its daemon answers, else with buildah as root, into
# an archive whose path is printed.
#
#   hack/image.sh NAME:TAG
set -euo pipefail
cd "$(dirname "$0")/.."
tag=${1:?usage: hack/image.sh NAME:TAG}

if docker info >/dev/null 2>&1; then
  exec docker build --file operator/Dockerfile --tag "$tag" .
fi
PYTHONPATH="$PWD/hack" exec .venv/bin/python - "$tag" <<'PYTHON'
import sys

from cluster import ClusterError
from cluster.images_operator import build_operator_image

try:
    print(build_operator_image(sys.argv[1]))
except ClusterError as error:
    sys.exit(f"image: {error}")
PYTHON
