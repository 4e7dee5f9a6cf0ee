#!/usr/bin/env bash
# Tries the packages in fresh systems that have nothing but a base: the folder of the archive in each of them, the .deb in
# Debian 12. Each has to answer by the terminal and over HTTP. The image runs as a container would run it: its own files
# alone, which it can not write to, and its own user. The cluster's overlays are built by Debian 13's kubectl. Then three
# of the program stand behind HAProxy, and one is killed.
#   scripts/try_packages.sh FOLDER ARCHIVE.tar.zst PACKAGE.deb IMAGE.oci.tar      systems are kept in FOLDER/roots
set -euo pipefail
folder=$1 archive=$2 deb=$3 image=$4
. "$(dirname "$0")/fresh_systems.sh"

try_archive() {  # try_archive RELEASE MIRROR NAME
  local root
  root=$(fresh "$1" "$2")
  mkdir "$root/opt/some place"
  zstd -qdc "$archive" | tar -C "$root/opt/some place" -x --strip-components=1
  answers "$root" "/opt/some place/bin/chimere" "$3, the archive"
}

try_deb() {
  local root
  root=$(fresh bookworm "$mirror")
  cp "$deb" "$root/tmp/chimere.deb"
  inside "$root" dpkg -i /tmp/chimere.deb >"$folder/dpkg.log" 2>&1 || { cat "$folder/dpkg.log" >&2; return 1; }
  inside "$root" chimere config check --config /etc/chimere/chimere.yaml
  inside "$root" getent passwd chimere >/dev/null || { echo "the .deb made no account" >&2; return 1; }
  answers "$root" chimere "Debian 12, the package"
  inside "$root" dpkg --purge chimere >/dev/null 2>&1
  [ ! -e "$root/usr/bin/chimere" ] || { echo "the .deb left its program behind" >&2; return 1; }
}

# in_image ROOT USER FOLDER [NAME=VALUE...] COMMAND...: what of the image can be written to is FOLDER and /tmp, both empty.
in_image() {
  local as=(/usr/sbin/chroot "--userspec=$2" --groups= "$1") settings=()
  # shellcheck disable=SC2016
  local enter='root=$1 user=$2 place=$3
    shift 3
    mount --bind "$root" "$root" && mount -t proc proc "$root/proc" && mount -t tmpfs tmpfs "$root/tmp" &&
      mount -t tmpfs -o "uid=${user%%:*},gid=${user##*:},mode=0700" tmpfs "$root$place" &&
      mount -o remount,bind,ro "$root" && exec env -i "$@"'
  local where=("$1" "$2" "$3")
  shift 3
  while [[ "$1" == *=* ]]; do
    settings+=("$1")
    shift
  done
  exec unshare --mount --pid --fork --kill-child bash -c "$enter" - "${where[@]}" "${settings[@]}" "${as[@]}" "$@"
}

try_image() {
  local root=$folder/roots/trial user="" place=/ settings=() words=() kind fact said server port
  port=$(free_port)
  rm -rf "$root"
  mkdir "$root"
  while read -r kind fact; do
    case $kind in
      user) user=$fact ;;
      folder) place=$fact ;;
      env) settings+=("$fact") ;;
      word) words+=("$fact") ;;
    esac
  done < <(/usr/bin/python3 "$(dirname "$0")/../tools/unpack_image.py" "$image" "$root")
  [ -n "$user" ] && [ "${user%%:*}" -ge 1000 ] || { echo "the image runs as '$user', expected an account of its own" >&2; return 1; }
  mkdir -p "$root/proc"
  (in_image "$root" "$user" "$place" "${settings[@]}" CHIMERE_API_KEY=key-of-the-trial CHIMERE_PORT=$port "${words[@]}") \
    >"$folder/trial.log" 2>&1 &
  server=$!
  for _ in $(seq 120); do
    sleep 0.5
    if curl -sf "http://127.0.0.1:$port/health" >/dev/null; then break; fi
  done
  said=$(curl -s "http://127.0.0.1:$port/v1/chat/completions" -H 'Authorization: Bearer key-of-the-trial' \
    -d '{"messages":[{"role":"user","content":"What is 2 + 3?"}],"temperature":0}') || true
  kill -KILL $server || true
  wait $server 2>/dev/null || true
  grep -q '"finish_reason":"stop"' <<<"$said" || { echo "the image: no answer over HTTP: $said" >&2; cat "$folder/trial.log" >&2; return 1; }
  echo "The image: answers as user $user, with files that it can not change"
}

unpacked() {  # the folder of the archive, on this machine; its path
  rm -rf "$folder/unpacked"
  mkdir "$folder/unpacked"
  zstd -qdc "$archive" | tar -C "$folder/unpacked" -x --strip-components=1
  echo "$folder/unpacked"
}

# Debian 12's knows less than the overlays need. It is taken out of its package, by an apt that knows of Debian 13 alone.
fetch_kubectl() {
  local state=$folder/kubectl options
  [ ! -x "$state/usr/bin/kubectl" ] || return 0
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
  echo "deb $mirror trixie main" >"$state/sources.list"
  options=(-qq -o "Dir::Etc::sourcelist=$state/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$state/lists"
           -o "Dir::Cache=$state/cache" -o Dir::State::status=/dev/null -o Acquire::Languages=none)
  (cd "$state" && apt-get "${options[@]}" update && apt-get "${options[@]}" download kubectl && dpkg-deb -x kubectl_*.deb .) \
    >"$folder/kubectl.log" 2>&1 || { cat "$folder/kubectl.log" >&2; return 1; }
  rm -rf "$state/lists" "$state/cache"
}

try_overlays() {
  local program
  fetch_kubectl
  program=$(unpacked)
  PATH=$folder/kubectl/usr/bin:$PATH "$(dirname "$0")/../tests/deploy/files.sh" "$program/bin/chimere" "$PWD" cluster
}

try_many() {
  local program
  program=$(unpacked)
  # The next version is this one, which says that it is another.
  /usr/bin/python3 - "$program/bin/chimere" <<'PYTHON'
import os, subprocess, sys
path = sys.argv[1]
version = subprocess.run([path, "--version"], check=True, capture_output=True).stdout.split()[1]
following = version[:-1] + (b"1" if version[-1:] == b"0" else b"0")
program = open(path, "rb").read()
n = program.count(b"\0" + version + b"\0")
if n != 1:
    sys.exit(f"the program has its version in {n} places, expected one")
open(path + "-next", "wb").write(program.replace(b"\0" + version + b"\0", b"\0" + following + b"\0"))
os.chmod(path + "-next", 0o755)
PYTHON
  /usr/bin/python3 "$(dirname "$0")/../tools/ha_run.py" --program "$program/bin/chimere" --next-program "$program/bin/chimere-next" \
    --model "$program/share/chimere/chimere-nano.gguf" --seconds 20 --kill-every 7 --clients 8 --baseline 0 --check \
    >"$folder/many.log" || { cat "$folder/many.log" >&2; return 1; }
  echo "Three replicas behind HAProxy: no request was lost when one joined, two were killed, and each was replaced by another version"
}

try_deb
try_image
try_overlays
try_many
try_archive bookworm "$mirror" "Debian 12"
try_archive trixie "$mirror" "Debian 13"
if [ -n "${UBUNTU_MIRROR:-}" ]; then try_archive jammy "$UBUNTU_MIRROR" "Ubuntu 22.04"; fi
rm -rf "$folder/roots/trial" "$folder/unpacked"
