#!/usr/bin/env python3
"""Policies that the manifests keep, and references between them that must hold.

    manifests.py FOLDER           the files of kubernetes/, each by itself
    manifests.py --built FILE     what kustomize made of an overlay, as a whole
"""
import pathlib
import re
import sys

import yaml

KINDS = {"Namespace": "v1", "ServiceAccount": "v1", "StatefulSet": "apps/v1", "Service": "v1", "ConfigMap": "v1",
         "PodDisruptionBudget": "policy/v1", "NetworkPolicy": "networking.k8s.io/v1", "PersistentVolumeClaim": "v1",
         "Deployment": "apps/v1", "HorizontalPodAutoscaler": "autoscaling/v2",
         "HTTPRoute": "gateway.networking.k8s.io/v1", "ServiceMonitor": "monitoring.coreos.com/v1",
         "Kustomization": "kustomize.config.k8s.io/v1beta1"}


PROBES = {"chimere": {"startupProbe": "/livez", "readinessProbe": "/readyz", "livenessProbe": "/livez"},
          "haproxy": {"startupProbe": "/balancer", "readinessProbe": "/balancer", "livenessProbe": "/balancer"}}


def pod_problems(spec):
    """What an admission policy of kind `restricted` would refuse, and what we promise beside it."""
    if spec.get("enableServiceLinks") is not False:
        yield "enableServiceLinks: the variables of services would be options of the server"
    if spec.get("automountServiceAccountToken") is not False:
        yield "the pod gets a token of the cluster"
    context = spec.get("securityContext", {})
    if not context.get("runAsNonRoot") or context.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        yield "the pod may run as root, or without seccomp"
    volumes = {v["name"] for v in spec.get("volumes", [])}
    for container in spec["containers"]:
        own = container.get("securityContext", {})
        if own.get("allowPrivilegeEscalation") is not False or not own.get("readOnlyRootFilesystem"):
            yield f"{container['name']}: privileges or a root that can be written"
        if own.get("capabilities", {}).get("drop") != ["ALL"]:
            yield f"{container['name']}: keeps capabilities"
        for probe, path in PROBES[container["name"]].items():
            if container.get(probe, {}).get("httpGet", {}).get("path") != path:
                yield f"{container['name']}: no {probe} of {path}"
        if "memory" not in container.get("resources", {}).get("limits", {}):
            yield f"{container['name']}: no limit of memory"
        for mount in container.get("volumeMounts", []):
            if mount["name"] not in volumes | {"data"}:
                yield f"{container['name']}: mounts {mount['name']}, which is no volume"


def problems(documents):
    for document in documents:
        kind, name = document.get("kind"), document.get("metadata", {}).get("name", "")
        if KINDS.get(kind) != document.get("apiVersion"):
            yield f"{kind} {name}: apiVersion {document.get('apiVersion')}, expected {KINDS.get(kind)}"
        if kind in ("StatefulSet", "Deployment"):
            pod = document["spec"]["template"]["spec"]
            yield from pod_problems(pod)
            drain = 60  # of base/chimere.yaml, checked below
            if pod["terminationGracePeriodSeconds"] < drain + 10:
                yield "a pod is killed before its answers have ended"


def whole_problems(documents):
    by_kind = {}
    for document in documents:
        by_kind.setdefault(document["kind"], []).append(document)
    replicas = by_kind["StatefulSet"][0]
    workloads = [replicas, *by_kind.get("Deployment", [])]
    labels = [w["spec"]["template"]["metadata"]["labels"] for w in workloads]
    selectors = [s["spec"]["selector"] for s in by_kind["Service"]]
    selectors += [s["spec"]["selector"]["matchLabels"] for s in by_kind["PodDisruptionBudget"]]
    selectors += [s["spec"]["podSelector"]["matchLabels"] for s in by_kind["NetworkPolicy"]]
    for selector in selectors:
        found = [pods for pods in labels if selector.items() <= pods.items()]
        if not selector or len(found) != 1:
            yield f"the selector {selector} finds pods of {len(found)} workloads"
    services = {s["metadata"]["name"]: s for s in by_kind["Service"]}
    if replicas["spec"]["serviceName"] not in services:
        yield "the set's service is not there"
    for monitor in by_kind.get("ServiceMonitor", []):
        chosen = monitor["spec"]["selector"]["matchLabels"]
        if [n for n, s in services.items() if chosen.items() <= s["metadata"]["labels"].items()] != ["chimere-replicas"]:
            yield f"the monitor's selector {chosen} finds other services than chimere-replicas: pods count twice, or not at all"
    configs = {c["metadata"]["name"]: c["data"] for c in by_kind["ConfigMap"]}
    for workload in workloads:
        for volume in workload["spec"]["template"]["spec"]["volumes"]:
            if "configMap" in volume and volume["configMap"]["name"] not in configs:
                yield f"{workload['metadata']['name']} mounts {volume['configMap']['name']}, which is not there"
    options = yaml.safe_load(next(data["chimere.yaml"] for data in configs.values() if "chimere.yaml" in data))
    if options["drain"] != 60:
        yield "drain has changed: the grace period of the pods must follow"
    if not options.get("dump-on-stall"):
        yield "dump-on-stall is not set: an engine that makes no step would be alive"
    for balancer in by_kind.get("Deployment", []):
        yield from balancer_problems(balancer, by_kind, services, configs)


def balancer_problems(balancer, by_kind, services, configs):
    """Its configuration names as many replicas as there may be, at addresses that the cluster gives them."""
    text = next(data["haproxy.cfg"] for data in configs.values() if "haproxy.cfg" in data)
    replicas = by_kind["StatefulSet"][0]["metadata"]["name"]
    addresses = re.findall(r'server (\S+) "(\S+)\.\$\{CHIMERE_REPLICAS\}:8081"', text)
    expected = [(f"{replicas}-{i}", f"{replicas}-{i}") for i in range(by_kind["HorizontalPodAutoscaler"][0]["spec"]["maxReplicas"])]
    if addresses != expected:
        yield f"haproxy.cfg knows the replicas {addresses}, expected {expected}"
    pod = balancer["spec"]["template"]
    env = {e["name"]: e.get("value", "") for e in pod["spec"]["containers"][0]["env"]}
    named = env.get("CHIMERE_REPLICAS", "").split(".")[0]
    if services.get(named, {}).get("spec", {}).get("clusterIP") != "None":
        yield f"the balancer asks for replicas of {named}, which is no service without an address of its own"
    if not services["chimere"]["spec"]["selector"].items() <= pod["metadata"]["labels"].items():
        yield "the service chimere does not lead to the balancer"


def main():
    if sys.argv[1] == "--built":
        documents = [d for d in yaml.safe_load_all(pathlib.Path(sys.argv[2]).read_text()) if d]
        found = [*problems(documents), *whole_problems(documents)]
    else:
        documents = []
        for file in sorted(pathlib.Path(sys.argv[1]).rglob("*.yaml")):
            parts = [d for d in yaml.safe_load_all(file.read_text()) if d]
            documents += [d for d in parts if "kind" in d]
        found = list(problems(documents))
    if len(documents) < 8:
        found.append(f"only {len(documents)} manifests were found")
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
