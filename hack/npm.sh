# shellcheck shell=bash
# A folder of the repository that npm works in; sourced by what knows the folder: dashboard.sh, headlamp.sh.
#
# They set `folder`, its name, which is that of its part of the cache too. What npm installs is kept there,
# a folder for each lock file, and outlives the checkout.
: "${folder:?}"
cache=${GPU_SCHEDULER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gpu-scheduler}/$folder

die() {
  printf '%s\n' "${@/#/$folder: }" >&2
  exit 1
}

node -e 'const [a, b] = process.versions.node.split(".").map(Number);
  process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null ||
  die "Node.js 20.19 or later is needed, with npm, and was not found on the PATH."

# digest_of PATH…: of all files there, tracked or not, and of the Node.js that works on them.
digest_of() {
  {
    node --version
    git ls-files -z --cached --others --exclude-standard -- "$@" | sort -zu |
      while IFS= read -r -d '' file; do
        if [ -f "$file" ]; then sha256sum "$file"; fi
      done
  } | sha256sum | cut -c 1-32
}

# npm ci, into a folder of its own for this lock file; node_modules of the folder leads there.
install_modules() {
  local key modules
  key=$({
    node --version
    uname -m
    cat "$folder/package-lock.json" "$folder/.npmrc"
  } | sha256sum | cut -c 1-16)
  modules=$cache/modules/$key
  mkdir -p "$cache/modules"
  (
    flock 9
    if ! [ -e "$modules/.done" ]; then
      echo "$folder: npm ci"
      rm -rf "$modules"
      mkdir -p "$modules"
      cp "$folder/package.json" "$folder/package-lock.json" "$folder/.npmrc" "$modules"
      PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm --prefix "$modules" ci --silent --ignore-scripts ||
        die "npm could not install what package-lock.json names; its words are above."
      touch "$modules/.done"
    fi
    touch "$modules"
    # Of lock files that nobody has worked with for a month.
    find "$cache/modules" -mindepth 1 -maxdepth 1 -type d -mtime +30 -exec rm -rf {} +
  ) 9>"$cache/modules/.lock"
  if [ "$(readlink "$folder/node_modules" || true)" != "$modules/node_modules" ]; then
    rm -rf "$folder/node_modules"
    ln -s "$modules/node_modules" "$folder/node_modules"
  fi
}

npm_run() {
  npm --prefix "$folder" run --silent "$@"
}

# Sixty-four colours are enough for a page, and a third of the bytes.
fewer_colours() {
  find "${PICTURES:-docs/pictures/$folder}" -name '*.png' -exec \
    pngquant --force --ext .png --strip 64 {} +
}
