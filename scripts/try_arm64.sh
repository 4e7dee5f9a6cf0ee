#!/usr/bin/env bash
# Tries what ./package --arm64 made, by an emulator: the Debian package in a fresh Debian 12 to which arm64 was added as a
# second architecture, where it has to answer in the terminal and over HTTP and to leave nothing behind; then the program of
# the archive, asked the same as this machine's own. What packages do when they are installed is done by this machine's own
# shell, so that the kernel need not know of arm64.
#   scripts/try_arm64.sh FOLDER ARCHIVE.tar.zst PACKAGE.deb CHIMERE       systems are kept in FOLDER/roots
set -euo pipefail
folder=$1 archive=$2 deb=$3 native=$4
. "$(dirname "$0")/fresh_systems.sh"

try_deb() {
  local root
  root=$(fresh bookworm "$mirror")
  inside "$root" dpkg --add-architecture arm64
  inside "$root" sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends libc6:arm64' >"$folder/dpkg.log" 2>&1 ||
    { tail -n 5 "$folder/dpkg.log" >&2; return 1; }
  cp "$deb" "$root/tmp/chimere.deb"
  inside "$root" dpkg -i /tmp/chimere.deb >"$folder/dpkg.log" 2>&1 || { cat "$folder/dpkg.log" >&2; return 1; }
  cp "$(command -v qemu-aarch64-static)" "$root/usr/local/bin/"
  # shellcheck disable=SC2016
  printf '#!/bin/sh\nexec /usr/local/bin/qemu-aarch64-static /usr/bin/chimere "$@"\n' >"$root/usr/local/bin/emulated"
  chmod 755 "$root/usr/local/bin/emulated"
  inside "$root" /usr/local/bin/emulated config check --config /etc/chimere/chimere.yaml
  inside "$root" getent passwd chimere >/dev/null || { echo "the .deb made no account" >&2; return 1; }
  answers "$root" /usr/local/bin/emulated "Debian 12, the package for arm64"
  inside "$root" dpkg --purge chimere >/dev/null 2>&1
  [ ! -e "$root/usr/bin/chimere" ] || { echo "the .deb left its program behind" >&2; return 1; }
}

# As a processor with I8MM; tests/arm64/run has the others.
try_answers() {
  local program said
  rm -rf "$folder/unpacked"
  mkdir "$folder/unpacked"
  zstd -qdc "$archive" | tar -C "$folder/unpacked" -x --strip-components=1
  program=$folder/unpacked/bin/chimere
  said=$(/usr/bin/python3 "$(dirname "$0")/../tools/same_answers.py" --program "$native" --model "$folder/unpacked/share/chimere/chimere-nano.gguf" \
    --other "qemu-aarch64-static -cpu max -L /usr/aarch64-linux-gnu $program") || { echo "$said" >&2; return 1; }
  echo "arm64 beside $(uname -m): $said"
}

try_deb
try_answers
rm -rf "$folder/roots/trial" "$folder/unpacked"
