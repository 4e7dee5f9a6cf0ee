#!/usr/bin/env bash
# Models that others trained and published, converted and run by the real program: greedy text must be that of other
# implementations, to the letter.   usage: real_models.sh CHIMERE TESTS_DIR
set -euo pipefail
chimere=$1
work=$(mktemp -d)
models=$work/real
export CHIMERE_HOME=$work/home
trap '[ -z "${server:-}" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

. "$(dirname "$0")/server.sh"

# The weights are kept compressed.
cp -r "$2/golden/real" "$models"
for packed in "$models"/*/*.xz; do
  python3 -c 'import lzma, sys; sys.stdout.buffer.write(lzma.open(sys.argv[1]).read())' "$packed" >"${packed%.xz}"
done

# continue_text MODEL PROMPT TOKENS: sets `text` to the greedy continuation, as the server gives it.
continue_text() {
  start_server "$chimere" serve "$1" --exact --kv-k f32 --kv-v f32 --no-disk-cache
  grep -q "$url/v1/completions " "$work/serve.log" || fail "a model without a template got another example: $(cat "$work/serve.log")"
  text=$(curl -s "$url/v1/completions" -d "{\"prompt\":\"$2\",\"max_tokens\":$3,\"temperature\":0,\"thinking_control\":{\"loop_guard\":false}}" |
    python3 -c 'import json, sys; sys.stdout.write(json.load(sys.stdin)["choices"][0]["text"])')
  stop_server
}

expected=$(cat "$models/stories260K/golden-greedy-200.txt")
continue_text "$models/stories260K/stories260K.gguf" "" 200
[ "${text# }" = "$expected" ] || fail "stories260K wrote: $text"

"$chimere" convert "$models/tinystories-656k" --out "$work/stories.gguf" >/dev/null
prompt="One day, a girl named "
expected=$(cat "$models/tinystories-656k/golden-output.txt")
continue_text "$work/stories.gguf" "$prompt" 400
[ "$prompt$text" = "$expected" ] || fail "TinyStories-656K wrote: $prompt$text"

# The same weights with the tied matrix under its other name, a copy too large to keep here: the same file, value for value.
other=${CHIMERE_SHARED:-}/real-models/tinystories-656k-tied-as-head
if [ -n "${CHIMERE_SHARED:-}" ] && [ -d "$other" ]; then
  "$chimere" convert "$models/tinystories-656k" --out "$work/usual.gguf" --type f32 --name x >/dev/null
  "$chimere" convert "$other" --out "$work/head.gguf" --type f32 --name x >/dev/null
  printf '\1\0\0\0\5\0\0\0\100\0\0\0\0\1\0\0\0\4\0\0' >"$work/ids.i32"
  for file in usual head; do
    "$chimere" logits --model "$work/$file.gguf" --ids-file "$work/ids.i32" --out "$work/$file.f32" --exact
  done
  cmp "$work/usual.f32" "$work/head.f32" || fail "tied weights stored as lm_head.weight give other logits"
fi
echo "real models wrote what they should"
