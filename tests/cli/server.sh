# server.sh  A server for the scripts beside it, sourced by them. They have $work, a folder of their own, and fail().
server=

# start_server COMMAND...: runs it on a free port, waits until it says where it is, and sets `url`.
start_server() {
  : >"$work/serve.log"  # it is read before the new process opens it
  "$@" --port 0 >>"$work/serve.log" 2>&1 &
  server=$!
  for _ in $(seq 600); do
    url=$(sed -n 's/.* \(is\|are\) ready on \([^ ;]*\).*/\2/p' "$work/serve.log")
    [ -z "$url" ] || return 0
    kill -0 "$server" 2>/dev/null || fail "the server ended: $(tail -n 5 "$work/serve.log")"
    sleep 0.1
  done
  fail "the server did not come up: $(tail -n 5 "$work/serve.log")"
}

stop_server() {
  kill -TERM "$server"
  wait "$server" || fail "the server did not end cleanly: $(tail -n 5 "$work/serve.log")"
  server=
}
