# Shared by try_packages.sh and try_arm64.sh: systems of nothing but a base, and what runs in them. Sourced, not run, with
# $folder set: bases are kept in $folder/roots, and $folder/roots/trial is the one in use.
mkdir -p "$folder/roots"

mirror=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(LABEL)' 'Created-By: Packages' | awk '$2 == "Debian" && $3 == "Debian" { print $1; exit }')
[ -n "$mirror" ] || { echo "apt of this machine knows no archive of Debian" >&2; exit 1; }

fresh() {  # fresh RELEASE MIRROR: a copy of a base system, made once; its path
  local base=$folder/roots/$1.tar root=$folder/roots/trial
  if [ ! -e "$base" ]; then
    rm -rf "$root"
    debootstrap --variant=minbase "$1" "$root" "$2" >"$folder/roots/$1.log" 2>&1 || { tail -n 5 "$folder/roots/$1.log" >&2; return 1; }
    rm -rf "$root"/var/cache/apt/archives/*.deb
    tar -C "$root" -cf "$base.part" .
    mv "$base.part" "$base"
  fi
  rm -rf "$root"
  mkdir "$root"
  tar -C "$root" -xf "$base"
  echo "$root"
}

# inside ROOT COMMAND...: with a /proc and processes of its own, which end with the command.
inside() { (start_inside "$@"); }
start_inside() { exec unshare --mount --pid --fork --kill-child --mount-proc="$1/proc" chroot "$1" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "${@:2}"; }

free_port() { /usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

answers() {  # answers ROOT PROGRAM WHAT: in the terminal and over HTTP
  local said port server
  port=$(free_port)
  inside "$1" "$2" --version | head -n 3
  said=$(inside "$1" "$2" chat -p "What is 2 + 3?" --temp 0 2>/dev/null) || { echo "$3: no answer in the terminal" >&2; return 1; }
  grep -q 5 <<<"$said" || { echo "$3: expected a 5 in the answer, found: $said" >&2; return 1; }
  start_inside "$1" "$2" serve --port $port >"$folder/trial.log" 2>&1 &
  server=$!
  for _ in $(seq 240); do
    sleep 0.5
    if curl -sf "http://127.0.0.1:$port/health" >/dev/null; then break; fi
  done
  said=$(curl -s "http://127.0.0.1:$port/v1/chat/completions" -d '{"messages":[{"role":"user","content":"What is 2 + 3?"}],"temperature":0}') || true
  curl -sf "http://127.0.0.1:$port/" >/dev/null || said="no page: $said"
  kill -KILL $server || true  # what it started ends with it
  wait $server 2>/dev/null || true
  grep -q '"finish_reason":"stop"' <<<"$said" || { echo "$3: no answer over HTTP: $said" >&2; cat "$folder/trial.log" >&2; return 1; }
  echo "$3: answers in the terminal and over HTTP"
}
