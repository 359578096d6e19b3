#!/usr/bin/env bash
# The front end in dashboard/: what it needs, and what is done with it.
#
#   hack/dashboard.sh build|lint|test|ready|digest|look|cost|run
#
# build and lint are skipped when nothing of dashboard/ has changed, by digest. What npm installs is
# kept beside the other programs, a folder for each lock file, and outlives the checkout. Browsers are
# Debian's: as root they are installed where they are missing.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:?usage: hack/dashboard.sh build|lint|test|ready|digest|look|cost|run}
cache=${GPU_SCHEDULER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gpu-scheduler}/dashboard

die() {
  printf 'dashboard: %s\n' "$@" >&2
  exit 1
}

node -e 'const [a, b] = process.versions.node.split(".").map(Number);
  process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null ||
  die "Node.js 20.19 or later is needed, with npm, and was not found on the PATH."

# Of all files of dashboard/, tracked or not, and of the Node.js that works on them.
digest() {
  {
    node --version
    git ls-files -z --cached --others --exclude-standard -- dashboard | sort -zu |
      while IFS= read -r -d '' file; do
        if [ -f "$file" ]; then sha256sum "$file"; fi
      done
  } | sha256sum | cut -c 1-32
}

# npm ci, into a folder of its own for this lock file; dashboard/node_modules leads there.
install_modules() {
  local key folder
  key=$({
    node --version
    uname -m
    cat dashboard/package-lock.json dashboard/.npmrc
  } | sha256sum | cut -c 1-16)
  folder=$cache/modules/$key
  mkdir -p "$cache/modules"
  (
    flock 9
    if ! [ -e "$folder/.done" ]; then
      echo "dashboard: npm ci"
      rm -rf "$folder"
      mkdir -p "$folder"
      cp dashboard/package.json dashboard/package-lock.json dashboard/.npmrc "$folder"
      PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm --prefix "$folder" ci --silent --ignore-scripts ||
        die "npm could not install what package-lock.json names; its words are above."
      touch "$folder/.done"
    fi
    touch "$folder"
    # Of lock files that nobody has worked with for a month.
    find "$cache/modules" -mindepth 1 -maxdepth 1 -type d -mtime +30 -exec rm -rf {} +
  ) 9>"$cache/modules/.lock"
  if [ "$(readlink dashboard/node_modules || true)" != "$folder/node_modules" ]; then
    rm -rf dashboard/node_modules
    ln -s "$folder/node_modules" dashboard/node_modules
  fi
}

# debian PROGRAM PACKAGE...: install what is missing, or say what is.
debian() {
  local program=$1
  shift
  if command -v "$program" >/dev/null; then return; fi
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    echo "dashboard: apt-get install --no-install-recommends $*"
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive \
      apt-get install -yq --no-install-recommends "$@"; } >/dev/null ||
      die "apt-get could not install $*."
  else
    die "$program is missing: sudo apt-get install --no-install-recommends $*"
  fi
}

chromium() {
  if command -v chromium >/dev/null || command -v google-chrome >/dev/null; then return; fi
  debian chromium-headless-shell chromium-headless-shell
}

npm_run() {
  npm --prefix dashboard run --silent "$@"
}

build() {
  local now
  now=$(digest)
  if [ -f dashboard/dist/index.html ] && [ "$(cat build/dashboard.built 2>/dev/null)" = "$now" ]; then
    return
  fi
  install_modules
  rm -f build/dashboard.built
  npm_run build -- --logLevel warn
  mkdir -p build
  echo "$now" >build/dashboard.built
  echo "dashboard: built dashboard/dist, $(gzip -c dashboard/dist/assets/* | wc -c) bytes compressed"
}

lint() {
  local now
  now=$(digest)
  if [ -e "$cache/linted/$now" ]; then return; fi
  install_modules
  npm_run types
  npm_run lint
  mkdir -p "$cache/linted"
  touch "$cache/linted/$now"
  find "$cache/linted" -type f -mtime +30 -delete
}

# All that a test in a browser needs.
ready() {
  build
  install_modules
  chromium
}

# REPORTS: a folder that gets what Vitest and Playwright say for programs.
test_it() {
  local vitest=() playwright=()
  if [ -n "${REPORTS:-}" ]; then
    vitest=(-- --reporter=default --reporter=json "--outputFile.json=$REPORTS/vitest.json")
    playwright=(-- "--reporter=list,json")
    export PLAYWRIGHT_JSON_OUTPUT_FILE=$REPORTS/playwright.json
  fi
  npm_run unit "${vitest[@]}"
  npm_run browser "${playwright[@]}"
}

case $what in
  build) build ;;
  lint) lint ;;
  digest) digest ;;
  ready) ready ;;
  test)
    ready
    test_it
    ;;
  look)
    ready
    debian pngquant pngquant fonts-inter
    npm_run look
    # Sixty-four colours are enough for a page, and a third of the bytes.
    find "${PICTURES:-docs/pictures/dashboard}" -name '*.png' -exec \
      pngquant --force --ext .png --strip 64 {} +
    ;;
  cost)
    ready
    npm_run cost
    ;;
  run)
    install_modules
    npm_run dev
    ;;
  *) die "$what is none of build, lint, test, ready, digest, look, cost, run" ;;
esac
