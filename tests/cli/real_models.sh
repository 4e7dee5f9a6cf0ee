#!/usr/bin/env bash
# Models that others trained and published, converted and run by the real program: greedy text must be that of other
# implementations, to the letter.   usage: real_models.sh CHIMERE     Needs CHIMERE_SHARED; 77 says that it was skipped.
set -euo pipefail
chimere=$1
models=${CHIMERE_SHARED:-}/real-models
[ -n "${CHIMERE_SHARED:-}" ] && [ -d "$models" ] || { echo "skipped: CHIMERE_SHARED names no folder with real-models/"; exit 77; }
work=$(mktemp -d)
server=
export CHIMERE_HOME=$work/home
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

# continue_text MODEL PROMPT TOKENS: the greedy continuation, as the server gives it.
continue_text() {
  "$chimere" serve "$1" --port 0 --exact --kv-k f32 --kv-v f32 --no-disk-cache >"$work/serve.log" 2>&1 &
  server=$!
  local url=
  for _ in $(seq 600); do
    url=$(sed -n 's/.* is ready on \([^ ]*\) .*/\1/p' "$work/serve.log")
    [ -z "$url" ] || break
    kill -0 "$server" 2>/dev/null || fail "the server ended: $(cat "$work/serve.log")"
    sleep 0.1
  done
  grep -q "$url/v1/completions " "$work/serve.log" || fail "a model without a template got another example: $(cat "$work/serve.log")"
  curl -s "$url/v1/completions" -d "{\"prompt\":\"$2\",\"max_tokens\":$3,\"temperature\":0,\"thinking_control\":{\"loop_guard\":false}}" |
    python3 -c 'import json, sys; sys.stdout.write(json.load(sys.stdin)["choices"][0]["text"])'
  kill -TERM "$server"
  wait "$server" || fail "the server did not end cleanly"
  server=
}

expected=$(cat "$models/stories260K/golden-greedy-200.txt")
found=$(continue_text "$models/stories260K/stories260K.gguf" "" 200)
[ "${found# }" = "$expected" ] || fail "stories260K wrote: $found"

"$chimere" convert "$models/tinystories-656k" --out "$work/stories.gguf" >/dev/null
prompt="One day, a girl named "
expected=$(cat "$models/tinystories-656k/golden-output.txt")
found=$prompt$(continue_text "$work/stories.gguf" "$prompt" 400)
[ "$found" = "$expected" ] || fail "TinyStories-656K wrote: $found"

# The same weights with the tied matrix under its other name: the same file, value for value.
"$chimere" convert "$models/tinystories-656k" --out "$work/usual.gguf" --type f32 --name x >/dev/null
"$chimere" convert "$models/tinystories-656k-tied-as-head" --out "$work/head.gguf" --type f32 --name x >/dev/null
printf '\1\0\0\0\5\0\0\0\100\0\0\0\0\1\0\0\0\4\0\0' >"$work/ids.i32"
for file in usual head; do
  "$chimere" logits --model "$work/$file.gguf" --ids-file "$work/ids.i32" --out "$work/$file.f32" --exact
done
cmp "$work/usual.f32" "$work/head.f32" || fail "tied weights stored as lm_head.weight give other logits"
echo "real models wrote what they should"
