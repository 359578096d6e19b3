#!/usr/bin/env bash
# The plugin for Headlamp in headlamp/: what it needs, and what is done with it.
#
#   hack/headlamp.sh install|types|lint|test|build|check|look
#
# check is types, lint, test and build; it is skipped when nothing that they read has changed, by
# digest. What npm installs is some 900 MB; it is kept beside the other programs, a folder for each
# lock file, and outlives the checkout. So none of this is a part of the landing.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:?usage: hack/headlamp.sh install|types|lint|test|build|check|look}
cache=${GPU_SCHEDULER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gpu-scheduler}/headlamp

die() {
  printf 'headlamp: %s\n' "$@" >&2
  exit 1
}

node -e 'const [a, b] = process.versions.node.split(".").map(Number);
  process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null ||
  die "Node.js 20.19 or later is needed, with npm, and was not found on the PATH."

# Of the plugin, of what it shares with the dashboard, and of the Node.js that works on them.
digest() {
  {
    node --version
    git ls-files -z --cached --others --exclude-standard -- headlamp hack/headlamp.sh \
      dashboard/src/format dashboard/src/style dashboard/src/parts/trials.ts | sort -zu |
      while IFS= read -r -d '' file; do
        if [ -f "$file" ]; then sha256sum "$file"; fi
      done
  } | sha256sum | cut -c 1-32
}

# npm ci, into a folder of its own for this lock file; headlamp/node_modules leads there.
install() {
  local key folder
  key=$({
    node --version
    uname -m
    cat headlamp/package-lock.json headlamp/.npmrc
  } | sha256sum | cut -c 1-16)
  folder=$cache/modules/$key
  mkdir -p "$cache/modules"
  (
    flock 9
    if ! [ -e "$folder/.done" ]; then
      echo "headlamp: npm ci, some 900 MB"
      rm -rf "$folder"
      mkdir -p "$folder"
      cp headlamp/package.json headlamp/package-lock.json headlamp/.npmrc "$folder"
      npm --prefix "$folder" ci --silent --ignore-scripts ||
        die "npm could not install what package-lock.json names; its words are above."
      touch "$folder/.done"
    fi
    touch "$folder"
    # Of lock files that nobody has worked with for a month.
    find "$cache/modules" -mindepth 1 -maxdepth 1 -type d -mtime +30 -exec rm -rf {} +
  ) 9>"$cache/modules/.lock"
  if [ "$(readlink headlamp/node_modules || true)" != "$folder/node_modules" ]; then
    rm -rf headlamp/node_modules
    ln -s "$folder/node_modules" headlamp/node_modules
  fi
}

npm_run() {
  npm --prefix headlamp run --silent "$@"
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
  install
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
  install
  npm_run storybook-build
  npm_run look
  find "${PICTURES:-docs/pictures/headlamp}" -name '*.png' -exec \
    pngquant --force --ext .png --strip 64 {} +
}

case $what in
  install) install ;;
  types | lint | test)
    install
    npm_run "$what"
    ;;
  build)
    install
    build
    ;;
  check) check ;;
  look) look ;;
  *) die "$what is none of install, types, lint, test, build, check, look" ;;
esac
