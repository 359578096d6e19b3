#!/usr/bin/env bash
# Makes the virtual environment with every pinned and hash-checked requirement in it.
#
#   hack/setup.sh FOLDER
#
# On Debian and Ubuntu, as root, the few system packages that are missing are installed; otherwise
# the command that would do so is printed. Called by `make setup`, which skips it when nothing has
# changed since.
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

missing=()
if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
  # The distribution's own Python keeps these two in a package of their own.
  if [ "$version" = "$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" ]; then
    missing+=(python3-venv)
  else
    missing+=("python$version-venv")
  fi
fi
command -v gcc >/dev/null || missing+=(gcc libc6-dev)
command -v git >/dev/null || missing+=(git)
command -v shellcheck >/dev/null || missing+=(shellcheck)

if [ ${#missing[@]} -gt 0 ]; then
  install="apt-get install --no-install-recommends ${missing[*]}"
  command -v apt-get >/dev/null ||
    die "These are missing: ${missing[*]} (names as in Debian). Please install them and try again."
  [ "$(id -u)" = 0 ] || die "These are missing: ${missing[*]}. Please run" "  sudo $install"
  echo "setup: $install"
  export DEBIAN_FRONTEND=noninteractive
  log=$(mktemp)
  if ! { apt-get update -q && apt-get install -yq --no-install-recommends "${missing[@]}"; } \
    >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    die "apt-get could not install ${missing[*]}; its last words are above."
  fi
  rm -f "$log"
fi

if ! [ -x "$venv/bin/python" ] ||
  ! "$venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "setup: virtual environment $venv with Python $version"
  "$python" -m venv --clear "$venv"
fi
"$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$venv/bin/python" -m ensurepip -q

echo "setup: requirements/dev.txt"
"$venv/bin/python" -m pip --disable-pip-version-check install --quiet --require-hashes \
  -r requirements/dev.txt
