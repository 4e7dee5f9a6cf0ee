#!/usr/bin/env bash
# The files of deploy/: what can be said of them without a cluster. Each check runs where its program is, and says so
# where it is not.   usage: files.sh CHIMERE ROOT
set -euo pipefail
unset CHIMERE_SHARED  # a variable of the tests, which the program would name as unknown
chimere=$1
cd "$2/deploy"
work=$(mktemp -d)
trap '[ -z "${server:-}" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
has() { command -v "$1" >/dev/null || { echo "$1 is not there: $2 not checked"; return 1; }; }

# The unit names a command line that the program takes, and its hardening is rated OK.
exec_line=$(sed -n 's/^ExecStart=\/usr\/bin\/chimere //p' systemd/chimere.service)
[ -n "$exec_line" ] || fail "the unit starts nothing"
# shellcheck disable=SC2086
"$chimere" ${exec_line/--config \/etc\/chimere\/chimere.yaml/--config none} --help >/dev/null || fail "the unit's command line: $exec_line"
for setting in $(sed -n 's/^Environment=//p' systemd/chimere.service); do
  env "$setting" "$chimere" config show --config none 2>"$work/err" >/dev/null || fail "$setting: $(cat "$work/err")"
  [ ! -s "$work/err" ] || fail "$setting: $(cat "$work/err")"
done
if has systemd-analyze "the unit's hardening is"; then
  systemd-analyze security --offline=true --threshold=40 systemd/chimere.service >"$work/security" ||
    fail "the hardening of the unit: $(tail -n 2 "$work/security")"
  tail -n 1 "$work/security"
fi

# Options of the cluster's configuration are options, and probes ask for what is there.
sed 's#^api-keys-file:.*#api-key: x#' kubernetes/base/chimere.yaml >"$work/chimere.yaml"
chmod 600 "$work/chimere.yaml"
"$chimere" config check --config "$work/chimere.yaml" || fail "kubernetes/base/chimere.yaml"
/usr/bin/python3 "$2/tests/deploy/manifests.py" "$PWD/kubernetes" || fail "the manifests"
if has kubectl "overlays are" && kubectl kustomize --help 2>/dev/null | grep -q kustomize; then
  for overlay in base overlays/cpu overlays/nvidia overlays/ha; do
    kubectl kustomize "kubernetes/$overlay" >"$work/$(basename "$overlay").yaml" 2>"$work/err" || fail "$overlay: $(cat "$work/err")"
    /usr/bin/python3 "$2/tests/deploy/manifests.py" --built "$work/$(basename "$overlay").yaml" || fail "$overlay"
  done
fi

# Every metric that the dashboard and the alerts ask for is one that a server exports.
if has promtool "alert rules are"; then
  (cd monitoring && promtool check rules alerts.yaml && promtool test rules alerts-test.yaml && promtool check config prometheus.yaml) \
    >"$work/rules" 2>&1 || fail "$(cat "$work/rules")"
fi
export CHIMERE_HOME=$work/home
. "$2/tests/cli/server.sh"
start_server "$chimere" serve --config none --no-odo --no-page
curl -s "$url/metrics" | sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' >"$work/metrics"
stop_server
for metric in $(grep -rhoE '(chimere|process)_[a-z_]+' monitoring kubernetes/overlays | sed -E 's/_(bucket|sum|count|mean)$//' | sort -u); do
  grep -qx "$metric" "$work/metrics" || fail "monitoring asks for $metric, which no server exports"
done

if has haproxy "its configuration is"; then
  haproxy -c -f haproxy/haproxy.cfg >"$work/haproxy" 2>&1 || fail "$(cat "$work/haproxy")"
fi
echo "deployment: all as expected"
