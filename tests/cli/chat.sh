#!/usr/bin/env bash
# A person at the terminal: `chimere chat` in tmux, keys in, the screen out.   usage: chat.sh CHIMERE TESTS_DIR
set -euo pipefail
chimere=$1
nano=$2/../assets/chimere-nano.gguf
work=$(mktemp -d)
talks=0
screen() { tmux -S "$work/tmux.$talks" "$@"; }
trap 'screen kill-server 2>/dev/null || true; rm -rf "$work"' EXIT

fail() { echo "FAILED: $*" >&2; shown >&2 || true; exit 1; }
shown() { screen capture-pane -p -t chat -S -; }
# see TEXT: waits until the screen shows it, whatever lines it is wrapped into.
see() {
  for _ in $(seq 600); do
    grep -qF -- "$1" <<<"$(shown | tr -s ' \n' ' ')" && return 0
    sleep 0.1
  done
  fail "the screen does not show: $1"
}
keys() { screen send-keys -t chat "$@"; }
# ask TEXT: types a line.
ask() { keys -l -- "$1"; keys Enter; }
# talk WIDTH OPTIONS...: a new conversation, on a socket of its own: a server told to end still takes clients for a while,
# and its end is then theirs.
talk() {
  local width=$1
  shift
  screen kill-server 2>/dev/null || true
  talks=$((talks + 1))
  printf '%q ' env CHIMERE_HOME="$work/home" "$chimere" chat "$nano" --temp 0 "$@" >"$work/command"
  echo '; echo "exit code $?"; sleep 600' >>"$work/command"
  screen -f /dev/null new-session -d -s chat -x "$width" -y 40 "bash $work/command"
  see "Ctrl-D leaves"
  see ">"
}

talk 60
ask "What is 48 + 27?"
see "48 + 27 = 75."
see "tok/s"
# A paste of three lines is one question, and Ctrl-C drops it.
screen set-buffer "$(printf 'What is\n48 + 27\n?')"
screen paste-buffer -p -t chat
for _ in $(seq 600); do
  [[ "$(shown)" == *$'> What is\n48 + 27\n?'* ]] && break
  sleep 0.1
done
[[ "$(shown)" == *$'> What is\n48 + 27\n?'* ]] || fail "the paste is not one text"
keys C-c
see "Ctrl-D leaves."
# Up brings a question back.
keys Up Enter
see "48 + 27 = 75."
ask "/sytem Be brief."
see "did you mean /system?"
ask "/system Be brief."
see "The system prompt is set"
ask "/set temprature 1"
see "did you mean temperature?"
ask "/stats"
see "all answers 2,"
ask "/save $work/talk.json"
see "Saved to"
grep -q '"Be brief."' "$work/talk.json" || fail "the saved conversation is: $(cat "$work/talk.json")"
ask "/clear"
see "The conversation is forgotten"
ask "/load $work/talk.json"
see "Loaded 4 messages"
ask "/think 200"
see "The model thinks first, at most 200 tokens; thoughts are shown."
ask "/think of"
see "expected on, off, auto, show, hide or a number of tokens, found 'of'"
# Without a thought, the same question once more: it stands there once more, with its answer and no thought.
ask "/think off"
see "The model answers without thinking"
times() { shown | tr -s ' \n' ' ' | grep -oF -- "$1" | wc -l; }
answers=$(times "48 + 27 = 75.")
ask "/regen"
for _ in $(seq 600); do
  [ "$(times "48 + 27 = 75.")" -gt "$answers" ] && break
  sleep 0.1
done
[ "$(times "48 + 27 = 75.")" -gt "$answers" ] || fail "/regen brought no second answer"
ask "/model"
see "chimere-nano, 2"
ask "/model $work/none.gguf"
see "none.gguf: "
cp "$nano" "$work/other.gguf"
ask "/model $work/other.gguf"
see "The conversation goes on with it."
ask "/stats"
see "all answers"
ask "/help think"
see "For example: /think 200"
# The last question can be changed.
ask "/edit"
see "> What is 48 + 27?"
keys C-c
ask "/quit"
see "exit code 0"
[ "$(stat -c %a "$work/home/chat-history")" = 600 ] || fail "others can read the history"

# What was typed is there in the next run; Ctrl-C stops an answer and not the program; Ctrl-D leaves.
talk 60 --backend reference --no-think
keys Up
see "> /quit"
keys Up Up
see "> /help think"
keys C-c
ask "Tell me a long story."
answer() { shown | sed '1,/> Tell me a long story/d' | tr -d ' \n'; }
for _ in $(seq 600); do
  [ -z "$(answer)" ] || break
  sleep 0.1
done
keys C-c
see "stopped]"
keys C-d
see "exit code 0"

# Tables take part by their names. Thoughts and notes are dim on a terminal, but not where NO_COLOR is set.
printf 'The lighthouse of Velmora was painted green.\n' >"$work/facts.txt"
"$chimere" engram build "$work/tables/facts.engram" --model "$nano" --text "$work/facts.txt" >/dev/null 2>&1
for plain in "" 1; do
  export NO_COLOR=$plain
  talk 80 --engram "$work/tables"
  ask "/engram"
  see "facts"
  ask "/engram fact"
  see "there is no fact; did you mean facts?"
  ask "/engram facts"
  see "These take part from the next answer on: facts."
  ask "/engram"
  see "facts *"
  ask "/engram off"
  see "No memory takes part."
  coloured=$(screen capture-pane -e -p -t chat -S - | grep -c $'\e\[' || true)
  if [ -z "$plain" ]; then
    [ "$coloured" -gt 0 ] || fail "nothing has a colour on a terminal"
  else
    [ "$coloured" = 0 ] || fail "NO_COLOR is set, and $coloured lines have colours"
  fi
  keys C-d
  see "exit code 0"
done
unset NO_COLOR

# Words are not cut at the edge of a narrow screen: it shows no word that a wide one does not.
for width in 120 24; do
  talk $width
  ask "/help"
  see "Sum this"
  shown | tr -s ' \n' '\n\n' | sort -u >"$work/words.$width"
  keys C-d
  see "exit code 0"
done
cut=$(comm -13 "$work/words.120" "$work/words.24")
[ -z "$cut" ] || fail "a narrow screen has parts of words: $cut"
echo "the conversation went well"
