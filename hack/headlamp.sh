#!/usr/bin/env bash
# The plugin for Headlamp in headlamp/: what it needs, and what is done with it.
#
#   hack/headlamp.sh install|types|lint|test|build|check|look
#
# check is types, lint, test and build; it is skipped when nothing that they read has changed, by
# digest. What npm installs is some 900 MB, so none of this is a part of the landing.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:?usage: hack/headlamp.sh install|types|lint|test|build|check|look}
folder=headlamp
# shellcheck source=hack/npm.sh
source hack/npm.sh

# Of the plugin, and of what it shares with the dashboard.
digest() {
  digest_of headlamp hack/headlamp.sh hack/npm.sh \
    dashboard/src/format dashboard/src/style dashboard/src/parts/trials.ts
}

build() {
  npm_run build
  echo "headlamp: built headlamp/dist, $(gzip -c headlamp/dist/main.js | wc -c) bytes compressed"
}

check() {
  local now
  now=$(digest)
  if [ -f headlamp/dist/main.js ] && [ "$(cat build/headlamp.checked 2>/dev/null)" = "$now" ]; then
    echo "headlamp: nothing has changed since it was checked and built into headlamp/dist"
    return
  fi
  install_modules
  rm -f build/headlamp.checked
  npm_run types
  npm_run lint
  npm_run test
  build
  mkdir -p build
  echo "$now" >build/headlamp.checked
}

look() {
  command -v pngquant >/dev/null || die "pngquant is missing: apt-get install pngquant"
  install_modules
  npm_run storybook-build
  npm_run look
  fewer_colours
}

case $what in
  install) install_modules ;;
  types | lint | test)
    install_modules
    npm_run "$what"
    ;;
  build)
    install_modules
    build
    ;;
  check) check ;;
  look) look ;;
  *) die "$what is none of install, types, lint, test, build, check, look" ;;
esac
