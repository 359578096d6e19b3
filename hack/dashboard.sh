#!/usr/bin/env bash
# The front end in dashboard/: what it needs, and what is done with it.
#
#   hack/dashboard.sh build|lint|test|ready|digest|look|cost|run|oauth2-proxy
#   hack/dashboard.sh docs [PAGES] [--pictures FOLDER]    its browser, on the site of the docs
#
# build and lint are skipped when nothing of dashboard/ has changed, by digest. Browsers are Debian's: as
# root they are installed where they are missing.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:?usage: hack/dashboard.sh build|lint|test|ready|digest|look|cost|run|oauth2-proxy}
folder=dashboard
# shellcheck source=hack/npm.sh
source hack/npm.sh

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

install_chromium() { # not called as the program is: command -v finds functions too
  if command -v chromium >/dev/null || command -v google-chrome >/dev/null; then return; fi
  debian chromium-headless-shell chromium-headless-shell
}

build() {
  local now
  now=$(digest_of dashboard)
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
  now=$(digest_of dashboard)
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
  install_chromium
}

# Some minutes of a compiler: for `make dashboard-oidc` alone.
oauth2_proxy() {
  local version=v7.15.6
  if [ -x "$cache/oauth2-proxy" ] && [ "$(cat "$cache/oauth2-proxy.version" 2>/dev/null)" = "$version" ]; then
    return
  fi
  command -v go >/dev/null || die "Go is needed to build oauth2-proxy, and was not found on the PATH."
  mkdir -p "$cache"
  echo "dashboard: go install oauth2-proxy $version"
  GOBIN=$cache GOFLAGS=-buildvcs=false go install \
    "github.com/oauth2-proxy/oauth2-proxy/v7@$version" ||
    die "oauth2-proxy could not be built; the words of go are above."
  echo "$version" >"$cache/oauth2-proxy.version"
}

# With a loopback of its own, where that may be made: a browser gives a page up (ERR_NETWORK_CHANGED)
# when an address of the machine comes or goes, as those of e2e's pods do beside it.
browser() {
  local apart=()
  if unshare --net ip link set lo up 2>/dev/null; then
    # shellcheck disable=SC2016  # the inner shell's arguments
    apart=(unshare --net bash -c 'ip link set lo up && exec "$@"' apart)
  fi
  "${apart[@]}" npm --prefix "$folder" run --silent browser "$@"
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
  browser "${playwright[@]}"
}

# PAGES: a pattern such as 'reference/*'; of all pages, names are searched too.
docs() {
  export PAGES="*" NAMES="[]"
  while [ $# -gt 0 ]; do
    case $1 in
      --pictures)
        PICTURES=$(realpath -m "${2:?--pictures FOLDER}")
        export PICTURES
        shift
        ;;
      *) PAGES=$1 ;;
    esac
    shift
  done
  if [ "$PAGES" = "*" ]; then NAMES=$(.venv/bin/python -m docs_site.names); fi
  install_modules
  install_chromium
  (cd "$folder" && npx playwright test --config tests/site/playwright.config.ts)
}

case $what in
  build) build ;;
  lint) lint ;;
  digest) digest_of dashboard ;;
  oauth2-proxy) oauth2_proxy ;;
  ready) ready ;;
  test)
    ready
    test_it
    ;;
  look)
    ready
    debian pngquant pngquant fonts-inter
    npm_run look
    fewer_colours
    ;;
  docs) docs "${@:2}" ;;
  cost)
    ready
    npm_run cost
    ;;
  run)
    install_modules
    npm_run dev
    ;;
  *) die "$what is none of build, lint, test, ready, digest, look, cost, run, oauth2-proxy" ;;
esac
