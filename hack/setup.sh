#!/usr/bin/env bash
# Makes the virtual environment with every pinned and hash-checked requirement in it.
#
#   hack/setup.sh FOLDER
#
# On Debian and Ubuntu, as root, the few system packages that are missing are installed; otherwise
# it says which and how, and goes on when they are only useful. Called by `make setup`, which skips
# it when nothing has changed since.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${1:?usage: hack/setup.sh FOLDER}

die() {
  printf 'setup: %s\n' "$@" >&2
  exit 1
}

# The newest Python that is new enough, else nothing.
find_python() {
  local candidate
  for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
}

python=$(find_python)
[ -n "$python" ] || die "Python 3.11 or later is needed, and none was found." \
  "On Ubuntu 22.04: apt-get install python3.11 python3.11-venv"
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')

needed=()
if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
  # The distribution's own Python keeps these two in a package of their own.
  if [ "$version" = "$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" ]; then
    needed+=(python3-venv)
  else
    needed+=("python$version-venv")
  fi
fi
useful=() # a C compiler for NVIDIA's runtime on the real node, git for make lint
command -v gcc >/dev/null || useful+=(gcc libc6-dev)
command -v git >/dev/null || useful+=(git)

# Installs Debian packages, as root; what apt-get says is shown only when it fails.
apt_install() {
  local log
  echo "setup: apt-get install --no-install-recommends $*"
  log=$(mktemp)
  if ! { apt-get update -q && DEBIAN_FRONTEND=noninteractive \
    apt-get install -yq --no-install-recommends "$@"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    die "apt-get could not install $*; its last words are above."
  fi
  rm -f "$log"
}

missing=("${needed[@]}" "${useful[@]}")
if [ ${#missing[@]} -gt 0 ]; then
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    apt_install "${missing[@]}"
  elif [ ${#needed[@]} -gt 0 ]; then
    die "These are missing (names as in Debian): ${missing[*]}. Please run" \
      "  sudo apt-get install --no-install-recommends ${missing[*]}"
  else
    echo "setup: make lint and the real node also need: ${useful[*]} (names as in Debian)"
  fi
fi

if ! [ -x "$venv/bin/python" ] ||
  ! "$venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "setup: virtual environment $venv with Python $version"
  "$python" -m venv --clear "$venv"
fi
"$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$venv/bin/python" -m ensurepip -q

pip() { "$venv/bin/python" -m pip --disable-pip-version-check "$@"; }

# uv installs in seconds what takes pip a minute, but reads none of pip's settings: it is given those
# that say where packages come from. What it cannot do, pip does.
install_with_uv() {
  local settings
  settings=$(pip config list)
  setting() { sed -nE "s/^(:env:|global|install)\.$1='(.*)'$/\2/p" <<<"$settings" | head -n 1; }
  give() { # give VARIABLE VALUE: unless the user has said so already
    if [ -n "$2" ] && [ -z "${!1:-}" ]; then export "$1=$2"; fi
  }
  give UV_DEFAULT_INDEX "$(setting index-url)"
  give UV_INDEX "$(setting extra-index-url)"
  give UV_FIND_LINKS "$(setting find-links | tr ' ' ,)"
  give UV_INSECURE_HOST "$(setting trusted-host)"
  give SSL_CERT_FILE "$(setting cert)"
  give ALL_PROXY "$(setting proxy)"
  # In a folder of its own: pipx would use a uv that is beside it, which changes what tests of it see.
  pip install --quiet --require-hashes --upgrade --target "$venv/uv" -r requirements/setup.txt &&
    "$venv/uv/bin/uv" pip install --quiet --python "$venv/bin/python" --require-hashes \
      -r requirements/dev.txt
}

echo "setup: requirements/dev.txt"
if ! (install_with_uv); then
  echo "setup: uv could not, for what it says above; pip can, in a minute or two"
  pip install --quiet --require-hashes -r requirements/dev.txt
fi
echo "setup: done in $SECONDS s"
