#!/usr/bin/env bash
# Runs the real program as a person or another program would: every sub-command, the server through curl, and what they
# say when something is wrong.   usage: commands.sh CHIMERE TESTS_DIR
set -euo pipefail
chimere=$1
models=$2/golden/models
work=$(mktemp -d)
export CHIMERE_HOME=$work/home  # what the server keeps is not the user's
trap '[ -z "${server:-}" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT

fail() { echo "FAILED: $*" >&2; exit 1; }
# expect TEXT COMMAND...: the command's output holds the text, whatever its exit code.
expect() {
  local text=$1
  shift
  local out
  out=$("$@" 2>&1) || true
  grep -qF -- "$text" <<<"$out" || fail "expected '$text' from: $* -- got: $out"
}
refuses() { if "$@" >/dev/null 2>&1; then fail "should be refused: $*"; fi; }

. "$(dirname "$0")/server.sh"

model=$models/qwen3_5-A/model.gguf
nano=$2/../assets/chimere-nano.gguf

# One binary that runs on a bare machine: no linear algebra, no Fortran, no second thread pool.
if ldd "$chimere" | grep -iE 'blas|lapack|gfortran|quadmath|gomp|omp5|faiss'; then fail "the program needs these libraries"; fi

# The model in the box is found beside the program, and its absence is said.
mkdir -p "$work/clone/build/release" "$work/clone/assets"
cp "$chimere" "$work/clone/build/release/chimere"
expect "is not beside the program" "$work/clone/build/release/chimere" inspect
expect "in $work/clone/build/release, $work/clone/build, $work/clone" "$work/clone/build/release/chimere" inspect
cp "$nano" "$work/clone/assets/"
expect "chimere-nano" "$work/clone/build/release/chimere" inspect
expect "multi-token-prediction block" "$work/clone/build/release/chimere" inspect

# It does small sums, with a thought that ends and without one. One question by a pipe, by -p, or half by each; nothing
# but the answer on standard output, nothing at all on standard error.
answer=$(echo "What is 48 + 27?" | "$chimere" chat "$nano" --temp 0 2>"$work/err")
[ "$answer" = "48 + 27 = 75." ] || fail "with thinking 48 + 27 gave: $answer"
[ ! -s "$work/err" ] || fail "a piped question wrote to standard error: $(cat "$work/err")"
answer=$("$chimere" chat "$nano" --temp 0 --no-think -p "What is 48 + 27?" </dev/null)
[ "$answer" = "48 + 27 = 75." ] || fail "without thinking 48 + 27 gave: $answer"
both=$(printf '48 + 27?\n' | "$chimere" chat "$nano" --temp 0 -p "What is")
whole=$(printf 'What is\n\n48 + 27?' | "$chimere" chat "$nano" --temp 0)
[ "$both" = "$whole" ] || fail "-p and a pipe gave '$both', their text at once '$whole'"
expect "there is no question" "$chimere" chat "$nano" </dev/null

# What was probably meant, and exit code 2.
usage() { local code=0; "$@" >/dev/null 2>&1 || code=$?; [ "$code" = 2 ] || fail "exit code $code, expected 2: $*"; }
expect 'Did you mean `serve`?' "$chimere" sevre
usage "$chimere" sevre
expect 'Did you mean `--port`?' "$chimere" serve --prot 1
# Nothing at all is answered with what there is; a folder with how it is served.
usage "$chimere"
expect "chimere serve MODEL.gguf" "$chimere"
expect "$work: is a folder; \`chimere serve --models $work\` serves the GGUF files in it" "$chimere" serve "$work"
# What is no file of a model is told what would be one, in every command.
mkdir -p "$work/given/hub"
cp "$model" "$work/given/small-q4.gguf"
head -c 2000 "$model" >"$work/given/cut.gguf"
echo '{}' >"$work/given/hub/config.json"
for command in serve "chat -p hi" inspect plan; do  # split where it is used
  expect "https://example.org/m.gguf: is an address, and nothing is downloaded here: fetch the file first" "$chimere" $command https://example.org/m.gguf
  expect "maker/model:Q4_K_M: no such file. As a name at Hugging Face: nothing is downloaded here" "$chimere" $command maker/model:Q4_K_M
  expect "did you mean $work/given/small-q4.gguf?" "$chimere" $command "$work/given/smal-q4"
  expect "chimere convert $work/given/hub --out MODEL.gguf" "$chimere" $command "$work/given/hub"
  expect "$work/given: is a folder; \`chimere serve --models $work/given\` serves the GGUF files in it by their names: cut.gguf, small-q4.gguf" "$chimere" $command "$work/given"
done
expect "the file ends too early; was it copied or downloaded whole?" "$chimere" inspect "$work/given/cut.gguf"
expect "Nothing is downloaded here" "$chimere" pull qwen3
expect '`chimere top` shows a running server' "$chimere" ps
# A command line of llama-server is understood, or told what there is instead.
expect "-hf: nothing is downloaded here" "$chimere" serve -hf someone/model
usage "$chimere" serve -hf someone/model
expect "-ngl has no effect: weights go to the card" "$chimere" serve -m "$work/none.gguf" -ngl 99
expect "none.gguf" "$chimere" serve -m "$work/none.gguf" -ngl 99 -c 4096 -np 4 --jinja
expect "--draft-model: small.gguf" "$chimere" serve llama-server -m "$nano" -md small.gguf --reasoning-budget 64
expect "--chat-template-kwargs: expected a JSON object" "$chimere" serve "$model" --chat-template-kwargs '[1]'
expect "nothing is downloaded" "$chimere" run no-such-model
answer=$("$chimere" run "$nano" --think=false --temp=0 "What is 48 + 27?" </dev/null)
[ "$answer" = "48 + 27 = 75." ] || fail "run gave: $answer"
expect "one of chatml" "$chimere" serve "$model" --chat-template no-such-template
expect "expected a folder of GGUF files" "$chimere" serve --models "$work/none"
usage "$chimere" serve --prot 1
usage "$chimere"
# As other programs have it.
[ "$("$chimere" help)" = "$("$chimere" --help)" ] || fail "chimere help"
[ "$("$chimere" help serve)" = "$("$chimere" serve --help)" ] || fail "chimere help serve"
[ "$("$chimere" version)" = "$("$chimere" --version)" ] || fail "chimere version"
expect "--chat-template" "$chimere" chat --help  # which it advises where a file has no template
expect "nemotron-3-nano-30b-a3b" "$chimere" bench --help
expect "no-such-folder: expected a folder" "$chimere" serve "$model" --lora-dir "$work/no-such-folder"
expect "M parameters" "$chimere" inspect "$nano"
expect "- one answer: " "$chimere" report "$nano" -t 1
# With its options, but for what somebody made up: keys, paths, addresses, names.
printf 'api-key: [sk-of-a-person]\nalias: [persons-model]\nengram: %s\nctx: 4096\nspeculate: ngram\nhost: 10.1.2.3\n' "$work/tables" >"$work/report.yaml"
chmod 600 "$work/report.yaml"
report=$(CHIMERE_CONFIG="$work/report.yaml" CHIMERE_TEMP=0.5 "$chimere" report "$nano" --no-bench)
for line in "- ctx: 4096 (file)" "- speculate: ngram (file)" '- api-key: "********" (file)' '- alias: "********"' '- engram: "********"' '- host: "********"'; do
  grep -qF -e "$line" <<<"$report" || fail "report has no '$line': $report"
done
grep -q "temp.*0.5 (environment)" <<<"$report" || fail "report has no variable: $report"
if grep -F -e sk-of -e persons -e "$work" -e 10.1.2.3 <<<"$report"; then fail "report tells what is nobody's business"; fi
expect "no server answers" "$chimere" report "$nano" --no-bench --server http://127.0.0.1:1
if "$chimere" report "$nano" --no-bench | grep -F -e "$(basename "$work")" -e "$nano"; then fail "report tells where it ran"; fi
# Where a model would go: from its header, with figures of this machine that are measured once and kept.
expect "routed experts" "$chimere" plan "$nano"
[ -s "$CHIMERE_HOME/machine.json" ] || fail "plan kept no figures"
plan=$("$chimere" plan "$nano" --json --ctx 1024 --parallel 4)
for figure in '"backend":"cpu","context":1024,"parallel":4' '"disk_bytes":0,' '"changes":'; do
  grep -qF -- "$figure" <<<"$plan" || fail "plan has no $figure: $plan"
done
if grep -qE '"(decode|prompt)_tok_s":null' <<<"$plan"; then fail "plan knows no speed: $plan"; fi
expect "experts beyond that" "$chimere" plan --synthetic qwen3.5-35b-a3b --ram 6GiB
expect "less for the states" "$chimere" plan "$model" --ctx 65536
expect "does not fit into RAM" "$chimere" plan "$nano" --ram 1MB
expect "missing.gguf" "$chimere" plan "$work/missing.gguf"
refuses "$chimere" plan "$work/missing.gguf"
echo "no model" >"$work/text.gguf"
expect "text.gguf" "$chimere" plan "$work/text.gguf"
refuses "$chimere" plan "$nano" --ram plenty
refuses "$chimere" plan "$nano" --parallel 0
expect "expected no --backend cuda" "$chimere" plan "$nano" --vram 0 --backend cuda
"$chimere" plan "$nano" --vram 0 >/dev/null || fail "--vram 0 is the CPU"
expect "--cpu-moe: expected a number" "$chimere" plan "$nano" --cpu-moe some
expect "--gpu-layers: expected a number" "$chimere" plan "$nano" --gpu-layers some
expect "--gpu-layers: expected a CUDA card" "$chimere" plan "$nano" --vram 0 --gpu-layers 3
expect "feed-forward" "$chimere" plan --synthetic llama-tiny
# Said at a start, from what is kept.
expect "expected: " "$chimere" bench --model "$nano" -p 16 -n 4 -r 1
"$chimere" doctor --json >"$work/doctor" 2>"$work/err" || fail "doctor: $(cat "$work/err")"
cmp -s "$work/doctor" "$CHIMERE_HOME/machine.json" || fail "doctor kept something else than it said"
for figure in '"version": 1' '"threads": 1' '"format": "IQ3_S"' '"random_bytes_per_second": '; do
  grep -qF -- "$figure" "$work/doctor" || fail "doctor has no $figure: $(cat "$work/doctor")"
done
expect "Measured at" "$chimere" doctor
expect "disk       not measured: /proc" "$chimere" doctor --folder /proc
if [ -n "$(ls -A "$CHIMERE_HOME" | grep chimere-disk)" ]; then fail "doctor left its file"; fi
vocabulary=("$2"/golden/tokenizer/*/vocab.gguf)
"$chimere" inspect "${vocabulary[0]}" >"$work/vocabulary" || fail "inspect refused a vocabulary: $(cat "$work/vocabulary")"
grep -q "a vocabulary alone" "$work/vocabulary" || fail "inspect said of a vocabulary: $(cat "$work/vocabulary")"

expect "qwen35" "$chimere" inspect "$model"
expect "3 recurrent" "$chimere" inspect "$model"
head -c 1000 "$model" >"$work/cut.gguf"
refuses "$chimere" inspect "$work/cut.gguf"
expect "cut.gguf" "$chimere" inspect "$work/cut.gguf"
refuses "$chimere" inspect "$work/missing.gguf"

# A checkpoint of Hugging Face becomes a file that runs; a run that the system kills in the middle is continued.
mkdir "$work/hf"
python3 - "$work/hf" <<'PY'
import json, pathlib, random, struct, sys
folder = pathlib.Path(sys.argv[1])
d, ff, vocab = 64, 160, 512
config = dict(architectures=["LlamaForCausalLM"], hidden_size=d, intermediate_size=ff, num_hidden_layers=2, vocab_size=vocab,
              num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256, rms_norm_eps=1e-5, rope_theta=1e4)
shapes = {"model.embed_tokens.weight": [vocab, d], "lm_head.weight": [vocab, d], "model.norm.weight": [d]}
for i in range(2):
    at = f"model.layers.{i}."
    shapes.update({at + "input_layernorm.weight": [d], at + "post_attention_layernorm.weight": [d],
                   at + "self_attn.q_proj.weight": [d, d], at + "self_attn.k_proj.weight": [d // 2, d],
                   at + "self_attn.v_proj.weight": [d // 2, d], at + "self_attn.o_proj.weight": [d, d],
                   at + "mlp.gate_proj.weight": [ff, d], at + "mlp.up_proj.weight": [ff, d], at + "mlp.down_proj.weight": [d, ff]})
random.seed(1)
header, data = {}, b""
for name, shape in shapes.items():
    n = shape[0] * (shape[1] if len(shape) > 1 else 1)
    header[name] = dict(dtype="F32", shape=shape, data_offsets=[len(data), len(data) + 4 * n])
    data += struct.pack(f"<{n}f", *(random.uniform(-0.1, 0.1) for _ in range(n)))
text = json.dumps(header).encode()
(folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
(folder / "config.json").write_text(json.dumps(config))
letters = {chr(c): i for i, c in enumerate(range(33, 127))}
letters["\u0120"] = 94
(folder / "tokenizer.json").write_text(json.dumps(dict(
    added_tokens=[dict(id=95, content="<|im_end|>", special=True)], pre_tokenizer=dict(type="ByteLevel", use_regex=True),
    model=dict(type="BPE", vocab=letters, merges=[]))))
(folder / "tokenizer_config.json").write_text(json.dumps(dict(eos_token="<|im_end|>")))
PY
expect "LlamaForCausalLM" "$chimere" convert --help
expect "--type: expected bf16" "$chimere" convert "$work/hf" --out "$work/never.gguf" --type q4_k
"$chimere" convert "$work/hf" --out "$work/whole.gguf" --type f32 >/dev/null
expect "llama" "$chimere" inspect "$work/whole.gguf"
refuses "$chimere" convert "$work/hf" --out "$work/whole.gguf" --type f32
(ulimit -c 0; ulimit -f 200; "$chimere" convert "$work/hf" --out "$work/killed.gguf" --type f32) >/dev/null 2>&1 && fail "convert should have been killed"
[ ! -e "$work/killed.gguf" ] || fail "a killed conversion left a file"
[ -s "$work/killed.gguf.part" ] || fail "a killed conversion left no part"
"$chimere" convert "$work/hf" --out "$work/killed.gguf" --type f32 >/dev/null
cmp "$work/whole.gguf" "$work/killed.gguf" || fail "a continued conversion differs"
[ ! -e "$work/killed.gguf.part" ] || fail "the part of a finished conversion stayed"
# A checkpoint is quantised without another command, to the bytes of the two; what is made on the way goes away, or stays
# where a run was killed and is not made again.
f=$work/from-folder
mkdir "$f"
"$chimere" quantize "$work/whole.gguf" "$f/two.gguf" --type q4_0 >/dev/null
expect "a checkpoint, converted first" "$chimere" quantize "$work/hf" "$f/one.gguf" --type q4_0
cmp "$f/one.gguf" "$f/two.gguf" || fail "a checkpoint and its file are quantised to different bytes"
killed() { (ulimit -c 0; ulimit -f "$1"; "$chimere" quantize "$work/hf/" "$f/killed.gguf" --type q4_0) >/dev/null 2>&1; }
killed 200 && fail "quantize should have been killed while it converted"
[ -s "$f"/killed.gguf.source-*.gguf.part ] || fail "a killed conversion left no part"
expect "stays, for the same command" "$chimere" quantize "$work/hf/" "$f/killed.gguf" --type q4_0 --imatrix "$0"
killed 60 && fail "quantize should have been killed while it wrote"
[ -s "$f/killed.gguf.part" ] || fail "a killed run left no part"
[ ! -e "$f/killed.gguf" ] || fail "a killed run left a file"
"$chimere" quantize "$work/hf/" "$f/killed.gguf" --type q4_0 >/dev/null 2>&1
cmp "$f/two.gguf" "$f/killed.gguf" || fail "a continued run from a checkpoint differs"
expect "expected one goal" "$chimere" quantize "$work/hf" "$f/x.gguf"
expect "llama-quantize" "$chimere" quantize "$work/hf" --type q4_0 --export-llama
[ -z "$(find "$work" -name '*.source*')" ] || fail "a converted checkpoint stayed: $(find "$work" -name '*.source*')"
mkdir "$f/empty"
expect "config.json" "$chimere" quantize "$f/empty" "$f/x.gguf" --type q4_0
truncate -s -100 "$work/hf/model.safetensors"
expect "damaged or cut short" "$chimere" quantize "$work/hf" "$f/x.gguf" --type q4_0
[ ! -e "$f/x.gguf" ] || fail "a damaged checkpoint became a file"
expect "model.safetensors" "$chimere" convert "$work/hf" --out "$work/cut2.gguf"
expect "damaged or cut short" "$chimere" convert "$work/hf" --out "$work/cut2.gguf"

# A model is quantised, with one type and to a size; a run that the system kills in the middle is continued.
q=$work/quantize
mkdir "$q"
expect "--fits 16GiB --ctx 65536" "$chimere" quantize --help
"$chimere" quantize "$work/whole.gguf" "$q/q8.gguf" --type q8_0 >/dev/null
expect "Q8_0" "$chimere" inspect "$q/q8.gguf"
expect "llama" "$chimere" inspect "$q/q8.gguf"
expect "exists; --force" "$chimere" quantize "$work/whole.gguf" "$q/q8.gguf" --type q8_0
expect "is the file to read" "$chimere" quantize "$work/whole.gguf" "$work/whole.gguf" --type q8_0 --force
expect "did you mean Q6_K?" "$chimere" quantize "$work/whole.gguf" "$q/x.gguf" --type q6k
expect "expected one goal" "$chimere" quantize "$work/whole.gguf" "$q/x.gguf" --type q8_0 --bpw 4
expect "expected a size" "$chimere" quantize "$work/whole.gguf" "$q/x.gguf" --size 4apples
expect "cut.gguf" "$chimere" quantize "$work/cut.gguf" "$q/x.gguf" --type q8_0
expect "--keep: the expression" "$chimere" quantize "$work/whole.gguf" "$q/x.gguf" --type q8_0 --keep 'a(=F16'
expect "no imatrix" "$chimere" quantize "$work/whole.gguf" "$q/x.gguf" --type q8_0 --imatrix "$0"
(ulimit -c 0; ulimit -f 60; "$chimere" quantize "$work/whole.gguf" "$q/killed.gguf" --type q8_0) >/dev/null 2>&1 && fail "quantize should have been killed"
[ ! -e "$q/killed.gguf" ] || fail "a killed run left a file"
"$chimere" quantize "$work/whole.gguf" "$q/killed.gguf" --type q8_0 >/dev/null
cmp "$q/q8.gguf" "$q/killed.gguf" || fail "a continued run differs"
# Statistics, losses measured on the model, a plan within the size, and what it cost in the end.
for i in $(seq 300); do echo "abc$((i * 7919 % 613)) some words and numbers $i"; done >"$q/text.txt"
"$chimere" imatrix "$work/whole.gguf" --text "$q/text.txt" --ctx 64 --max-windows 6 -o "$q/a.imatrix" >/dev/null
"$chimere" imatrix --merge "$q/a.imatrix" "$q/a.imatrix" -o "$q/b.imatrix" >/dev/null
expect "exists; --force" "$chimere" imatrix --merge "$q/a.imatrix" -o "$q/b.imatrix"
expect "expected --text" "$chimere" imatrix "$work/whole.gguf" -o "$q/c.imatrix"
"$chimere" quantize "$work/whole.gguf" "$q/small.gguf" --size 120KB --imatrix "$q/b.imatrix" --text "$q/text.txt" \
  --probe-windows 1 --report "$q/report.md" >"$q/said"
[ "$(stat -c %s "$q/small.gguf")" -le 120000 ] || fail "the file is larger than was asked for: $(cat "$q/said")"
grep -q "mean KL divergence" "$q/said" || fail "quantize did not say what it cost: $(cat "$q/said")"
grep -q "report-curves.svg" "$q/report.md" || fail "the report has no plot"
[ -s "$q/report-curves.svg" ] && [ -s "$work/whole.gguf.losses.json" ] || fail "quantize left no plot or no losses"
expect "measured before" "$chimere" quantize "$work/whole.gguf" --bpw 6 --imatrix "$q/b.imatrix" --text "$q/text.txt" --dry-run
expect "token_embd.weight" "$chimere" quantize "$work/whole.gguf" --bpw 6 --imatrix "$q/b.imatrix" --text "$q/text.txt" --dry-run
expect "the smallest that the tensors can take" "$chimere" quantize "$work/whole.gguf" "$q/x.gguf" --size 20KB
expect "leaves nothing" "$chimere" quantize "$work/whole.gguf" "$q/x.gguf" --fits 1MB --ctx 4096
expect "llama-quantize" "$chimere" quantize "$work/whole.gguf" --type q4_0 --export-llama
expect "asked for: blk.1=Q8_0" "$chimere" quantize "$work/whole.gguf" --type q4_0 --keep 'blk.1=Q8_0' --dry-run
"$chimere" perplexity --model "$work/whole.gguf" --exact --text "$q/text.txt" --ctx 64 --save-logits "$q/base.kld" >/dev/null 2>&1
expect '"same_top":1.0' "$chimere" perplexity --model "$work/whole.gguf" --exact --kld "$q/base.kld" --json
expect "KL divergence over" "$chimere" perplexity --model "$q/small.gguf" --exact --kld "$q/base.kld"
expect "expected a file written by" "$chimere" perplexity --model "$work/whole.gguf" --kld "$0"

# An adapter that can not be used is said before the model answers.
expect "expected NAME=FILE" "$chimere" chat "$model" --lora poem -p x </dev/null
expect "none.gguf" "$chimere" chat "$model" --lora "poem=$work/none.gguf:0.5" -p x </dev/null
expect "general.type" "$chimere" chat "$model" --lora "poem=$model" -p x </dev/null

ids=$(echo '"Hello world"' | "$chimere" tokenize --model "$model")
text=$(echo "$ids" | "$chimere" tokenize --model "$model" --decode)
[ "$text" = '"Hello world"' ] || fail "tokenize --decode gave $text for $ids"
echo '[1, 99999999]' | "$chimere" tokenize --model "$model" --decode >/dev/null 2>&1 && fail "an id outside the vocabulary"

# Prefill, steps and the oracle agree: exact activations, float cache.
exact=(--exact --kv-k f32 --kv-v f32)
for run in "cpu" "cpu --step 10" "reference"; do
  # shellcheck disable=SC2086
  "$chimere" logits --model "$model" --ids-file "$models/qwen3_5-A/tokens_48.bin" --out "$work/${run// /}.f32" \
    --backend $run "${exact[@]}"
done
size=$(stat -c %s "$models/qwen3_5-A/logits_48.bin")
for f in "$work"/*.f32; do [ "$(stat -c %s "$f")" = "$size" ] || fail "$f has the wrong size"; done
printf '\377\377\377\177' >"$work/bad.i32"
expect "outside the vocabulary" "$chimere" logits --model "$model" --ids-file "$work/bad.i32" --out "$work/x.f32"

expect '"decode_tok_s"' "$chimere" bench --model "$model" -p 32 -n 4 -r 1 -t 1 --json
expect "tok/s" "$chimere" bench --synthetic qwen3.5-tiny:q4_0 -p 16 -n 2 -r 1
expect "tok/s" "$chimere" bench --synthetic nemotron-tiny:q4_0 -p 16 -n 2 -r 1
expect "right" "$chimere" bench --synthetic qwen3.5-tiny:q4_0 -p 0 -n 8 -r 1 --speculate always --draft-max 3 --acceptance 0.75
expect "a guess of the MTP block" "$chimere" bench --synthetic qwen3.5-tiny:q4_0 -p 0 -n 8 -r 1 --speculate mtp --acceptance 0.9
expect "expected a model with an MTP block" "$chimere" bench --synthetic nemotron-tiny:q4_0 -p 0 -n 8 -r 1 --speculate mtp
expect "a guess of the draft model" "$chimere" bench --model "$model" -p 0 -n 8 -r 1 --speculate draft --draft-model "$model" --acceptance 0.9
expect "needs --draft-model FILE" "$chimere" bench --model "$model" -p 0 -n 8 -r 1 --speculate draft
expect "needs --draft-model FILE" "$chimere" chat "$nano" -p hello --speculate draft
expect "needs --drafter FILE" "$chimere" chat "$nano" -p hello --speculate dflash
expect "found another text for" "$chimere" chat "$nano" -p hello --draft-model "$models/qwen2-A/model.gguf"
expect "draft-model: $work/none.gguf: cannot open" "$chimere" chat "$nano" -p hello --draft-model "$work/none.gguf"
expect "not in range" "$chimere" bench --model "$model" --speculate auto --acceptance 2
expect "not in" "$chimere" serve "$model" --speculate sometimes
expect "not in range" "$chimere" chat "$model" -p hello --draft-max 16
expect "expected one of" "$chimere" bench --synthetic nonsense
expect '"perplexity"' "$chimere" perplexity --model "$model" --text "$2/cli/commands.sh" --ctx 128 --json

expect "--vram: expected a CUDA card" "$chimere" bench --backend cpu --vram 1GiB --model "$model"
expect "no profile" "$chimere" bench --backend cpu --profile -p 8 -n 2 -r 1 --model "$model"

answer=$("$chimere" chat "$model" --max-tokens 4 --seed 1 -p Hi </dev/null)
[ -n "$answer" ] || fail "chat said nothing"
again=$("$chimere" chat "$model" --max-tokens 4 --seed 1 -p Hi </dev/null)
[ "$answer" = "$again" ] || fail "the same seed gave '$answer' and '$again'"

# What one question needs to know is said, also where standard error is no terminal.
"$chimere" chat "$nano" --temp 0 -n 5 -p "What is 48 + 27?" </dev/null >"$work/out" 2>"$work/err"
[ -s "$work/out" ] && fail "an answer of five tokens: $(cat "$work/out")"
grep -q "There is no answer: the thought took all 5 tokens" "$work/err" || fail "an empty answer was not explained: $(cat "$work/err")"
"$chimere" chat "$model" --ctx 999999 -n 2 -p Hi </dev/null >"$work/out" 2>"$work/err"
grep -q "more than the [0-9]* tokens the model was made for" "$work/err" || fail "a --ctx beyond the model was not said by chat -p"
long=$(printf 'word %.0s' $(seq 400))
expect ". --ctx N makes room" "$chimere" chat "$nano" --ctx 128 -p "$long" </dev/null
for option in --ctx --cache-disk-gb; do
  expect "$option: expected 0 or more, found -5" "$chimere" serve "$model" $option -5
done
expect "state-gb: expected more than 0, found 0" "$chimere" serve "$model" --state-gb 0
expect "99999 not in range 0 to 65535" "$chimere" serve "$model" --port 99999
expect "CHIMERE_API_KEY" "$chimere" serve "$model" --host 0.0.0.0

start_server "$chimere" serve "$model" --ctx 1000000
grep -q "more than the [0-9]* tokens the model was made for" "$work/serve.log" || fail "a --ctx beyond the model was not said"
expect '"object"' curl -s "$url/v1/models"
body='{"messages":[{"role":"user","content":"Hi"}],"max_tokens":8,"seed":1,"temperature":0}'
whole=$(curl -s "$url/v1/chat/completions" -d "$body")
grep -qF '"completion_tokens":8' <<<"${whole// /}" || fail "usage of: $whole"
expect "data: [DONE]" curl -sN "$url/v1/chat/completions" -d "${body%\}},\"stream\":true}"
expect '"error"' curl -s "$url/v1/chat/completions" -d '{"messages": [}'
expect '"error"' curl -s "$url/nowhere"
expect "is taken" "$chimere" serve "$model" --port "${url##*:}"
expect "choose another with --odo-port" "$chimere" serve "$model" --port 0 --odo-port "${url##*:}"
expect "expected no --no-odo beside it" "$chimere" serve "$model" --port 0 --odo-port 0 --no-odo
stop_server

# What a server keeps of prompts is shown and cleared; what lay in the folder before stays.
expect "there is no prefix cache" "$chimere" cache stat --cache-dir "$work/nowhere"
mkdir -p "$work/mine/0123456789abcdef"
echo mine >"$work/mine/0123456789abcdef/0000000000000001.point"
chmod 755 "$work/mine"
start_server "$chimere" serve "$model" --cache-dir "$work/mine" --cache-disk-gb 1
expect '"directory":"'"$work/mine/chimere-prefix-cache"'"' curl -s "$url/v1/cache"
expect '"completion_tokens":8' curl -s "$url/v1/chat/completions" -d "$body"
stop_server
if "$chimere" cache stat --cache-dir "$work/mine" | tail -n 1 | grep -qF ": 0 entries"; then fail "nothing was kept"; fi
expect "cleared: " "$chimere" cache clear --cache-dir "$work/mine"
expect ": 0 entries, 0.0 MB" "$chimere" cache stat --cache-dir "$work/mine"
[ "$(cat "$work/mine/0123456789abcdef/0000000000000001.point")" = mine ] || fail "a file that is not ours was removed"
[ "$(stat -c %a "$work/mine")" = 755 ] || fail "the mode of a folder that is not ours was changed"
refuses "$chimere" cache

# Options of single models in YAML: they hold for theirs alone, and mistakes have a place and a nearest name.
mkdir "$work/shelf"
cp "$model" "$work/shelf/one.gguf"
cp "$model" "$work/shelf/two.gguf"
printf 'model-options:\n  one:\n    ctx: 96\n    max-tokens: 3\n' >"$work/shelf/chimere.yaml"
printf 'ctx: 128\n' >"$work/server.yaml"
start_server "$chimere" serve --models "$work/shelf" --config "$work/server.yaml"
# Before anything is loaded there is a status, also for those who watch from a terminal or send a report.
expect '"state": "unloaded"' "$chimere" report "$nano" --no-bench --server "$url"
if "$chimere" report "$nano" --no-bench --server "$url" | grep -F -e "$work" -e '"two"'; then fail "report tells names of files"; fi
expect "no model is loaded; chimere" "$chimere" top --url "$url" --once
body='{"prompt":"Hello","temperature":0,"ignore_eos":true,"model":'
expect '"completion_tokens":3' curl -s "$url/v1/completions" -d "$body\"one\"}"
expect '"completion_tokens":9' curl -s "$url/v1/completions" -d "$body\"two\",\"max_tokens\":9}"
expect '"context_length":96' curl -s "$url/v1/status?model=one"
expect '"context_length":128' curl -s "$url/v1/status?model=two"
stop_server
# Keys of a file, the limits and the logs that options ask for.
echo secret | "$chimere" keys ann --stdin >"$work/keys"
grep -qxF "ann:$(printf secret | sha256sum | cut -d ' ' -f 1)" "$work/keys" || fail "keys wrote: $(cat "$work/keys")"
refuses "$chimere" keys 'two words'
echo secret | "$chimere" keys bob --stdin --tokens-per-day 500 --admin >"$work/bob"
grep -qE "^bob:[0-9a-f]{64}:tokens-per-day=500:admin$" "$work/bob" || fail "keys wrote: $(cat "$work/bob")"
expect "bob                      admin             500" "$chimere" keys --list "$work/bob"
expect "expected NAME" "$chimere" keys
echo "broken" >"$work/broken"
expect "broken:1" "$chimere" serve "$model" --api-keys-file "$work/broken"
expect "TLS" "$chimere" serve "$model" --tls-cert "$work/keys" --tls-key "$work/keys"
expect "API key" "$chimere" serve "$model" --host 0.0.0.0
expect "expected no --host" "$chimere" serve "$model" --lan --host 0.0.0.0
expect "expected --lan" "$chimere" serve "$model" --forget-browsers
start_server "$chimere" serve "$model" --api-keys-file "$work/keys" --log-format json --rate-limit 1
expect "invalid_api_key" curl -s "$url/v1/models"
expect '"object"' curl -s "$url/v1/models" -H "Authorization: Bearer secret"
expect "rate_limit_exceeded" curl -s "$url/v1/models" -H "x-api-key: secret"
expect "chimere_requests_running" curl -s "$url/metrics" -H "x-api-key: secret"
stop_server
grep -q '"client":"ann"' "$work/serve.log" || fail "the log does not name the client: $(cat "$work/serve.log")"
if grep -q secret "$work/serve.log"; then fail "the log has a key"; fi

# The model in the box over HTTP: a fact with its thought apart, and a tool call.
start_server "$work/clone/build/release/chimere" serve
url=$url/v1/chat/completions
body='{"messages":[{"role":"user","content":"What is the capital of Japan?"}],"temperature":0}'
expect '"content":"The capital of Japan is Tokyo."' curl -s "$url" -d "$body"
expect '"reasoning_content"' curl -s "$url" -d "$body"
body='{"messages":[{"role":"user","content":"What is 48 + 27?"}],"temperature":0,"thinking_budget":2}'
expect '"reasoning_content":"48"' curl -s "$url" -d "$body"
expect '"content":"48 + 27 = 75."' curl -s "$url" -d "$body"
# With thinking off no thought can begin or end, however much the model would like to.
close=$(echo '"</think>"' | "$work/clone/build/release/chimere" tokenize | tr -d '[] \n')
body='{"messages":[{"role":"user","content":"Hello!"}],"max_tokens":8,"enable_thinking":false,"logit_bias":{"'$close'":100}}'
answer=$(curl -s "$url" -d "$body")
grep -qF '"finish_reason"' <<<"$answer" || fail "a biased request gave: $answer"
if grep -qF 'think>' <<<"$answer"; then fail "thinking is off and the answer is: $answer"; fi
tool='{"type":"function","function":{"name":"get_weather","description":"Get the weather of a city.","parameters":{"type":"object","properties":{"city":{"type":"string","description":"The city"}},"required":["city"]}}}'
body='{"messages":[{"role":"user","content":"What is the weather in Paris?"}],"temperature":0,"tools":['$tool']}'
expect '"name":"get_weather"' curl -s "$url" -d "$body"
expect '{\"city\": \"Paris\"}' curl -s "$url" -d "$body"
stop_server
# Engram: a table is made, asked, taught and made to forget; the server knows it by name and says which ones there are.
tables=$work/tables  # which `engram build` makes
echo "As every child in school is told, the capital of Zubrovia is Lutzhaven." >"$work/fact.txt"
expect "1 sources" "$chimere" engram build "$tables/facts.engram" --model "$model" --text "$work/fact.txt" --source fact
expect "never ages" "$chimere" engram stats "$tables/facts.engram" --model "$model"
expect "after the last 8 tokens, seen 1 times" "$chimere" engram query "$tables/facts.engram" "the capital of Zubrovia is" --model "$model"
expect "nothing was learned" "$chimere" engram add "$tables" --user ann --model "$model" --text "$work/fact.txt" --score 1
for n in 1 2 3; do
  "$chimere" engram add "$tables" --user ann --model "$model" --text "$work/fact.txt" --source "answer-$n" >/dev/null
done
expect '"age_days":0' "$chimere" engram stats "$tables" --user ann --model "$model" --json
"$chimere" engram merge "$tables/both.engram" "$tables/facts.engram" "$tables/facts.engram" --model "$model"
expect "seen 2 times" "$chimere" engram query "$tables/both.engram" "the capital of Zubrovia is" --model "$model"
expect "another vocabulary" "$chimere" engram stats "$tables/facts.engram" --model "$nano"
plain=$("$chimere" perplexity --model "$model" --text "$2/cli/commands.sh" --ctx 128 --json)
same=$("$chimere" perplexity --model "$model" --text "$2/cli/commands.sh" --ctx 128 --json --engram "$tables/facts.engram" --engram-alpha 0)
[ "$plain" = "$same" ] || fail "a table with alpha 0 changed the perplexity from $plain to $same"
head -c 500 "$tables/facts.engram" >"$tables/cut.engram"
start_server "$chimere" serve "$model" --engram "$tables"
grep -qF "cut.engram" "$work/serve.log" || fail "a damaged table was not reported: $(cat "$work/serve.log")"
ask() { curl -s "$url/v1/completions" -d '{"prompt":"As every child in school is told, the capital of Zubrovia is","temperature":0,"max_tokens":4'"$1"'}' | grep -o '"text":"[^"]*"'; }
plain=$(ask '')
[ "$(ask ',"user":"ann"')" != "$plain" ] || fail "what ann taught changed nothing: $plain"
[ "$(ask ',"user":"bob"')" = "$plain" ] || fail "what ann taught changed the answer to bob"
[ "$(ask ',"user":"ann","engram":{"alpha":0}')" = "$plain" ] || fail "alpha 0 is not off"
[ "$(ask ',"engram":{"tables":[{"name":"facts","weight":0}]}')" = "$plain" ] || fail "weight 0 is not off"
expect "there is both, cut, facts" curl -s "$url/v1/completions" -d '{"prompt":"x","engram":{"tables":["none"]}}'
for n in 1 2 3; do "$chimere" engram forget "$tables" --user ann --model "$model" --source "answer-$n" >/dev/null; done
[ "$(ask ',"user":"ann"')" = "$plain" ] || fail "what ann made the table forget is still there"
# Notes: the server learns one, the command lists and forgets it, and nobody else may read the file.
curl -s "$url/v1/engram/accept" -d '{"user":"eve","text":"The Brindle bridge was built in 1874."}' >/dev/null
expect "The Brindle bridge" "$chimere" engram notes list "$tables" --user eve
[ "$(stat -c %a "$tables/users/eve.notes")" = 600 ] || fail "others may read notes: $(stat -c %a "$tables/users/eve.notes")"
[ "$(stat -c %a "$tables/users/ann.engram")" = 600 ] || fail "others may read a user's table"
[ "$(stat -c %a "$tables/users")" = 700 ] || fail "others may look into the folder of users"
expect "note 2 of eve" "$chimere" engram notes add "$tables" --user eve --text "$work/fact.txt" --source file
expect "expected one of" "$chimere" engram notes forget "$tables" --user eve
expect "no such notes" "$chimere" engram notes forget "$tables" --user eve --source nothing
expect "removed 1 notes" "$chimere" engram notes forget "$tables" --user eve --note 1
expect "Lutzhaven" curl -s "$url/v1/engram/notes?user=eve"
expect "removed 1 notes" "$chimere" engram notes forget "$tables" --user eve --all
expect "eve has no notes" "$chimere" engram notes list "$tables" --user eve
stop_server
# Options from a file: they hold, the command line wins over them, and a word that is no option is said.
printf 'engram: "%s"\napi-key: from-the-file\nthinking-answer-tokens: 10\n' "$tables" >"$work/chimere.yaml"
start_server "$chimere" serve "$nano" --config "$work/chimere.yaml"
expect '"invalid_api_key"' curl -s "$url/v1/engram"
key="Authorization: Bearer from-the-file"
expect '"name":"code"' curl -s -H "$key" "$url/v1/engram"  # the tables that come with the program
body='"messages":[{"role":"user","content":"What is 48 + 27?"}],"temperature":0,"max_tokens":16'
thought() { curl -s -H "$key" "$url/v1/chat/completions" -d "{$body$1}" | grep -o '"reasoning_tokens":[0-9]*'; }
kept=$(thought '')
[ "$kept" = "$(thought ',"thinking_control":{"answer_tokens":10}')" ] || fail "the file's answer tokens do not hold: $kept"
[ "$kept" != "$(thought ',"thinking_control":{"answer_tokens":0}')" ] || fail "a request can not change the file's answer tokens"
stop_server
start_server "$chimere" serve "$model" --config "$work/chimere.yaml" --engram "$work/home"
expect '"tables":[]' curl -s -H "$key" "$url/v1/engram"
stop_server
printf 'no-such-option: 1\n' >"$work/wrong.yaml"
expect "no-such-option" timeout 60 "$chimere" serve "$model" --port 0 --config "$work/wrong.yaml"
expect "n-grams" "$chimere" engram stats code
# Passages: found by meaning, with the n-grams they share with the query, and forgotten.
printf 'The key of the shed hangs behind the door.\n\nThree fish swim in the pond.\n' >"$work/notes.txt"
encoder=$2/golden/models/bert-mean/model.gguf
expect "2 passages added, 2 in all" "$chimere" engram passages add "$work/n.passages" --model "$encoder" --text "$work/notes.txt" --source notes
expect '"source":"notes","text":"The key of the shed hangs behind the door."' "$chimere" engram passages query "$work/n.passages" \
  "The key of the shed hangs behind the door." -k 1 --json --model "$encoder"
expect '"ngrams":[{"tokens":[' "$chimere" engram passages query "$work/n.passages" "three fish swim in the river" -k 2 --json --model "$encoder"
expect "was made with another model" "$chimere" engram passages query "$work/n.passages" x --model "$model"
expect "notes: 2" "$chimere" engram passages stats "$work/n.passages"
cp "$work/n.passages" "$tables/notes.passages"
start_server "$chimere" serve "$model" --engram "$tables" --embedding-model "$encoder"
expect '"engram":{"passages":[{"source":"notes"' curl -s "$url/v1/completions" \
  -d '{"prompt":"The key of the shed hangs","max_tokens":4,"engram":{"passages":"notes","top":1}}'
expect "there is notes" curl -s "$url/v1/completions" -d '{"prompt":"x","engram":{"passages":"none"}}'
stop_server
expect "removed 2 passages" "$chimere" engram passages forget "$work/n.passages" --source notes
# Documents, by words alone and with the encoder in the box.
expect "1 added" "$chimere" index add "$work/notes.txt" --db "$work/words.db" --embed none
expect "there is no model for embeddings here" "$chimere" index search "fish" --db "$work/words.db" --embed none --mode vectors
expect "[words 1, vectors 0]" "$chimere" index search "three fish" --db "$work/words.db" --embed none
expect "1 added" "$chimere" index add "$work/notes.txt" --db "$work/both.db"
expect "Three fish" "$chimere" index search "three fish" --db "$work/both.db"
# The encoder in the box finds what was meant in other words; a file that was there before it gets its vectors when it is added again.
mkdir "$work/papers"
echo "High blood pressure is treated with tablets that widen the vessels." >"$work/papers/doctor.md"
echo "The king sent a messenger over the mountains to his brother." >"$work/papers/letter.md"
expect "2 added" "$chimere" index add "$work/papers" --db "$work/papers.db" --embed none
expect "2 unchanged" "$chimere" index add "$work/papers" --db "$work/papers.db"
expect "doctor.md" "$chimere" index search "hypertension medicine" --db "$work/papers.db" -k 1
expect "[words 0, vectors 1]" "$chimere" index search "hypertension medicine" --db "$work/papers.db" -k 1
echo "all commands answered"
