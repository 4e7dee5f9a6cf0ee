#!/usr/bin/env bash
# Options from a file, from the environment and from the command line, with the real program: which of them wins, what is
# said of mistakes, what a running server takes over on SIGHUP, and how it ends.   usage: config.sh CHIMERE TESTS_DIR
set -euo pipefail
chimere=$1
work=$(mktemp -d)
export CHIMERE_HOME=$work/home XDG_CONFIG_HOME=$work/xdg
trap '[ -z "${server:-}" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT

fail() { echo "FAILED: $*" >&2; exit 1; }
expect() {
  local text=$1 out
  shift
  out=$("$@" 2>&1) || true
  grep -qF -- "$text" <<<"$out" || fail "expected '$text' from: $* -- got: $out"
}
refuses() { if "$@" >/dev/null 2>&1; then fail "should be refused: $*"; fi; }
. "$(dirname "$0")/server.sh"
nano=$2/../assets/chimere-nano.gguf

# What the program is.
expect "commit: " "$chimere" --version
expect "backends: " "$chimere" --version
expect "instruction sets: scalar" "$chimere" --version

# Every option that --help lists is one of the file and of the environment.
"$chimere" config show >"$work/shown" 2>/dev/null
n=0
for option in $("$chimere" serve --help | grep -oE '^ +(-[a-z],)?--[a-z0-9-]+' | grep -oE '\-\-[a-z0-9-]+' | sed 's/^--//' | sort -u); do
  case $option in help|config) continue ;; esac
  grep -qE "^(# )?$option:" "$work/shown" || fail "--$option is in no file of options"
  n=$((n + 1))
done
[ "$n" -gt 90 ] || fail "only $n options were found in --help"
# What is shown is a file that says the same, and the sample is one, too, also where every line of it is an option.
"$chimere" config show --config "$work/shown" >"$work/again"
cmp <(sed "1d; s/  # .*//; s/, /,/g" "$work/shown") <(sed "1d; s/  # .*//; s/, /,/g" "$work/again") || fail "what is shown is read differently"
"$chimere" config example >"$work/example.yaml"
expect "0 options are set" "$chimere" config check --config "$work/example.yaml"
sed -nE 's/^#([a-z0-9-]+: .+)/\1/p' "$work/example.yaml" >"$work/all.yaml"
[ "$(wc -l <"$work/all.yaml")" -gt 40 ] || fail "the sample has few values"
"$chimere" config show --config "$work/all.yaml" >/dev/null || fail "the sample's defaults are refused"

# The command line wins over the environment, which wins over the file.
cat >"$work/chimere.yaml" <<'END'
port: 9001          # an option of `serve`, without its dashes
parallel: 3
cors: [https://a.example, https://b.example]
no-page: true
experts-entropy: [0.2, 0.6]
api-key: from-the-file
END
chmod 644 "$work/chimere.yaml"
show() { "$chimere" config show --config "$work/chimere.yaml" "$@" 2>/dev/null; }
expect "port: 9001  # $work/chimere.yaml:1:1" show
expect "port: 9002  # CHIMERE_PORT" env CHIMERE_PORT=9002 "$chimere" config show --config "$work/chimere.yaml"
expect "port: 9003  # the command line" env CHIMERE_PORT=9002 "$chimere" config show --config "$work/chimere.yaml" --port 9003
expect "cors: [https://a.example, https://b.example]  # $work/chimere.yaml:3:1" show
expect "cors: https://c.example  # the command line" show --cors https://c.example
expect 'cors: [https://d.example, https://e.example]  # CHIMERE_CORS' env CHIMERE_CORS=https://d.example,https://e.example \
  "$chimere" config show --config "$work/chimere.yaml"
expect "queue: 64  # default" show
expect 'api-key: "********"' show
show >"$work/shown"
! grep -q from-the-file "$work/shown" || fail "a key was shown"
expect "every account of this machine may read it" "$chimere" config check --config "$work/chimere.yaml"
chmod 600 "$work/chimere.yaml"
expect "6 options are set, and all of them can be" "$chimere" config check --config "$work/chimere.yaml"
# Where no file is named: the user's, by variable or by place.
expect "port: 9001" env CHIMERE_CONFIG="$work/chimere.yaml" "$chimere" config show
mkdir -p "$work/xdg/chimere" && cp "$work/chimere.yaml" "$work/xdg/chimere/chimere.yaml"
expect "port: 9001" "$chimere" config show
expect "port: 8081  # default" "$chimere" config show --config none
rm -r "$work/xdg"

# Mistakes have their place and the nearest name.
wrong() { printf '%b' "$2" >"$work/wrong.yaml"; expect "$1" "$chimere" config check --config "$work/wrong.yaml"; refuses "$chimere" config check --config "$work/wrong.yaml"; }
wrong "$work/wrong.yaml:2:1: 'paralel' is no option of \`chimere serve\`; did you mean \`parallel\`?" 'port: 1\nparalel: 3\n'
wrong "$work/wrong.yaml:1:1: --port: " 'port: 99999\n'
wrong "$work/wrong.yaml:1:1: --learn: " 'learn: maybe\n'
wrong "reachable from other machines" 'host: 0.0.0.0\n'
wrong "--otlp: " 'otlp: grpc://collector:4317\n'
wrong "no-such-folder" 'models: no-such-folder\n'
wrong "no-such.gguf" 'model: no-such.gguf\n'
expect "expected a file that can be read" "$chimere" config check --config "$work/none.yaml"
expect "CHIMERE_PORT: --port: " env CHIMERE_PORT=tcp://10.0.0.1:8081 "$chimere" config check --config none
expect 'did you mean `CHIMERE_PARALLEL`?' env CHIMERE_PARALEL=3 "$chimere" config check --config none
refuses timeout 60 "$chimere" serve "$nano" --config "$work/none.yaml" --port 0

# Options of single models: what the command line and the environment say holds for all of them, then comes the model's
# section, then its folder's file, then what the file says of all.
mkdir -p "$work/shelf" && ln -s "$(realpath "$nano")" "$work/shelf/one.gguf" && ln -s "$(realpath "$nano")" "$work/shelf/two.gguf"
printf 'model-options:\n  one: {temp: 0.4, top-k: 7}\n  two: {top-k: 8}\n' >"$work/shelf/chimere.yaml"
cat >"$work/models.yaml" <<END
models: $work/shelf
ctx: 512
model-options:
  one:
    ctx: 128
    temp: 0.2
END
expect "$work/models.yaml: 2 options are set, options of 1 model, and all of them can be" \
  "$chimere" config check --config "$work/models.yaml"
"$chimere" config show --config "$work/models.yaml" >"$work/shown"
sed -n '/^model-options:/,$p' "$work/shown" >"$work/sections"
cat >"$work/expected" <<END
model-options:
  one:
    ctx: 128  # $work/models.yaml:5:5
    temp: 0.2  # $work/models.yaml:6:5
    top-k: 7  # $work/shelf/chimere.yaml:2:20
  two:
    top-k: 8  # $work/shelf/chimere.yaml:3:9
END
cmp "$work/sections" "$work/expected" || fail "what is shown of models: $(cat "$work/sections")"
"$chimere" config show --config "$work/shown" | sed '1d; s/  # .*//; s/, /,/g' >"$work/again"
cmp <(sed '1d; s/  # .*//; s/, /,/g' "$work/shown") "$work/again" || fail "what is shown of models is read differently"
expect "    # ctx: 128  # $work/models.yaml:5:5, but the command line says 64" \
  "$chimere" config show --config "$work/models.yaml" --ctx 64
expect "    # temp: 0.2  # $work/models.yaml:6:5, but CHIMERE_TEMP says 0.9" \
  env CHIMERE_TEMP=0.9 "$chimere" config show --config "$work/models.yaml"
expect "#model-options:" "$chimere" config example
expect "There may be: chat-template, " "$chimere" config example
of_model() { wrong "$1" "models: $work/shelf\nmodel-options:\n  one:\n    $2\n"; }
of_model "$work/wrong.yaml:4:5: 'ctxx' is no option of a model; did you mean \`ctx\`?" 'ctxx: 96'
of_model "$work/wrong.yaml:4:5: 'state_gb' is no option of a model; did you mean \`state-gb\`?" 'state_gb: 1'
of_model "$work/wrong.yaml:4:5: 'port' is no option of a model, but of the whole server" 'port: 96'
of_model "$work/wrong.yaml:4:5: one: --parallel: " 'parallel: 0'
of_model "$work/wrong.yaml:4:5: one: top_p" 'top-p: 3'
wrong "$work/wrong.yaml:1:1: 'model-option' is no option of \`chimere serve\`; did you mean \`model-options\`?" 'model-option: {}\n'
printf 'model-options:\n  one:\n    temmp: 96\n' >"$work/shelf/chimere.yaml"
expect "$work/shelf/chimere.yaml:3:5: 'temmp' is no option of a model; did you mean \`temp\`?" \
  "$chimere" config check --config "$work/models.yaml"
refuses timeout 60 "$chimere" serve --config "$work/models.yaml" --port 0
expect "\`model-options\` of chimere.yaml" "$chimere" serve --model-config "$work/models.yaml"
# One file may be both: that of the server, in the folder of the models.
mv "$work/models.yaml" "$work/shelf/chimere.yaml"
start_server "$chimere" serve --config "$work/shelf/chimere.yaml"
context() { curl -s "$url/v1/completions" -d "{\"model\":\"$1\",\"prompt\":\"a\",\"max_tokens\":1}" >/dev/null; curl -s "$url/v1/status?model=$1" | grep -oE '"context_length":[0-9]+'; }
states() { curl -s "$url/v1/status" | grep -oE '"models":.*'; }
[ "$(context one)$(context two)" = '"context_length":128"context_length":512' ] || fail "contexts: $(context one) $(context two)"
[[ "$(states)" == *'"options":{"ctx":"128","temp":"0.2"}'* ]] || fail "the status has no options: $(states)"
# What is loaded keeps what it has; from the next loading on the file holds.
sed -i 's/ctx: 128/ctx: 256/' "$work/shelf/chimere.yaml"
kill -HUP "$server"
for _ in $(seq 50); do [[ "$(states)" == *has_new_options* ]] && break; sleep 0.2; done
[[ "$(states)" == *has_new_options* ]] || fail "new options are not taken: $(states) $(tail -n 5 "$work/serve.log")"
! grep -qF "'model-options' has changed" "$work/serve.log" || fail "what is taken over is said not to be"
[ "$(context one)" = '"context_length":128' ] || fail "a model that is loaded has changed"
curl -s "$url/models/unload" -d '{"model":"one"}' >/dev/null
for _ in $(seq 50); do [[ "$(states)" == *'"name":"one","state":"unloaded"'* ]] && break; sleep 0.1; done
[ "$(context one)" = '"context_length":256' ] || fail "it was loaded with what it had before: $(context one)"
stop_server
# A server of one model has those of its name.
printf 'model-options:\n  chimere-nano: {ctx: 128}\n  other: {ctx: 64}\n' >"$work/models.yaml"
start_server "$chimere" serve "$nano" --config "$work/models.yaml"
curl -s "$url/v1/status" | grep -qF '"context_length":128' || fail "the one model has not its options"
stop_server

# A server takes over keys, limits and origins of its files on SIGHUP, and keeps what it has when they are broken.
"$chimere" keys ann >"$work/keys" 2>/dev/null
cat >"$work/chimere.yaml" <<END
model: $nano
api-key: first
api-keys-file: $work/keys
rate-limit: 0
END
start_server "$chimere" serve --config "$work/chimere.yaml"
status() { curl -s -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $1" "$url/v1/models"; }
[ "$(status first)" = 200 ] || fail "the key of the file is not taken"
[ "$(status second)" = 401 ] || fail "any key is taken"
reload() {  # reload TEXT: until the log has it
  kill -HUP "$server"
  for _ in $(seq 100); do if grep -qF -- "$1" "$work/serve.log"; then return 0; fi; sleep 0.1; done
  fail "expected '$1' in the log: $(tail -n 5 "$work/serve.log")"
}
sed -i 's/first/second/; s/rate-limit: 0/rate-limit: 2/' "$work/chimere.yaml"
echo "parallel: 2" >>"$work/chimere.yaml"
reload "reloaded: 2 keys, a limit of 2 requests a minute"
grep -qF "'parallel' has changed: that holds from the next start on" "$work/serve.log" || fail "what is not taken over is not said"
[ "$(status first)" = 401 ] || fail "a key that is gone is still taken"
[ "$(status second)" = 200 ] || fail "a key that came is not taken"
[ "$(status second)$(status second)" = 200429 ] || fail "the new limit does not hold"
echo "rate-limits: 0" >>"$work/chimere.yaml"
reload "not reloaded, all stays as it was: $work/chimere.yaml:6:1: 'rate-limits' is no option"
sed -i '$d' "$work/chimere.yaml"
# Adapters come and go as well; one that can not be read changes nothing.
/usr/bin/python3 - "$2/../training" "$work/tone.gguf" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
from nano import gguf
rank, inputs, outputs = 1, 512, 256
head = {"general.type": "adapter", "adapter.type": "lora", "general.architecture": "qwen35moe", "adapter.lora.alpha": gguf.F32(1)}
gguf.write(sys.argv[2], head, [("blk.2.attn_output.weight.lora_a", (inputs, rank), "F32", bytes(4 * inputs * rank)),
                               ("blk.2.attn_output.weight.lora_b", (rank, outputs), "F32", bytes(4 * outputs * rank))])
END
adapters() { curl -s -H "Authorization: Bearer second" "$url/v1/lora" | tr -d ' \n'; }
sed -i 's/rate-limit: 2/rate-limit: 0/' "$work/chimere.yaml"
echo "lora: [tone=$work/tone.gguf]" >>"$work/chimere.yaml"
reload "0 lists of origins, 1 adapters"
[[ "$(adapters)" == *'"name":"tone"'* ]] || fail "an adapter that came is not there: $(adapters)"
sed -i '$d' "$work/chimere.yaml"
echo "lora: [other=$work/none.gguf]" >>"$work/chimere.yaml"
reload "not reloaded, all stays as it was: $work/none.gguf"
[[ "$(adapters)" == *'"name":"tone"'* ]] || fail "an adapter went although nothing was taken over: $(adapters)"
sed -i '$d' "$work/chimere.yaml"
reload "0 lists of origins, 0 adapters"
[[ "$(adapters)" != *tone* ]] || fail "an adapter that is gone is still there: $(adapters)"
echo "nonsense" >>"$work/keys"
reload "not reloaded, all stays as it was: $work/keys"
[ "$(status first)" = 401 ] || fail "a broken file let a key in"
stop_server

# Told to stop, it lets an answer end (--drain) and takes no new one.
export NOTIFY_SOCKET=
start_server "$chimere" serve "$nano" --config none --drain 20
curl -sN "$url/v1/completions" -d '{"prompt":"Once upon a time","max_tokens":1500,"ignore_eos":true,"stream":true}' >"$work/stream" &
stream=$!
for _ in $(seq 100); do if [ -s "$work/stream" ]; then break; fi; sleep 0.1; done
kill -TERM "$server"
sleep 0.3
refuses curl -sf -m 2 "$url/health"
wait "$stream"
tail -n 3 "$work/stream" | grep -qF '[DONE]' || fail "the stream was cut: $(tail -c 300 "$work/stream")"
! grep -q '"error"' "$work/stream" || fail "the stream ended with an error: $(grep '"error"' "$work/stream")"
wait "$server" || fail "the server did not end cleanly"
server=

# Shells and man get what the commands have.
for shell in bash zsh fish; do "$chimere" completion $shell >"$work/completion.$shell"; grep -q -- rate-limit "$work/completion.$shell" || fail "$shell"; done
bash -c ". $work/completion.bash; COMP_WORDS=(chimere serve --par); COMP_CWORD=2; _chimere; echo \${COMPREPLY[*]}" | grep -qx -- --parallel || fail "bash does not complete --par"
bash -c ". $work/completion.bash; COMP_WORDS=(chimere engram no); COMP_CWORD=2; _chimere; echo \${COMPREPLY[*]}" | grep -qw notes || fail "bash does not complete engram no"
"$chimere" manual >"$work/manual"
grep -q '^.SS "chimere serve"' "$work/manual" || fail "the manual page has no serve"
echo "config: all as expected"
