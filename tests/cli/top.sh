#!/usr/bin/env bash
# `chimere top` in tmux: a running server on the screen, another size of it, the server gone, and the way out.
#   usage: top.sh CHIMERE TESTS_DIR
set -euo pipefail
chimere=$1
work=$(mktemp -d)
export CHIMERE_HOME=$work/home
screen() { tmux -S "$work/tmux" "$@"; }
trap 'screen kill-server 2>/dev/null || true; [ -z "${server:-}" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT

fail() { echo "FAILED: $*" >&2; shown >&2 || true; exit 1; }
shown() { screen capture-pane -p -t top; }
# until_so COMMAND...: within a minute.
until_so() {
  for _ in $(seq 600); do
    "$@" && return 0
    sleep 0.1
  done
  fail "did not come true: $*"
}
shows() { grep -qF -- "$1" <<<"$(shown)"; }
. "$(dirname "$0")/server.sh"

start_server "$chimere" serve --config none --no-odo --no-page --no-disk-cache "$2/../assets/chimere-nano.gguf"
printf '%q ' env CHIMERE_HOME="$work/home" "$chimere" top --url "$url" --interval 0.2 >"$work/command"
echo '; echo "exit code $?"; sleep 600' >>"$work/command"
screen -f /dev/null new-session -d -s top -x 100 -y 30 "bash $work/command"
until_so shows "chimere-nano on cpu, context of"
until_so shows "No request is under way."
until_so shows "q: quit"
# A request that came since is counted.
curl -s "$url/v1/chat/completions" -d '{"messages":[{"role":"user","content":"Hello"}],"max_tokens":3,"temperature":0}' >/dev/null
until_so shows "3 generated"
# A smaller terminal gets shorter lines, none of them wrapped.
screen resize-window -t top -x 30 -y 8
narrow() { shows "Answers" && ! shows "waiting" && [ "$(shown | wc -L)" -le 30 ]; }
until_so narrow
screen resize-window -t top -x 100 -y 30
until_so shows "waiting"
# It outlives the server, and says so.
stop_server
until_so shows "no server answers at $url"
shows "chimere-nano on cpu" || fail "what was last seen is gone"
screen send-keys -t top q
until_so shows "exit code 0"
shows "chimere-nano" && fail "the screen before is not there again"
echo "top: all as expected"
