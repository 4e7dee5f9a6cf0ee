#!/usr/bin/env bash
# Two replicas of the real program with one journal in PostgreSQL: what one hears binds the other, the one that leads is
# killed in the middle of a job and the other goes on, the database goes away and comes back, and nobody is shown its
# password.   usage: replicas.sh CHIMERE TESTS_DIR
set -euo pipefail
chimere=$1
pg_bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
[ -x "$pg_bin/initdb" ] || { echo "skipped: PostgreSQL's server is not installed (apt install postgresql)"; exit 77; }
work=$(mktemp -d)
chmod 711 "$work"
pids=()
stop_database() { [ ! -e "$work/pg/data/postmaster.pid" ] || { kill -INT "$(head -n 1 "$work/pg/data/postmaster.pid")"; wait "$database" || true; }; }
trap 'for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null || true; done; stop_database; rm -rf "$work"' EXIT

fail() { echo "FAILED: $*" >&2; tail -n 5 "$work"/*/serve.log >&2 || true; exit 1; }
until_true() {  # what, command: the machine may be slow, so it may take long
  local what=$1
  shift
  for _ in $(seq 1200); do
    if "$@"; then return 0; fi
    sleep 0.1
  done
  fail "it took too long: $what"
}

# It refuses to be root.
as_server=()
[ "$(id -u)" -ne 0 ] || as_server=(setpriv --reuid postgres --regid postgres --clear-groups)
mkdir -m 777 "$work/pg"
start_database() {
  (cd "$work/pg" && exec "${as_server[@]}" "$pg_bin/postgres" -D data -k "$work/pg" -c listen_addresses= -c fsync=off) >>"$work/pg.log" 2>&1 &
  database=$!
  until_true "the database" "$pg_bin/pg_isready" -q -h "$work/pg" -U chimere -d postgres
}
(cd "$work/pg" && "${as_server[@]}" "$pg_bin/initdb" -D data -U chimere -A trust -E UTF8 --locale=C --no-sync) >"$work/initdb.log" || fail "initdb: $(cat "$work/initdb.log")"
start_database
sql() { "$pg_bin/psql" -qAtX -h "$work/pg" -U chimere -d postgres -c "$1"; }
export CHIMERE_JOURNAL="postgresql://chimere:s3cret@/postgres?host=$work/pg"

# A password is neither shown nor taken where others see it.
if "$chimere" improve journal --journal "$CHIMERE_JOURNAL" >"$work/out" 2>&1; then fail "a password on the command line was taken"; fi
grep -q "could read in \`ps\`" "$work/out" || fail "$(cat "$work/out")"
if "$chimere" config show --journal "$CHIMERE_JOURNAL" >"$work/out" 2>&1; then fail "a password on the command line was taken by serve"; fi
"$chimere" config show --config none >"$work/out"
grep -qF 'postgresql://chimere:********@/postgres?host=' "$work/out" || fail "$(grep journal: "$work/out")"

start_replica() {  # name: sets url_NAME and pid_NAME
  mkdir -p "$work/$1"
  CHIMERE_HOME=$work/$1 "$chimere" serve --config none --port 0 --threads 1 --no-odo --learn on --improve-dir "$work/improve" --improve-idle 0 \
    --improve-at={closing,words,examples,lora,engram,prompts}=off >"$work/$1/serve.log" 2>&1 &
  eval "pid_$1=$!"
  pids+=($!)
}
address_of() { sed -n 's/.* is ready on \([^ ;]*\).*/\1/p' "$work/$1/serve.log"; }
is_ready() { [ -n "$(address_of "$1")" ]; }
start_replica a
start_replica b
until_true "replica a" is_ready a
until_true "replica b" is_ready b
url_a=$(address_of a) url_b=$(address_of b)
ask() {  # address user text
  curl -sSf "$1/v1/chat/completions" -H 'Content-Type: application/json' \
    -d "{\"messages\":[{\"role\":\"user\",\"content\":\"$3\"}],\"max_tokens\":4,\"temperature\":0,\"user\":\"$2\"}" >/dev/null
}
# A whole answer first: with `pipefail` a `grep -q` that has seen enough would fail the `curl` that still writes.
has_metric() {  # address line
  curl -sSf "$1/metrics" >"$work/metrics" && grep -qx "$2" "$work/metrics"
}
tell() {  # address path method body
  curl -sS -o "$work/told" -w '%{http_code}' -X "$3" "$1$2" -H 'Content-Type: application/json' -d "$4"
}
has_answers() { [ "$(sql "SELECT count(*) FROM chimere_answers")" = "$1" ]; }

for user in ann bob cleo dan; do
  ask "$url_a" $user "What is 2 + 2?"
  ask "$url_b" $user "Say hello to $user."
done
until_true "eight answers" has_answers 8
[ "$("$chimere" improve journal | grep -c ' 2 ')" = 4 ] || fail "$("$chimere" improve journal)"
[ "$("$chimere" improve export --owner ann | wc -l)" = 2 ] || fail "the export of what both replicas wrote"

# Who refuses at one replica has refused at the other, at once.
[ "$(tell "$url_a" /v1/learning PUT '{"agreed": false, "user": "eve"}')" = 200 ] || fail "$(cat "$work/told")"
ask "$url_b" eve "What is 3 + 3?"
ask "$url_b" dan "What is 4 + 4?"
until_true "nine answers" has_answers 9
[ "$(sql "SELECT count(*) FROM chimere_answers WHERE owner='eve'")" = 0 ] || fail "an answer of who refused was kept"
# What a person says at one replica of an answer of the other.
id=$(sql "SELECT request_id FROM chimere_answers WHERE owner='ann' ORDER BY id LIMIT 1")
[ "$(tell "$url_b" /v1/feedback POST "{\"request_id\": \"$id\", \"rating\": 4, \"user\": \"ann\"}")" = 200 ] || fail "$(cat "$work/told")"

# All owners are due. The replica that leads is killed as soon as it has a job; the other one does them.
child_of() { pgrep -P "$1" -f 'improve run' >/dev/null; }
clock_is_set() { [ "$(sql "SELECT count(*) FROM chimere_clock WHERE kind='scores'")" = 1 ]; }
until_true "the clock" clock_is_set
sql "UPDATE chimere_clock SET at=0 WHERE kind='scores'"
somebody_works() { child_of "$pid_a" || child_of "$pid_b"; }
until_true "a job" somebody_works
for pid in $(pgrep -f 'improve run'); do
  if grep -qa s3cret "/proc/$pid/cmdline" 2>/dev/null; then fail "ps shows the password"; fi
done
leader=a other=b
child_of "$pid_a" || leader=b other=a
leader_pid=pid_$leader other_pid=pid_$other other_url=url_$other
kill -9 "${!leader_pid}"
wait "${!leader_pid}" 2>/dev/null || true
[ "$(sql "SELECT count(*) FROM chimere_jobs")" -gt 0 ] || fail "nothing was left to be done when the leader was killed"
all_done() { [ "$(sql "SELECT count(*) FROM chimere_jobs")" = 0 ]; }
until_true "the other replica's jobs" all_done
[ "$(sql "SELECT count(*) FROM chimere_answers AS a WHERE NOT EXISTS (SELECT FROM chimere_scores WHERE answer=a.id) AND NOT EXISTS (SELECT FROM chimere_feedback WHERE answer=a.id)")" = 0 ] || fail "answers are without a score: $(sql "SELECT * FROM chimere_scores")"
[ "$(sql "SELECT count(DISTINCT answer) = count(*) FROM chimere_scores")" = t ] || fail "an answer has two scores"
has_metric "${!other_url}" 'chimere_improve_jobs_total{result="ended"} [1-9][0-9]*' || fail "the other replica did none of them"
[ "$(sql "SELECT rating FROM chimere_feedback")" = 4 ] || fail "what a person said is gone"

# Without its database it serves, and keeps what it can.
stop_database
ask "${!other_url}" ann "What is 5 + 5?"
ask "${!other_url}" bob "What is 6 + 6?"
two_wait() { has_metric "${!other_url}" 'chimere_journal_waiting 2'; }
until_true "two answers that wait" two_wait
[ "$(tell "${!other_url}" /v1/feedback POST "{\"request_id\": \"$id\", \"rating\": 5, \"user\": \"ann\"}")" = 503 ] || fail "$(cat "$work/told")"
start_database
until_true "eleven answers" has_answers 11
none_waits() { has_metric "${!other_url}" 'chimere_journal_waiting 0'; }
until_true "none that waits" none_waits
has_metric "${!other_url}" 'chimere_journal_answers_total{result="failed"} 0' || fail "answers were lost"

# It ends cleanly, and no log has the password.
kill -TERM "${!other_pid}"
wait "${!other_pid}" || fail "the server did not end cleanly"
pids=()
if grep -rq s3cret "$work"/a/serve.log "$work"/b/serve.log "$work/improve"; then fail "the password is in a log"; fi
echo "Two replicas shared a journal; leader $leader was killed, $other went on."
