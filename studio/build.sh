#!/usr/bin/env bash
# Builds the page in a folder of the build tree and writes it as C++.
#   build.sh WORK OUT.cpp [optional]
# With "optional", packages that cannot be fetched make a program without the page instead of an error.
set -euo pipefail
source=$(cd "$(dirname "$0")" && pwd)
work=$1
out=$2
optional=${3:-}

mkdir -p "$work"
cp "$source"/{package.json,package-lock.json,.npmrc,tsconfig.json,vite.config.ts,index.html} "$work/"
# Copies, so that nothing is installed into the source tree; removed first, so that a deleted file is gone here too.
rm -rf "$work/src" "$work/public" "$work/dist"
cp -r "$source/src" "$source/public" "$work/"
# The page shows this one, so that it can be read where there is no network.
cp "$source/../docs/choosing-a-model.md" "$work/src/"
cd "$work"

if ! cmp -s package-lock.json .installed; then
  rm -f .installed
  if ! npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >npm.log 2>&1; then
    cat npm.log >&2
    [ "$optional" = optional ] || exit 1
    echo "The web page was left out: its packages could not be fetched. Remove $work to try again." >&2
    node "$source/embed.mjs" "$out"
    exit 0
  fi
  cp package-lock.json .installed
fi
node node_modules/vite/bin/vite.js build --logLevel warn
node "$source/offline.mjs" dist
node "$source/embed.mjs" dist "$out"
