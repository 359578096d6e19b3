#!/usr/bin/env bash
# Builds the operator's image, the agent's (NAME-agent:TAG) and the operator's with Optuna (NAME:TAG-tpe,
# chart value sweeps.tpe): with Docker where its daemon answers, else with buildah as root, into
# archives whose paths are printed. Where `make dashboard` has built the front end, also the operator's
# images with it (NAME:TAG-dashboard, NAME:TAG-tpe-dashboard; chart value dashboard.enabled).
#
#   hack/image.sh NAME:TAG
set -euo pipefail
cd "$(dirname "$0")/.."
tag=${1:?usage: hack/image.sh NAME:TAG}

PYTHONPATH="$PWD/hack" exec .venv/bin/python - "$tag" <<'PYTHON'
import subprocess
import sys

from cluster import ClusterError
from cluster.images_operator import FRONT_END, REPOSITORY, REQUIREMENTS, build_image, tag_of

try:
    docker = not subprocess.run(["docker", "info"], capture_output=True).returncode
except FileNotFoundError:
    docker = False
front_end = (REPOSITORY / FRONT_END).is_dir()
wanted = [each for each in REQUIREMENTS if front_end or not each.endswith("-dashboard")]
targets = {each: tag_of(each, sys.argv[1]) for each in wanted}
if docker:
    for target, name in targets.items():
        build = ["docker", "build", "--file=operator/Dockerfile", f"--target={target}"]
        if code := subprocess.run([*build, f"--tag={name}", "."]).returncode:
            sys.exit(code)
    sys.exit(0)
try:
    for target, name in targets.items():
        print(build_image(target, name))
except ClusterError as error:
    sys.exit(f"image: {error}")
PYTHON
