#!/usr/bin/env bash
# The files of deploy/: what can be said of them without a cluster.   usage: files.sh CHIMERE ROOT PART
# Parts are unit, cluster, monitoring and balancer. What needs no other program is checked first; where one is missing, a
# part that would need it ends as skipped (77), which ctest shows.
set -euo pipefail
unset CHIMERE_SHARED  # a variable of the tests, which the program would name as unknown
chimere=$1
part=$3
PATH=$2/build/tools:$PATH:/usr/sbin  # scripts/setup.sh puts promtool there
cd "$2/deploy"
work=$(mktemp -d)
trap '[ -z "${server:-}" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
needs() { command -v "$1" >/dev/null || { echo "SKIPPED: $2 not checked, as there is no $1"; exit 77; }; }

# The unit names a command line that the program takes, and its hardening is rated OK.
check_unit() {
  local exec_line setting
  exec_line=$(sed -n 's/^ExecStart=\/usr\/bin\/chimere //p' systemd/chimere.service)
  [ -n "$exec_line" ] || fail "the unit starts nothing"
  # shellcheck disable=SC2086
  "$chimere" ${exec_line/--config \/etc\/chimere\/chimere.yaml/--config none} --help >/dev/null || fail "the unit's command line: $exec_line"
  for setting in $(sed -n 's/^Environment=//p' systemd/chimere.service); do
    env "$setting" "$chimere" config show --config none 2>"$work/err" >/dev/null || fail "$setting: $(cat "$work/err")"
    [ ! -s "$work/err" ] || fail "$setting: $(cat "$work/err")"
  done
  needs systemd-analyze "the unit's hardening is"
  systemd-analyze security --offline=true --threshold=40 systemd/chimere.service >"$work/security" ||
    fail "the hardening of the unit: $(tail -n 2 "$work/security")"
  tail -n 1 "$work/security"
}

# Options of the cluster's configuration are options, manifests keep their policies, and overlays are built.
check_cluster() {
  local overlay
  sed 's#^api-keys-file:.*#api-key: x#' kubernetes/base/chimere.yaml >"$work/chimere.yaml"
  chmod 600 "$work/chimere.yaml"
  "$chimere" config check --config "$work/chimere.yaml" || fail "kubernetes/base/chimere.yaml"
  /usr/bin/python3 "$2/tests/deploy/manifests.py" "$PWD/kubernetes" || fail "the manifests"
  needs kubectl "what kustomize makes of overlays is"
  kubectl version --client 2>/dev/null | grep -qE 'Kustomize Version: v([5-9]|[1-9][0-9])' ||
    { echo "SKIPPED: overlays are not built, as this kubectl is older than 1.27"; exit 77; }
  for overlay in base overlays/cpu overlays/nvidia overlays/ha overlays/gateway; do
    kubectl kustomize "kubernetes/$overlay" >"$work/$(basename "$overlay").yaml" 2>"$work/err" || fail "$overlay: $(cat "$work/err")"
    [ ! -s "$work/err" ] || fail "$overlay: $(cat "$work/err")"
    /usr/bin/python3 "$2/tests/deploy/manifests.py" --built "$work/$(basename "$overlay").yaml" || fail "$overlay"
  done
}

# Every metric that the dashboard and the alerts ask for is one that a server exports; the alerts fire when they should.
check_monitoring() {
  local metric
  export CHIMERE_HOME=$work/home
  . "$2/tests/cli/server.sh"
  start_server "$chimere" serve --config none --no-odo --no-page
  curl -s "$url/metrics" | sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' >"$work/metrics"
  stop_server
  for metric in $(grep -rhoE '(chimere|process)_[a-z_]+' monitoring kubernetes/overlays | sed -E 's/_(bucket|sum|count|mean)$//' | sort -u); do
    grep -qx "$metric" "$work/metrics" || fail "monitoring asks for $metric, which no server exports"
  done
  needs promtool "alert rules are"
  (cd monitoring && promtool check rules alerts.yaml && promtool test rules alerts-test.yaml && promtool check config prometheus.yaml) \
    >"$work/rules" 2>&1 || fail "$(cat "$work/rules")"
}

# The configuration, for ports of this machine and for the cluster; where it sends whom; and that a stream which waits
# outlives its replica.
check_balancer() {
  needs haproxy "its configuration is"
  haproxy -c -f haproxy/haproxy.cfg >"$work/haproxy" 2>&1 || fail "$(cat "$work/haproxy")"
  CHIMERE_REPLICAS=replicas.test haproxy -c -f haproxy/haproxy.cfg >"$work/haproxy" 2>&1 || fail "$(cat "$work/haproxy")"
  /usr/bin/python3 "$2/tests/deploy/balancer.py" || fail "the balancer"
  /usr/bin/python3 "$2/tests/deploy/waiting.py" "$chimere" "$2/assets/chimere-nano.gguf" || fail "a stream that waits"
}

"check_$part" "$@"
echo "deployment, $part: all as expected"
