#!/usr/bin/env bash
# Builds and packs the commit once more, from a copy of the repository at another place and without the compiler cache, and
# compares every file with that of the first time, byte by byte. The static libraries are those of the first time.
#   scripts/build_twice.sh FOLDER FILE...        files in FOLDER, which ./package has made
set -euo pipefail
folder=$1
shift
changes=$(git status --porcelain --untracked-files=no)
[ -z "$changes" ] || { printf 'Builds of a commit are compared, and these files are not as it has them:\n%s\n' "$changes" >&2; exit 1; }

again=$(mktemp -d)
trap 'rm -rf "$again"' EXIT
git clone -q . "$again/copy"
mkdir -p "$again/copy/build/packages"
cp -a "$folder/static" "$again/copy/build/packages/static"
echo "Building all of it again"
(cd "$again/copy" && CCACHE_DISABLE=1 ./package --no-try) >"$folder/again.log" 2>&1 || { tail -n 40 "$folder/again.log" >&2; exit 1; }

differ=()
rm -rf "$folder/again"
for file in "$@"; do
  if cmp "$folder/$file" "$again/copy/build/packages/$file"; then continue; fi
  differ+=("$file")
  mkdir -p "$folder/again"
  mv "$again/copy/build/packages/$file" "$folder/again/"
done
[ ${#differ[@]} -eq 0 ] || { echo "Two builds of this commit differ in ${differ[*]}: the second ones are in $folder/again" >&2; exit 1; }
echo "Two builds of this commit have the same bytes: $*"
