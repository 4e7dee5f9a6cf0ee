#!/usr/bin/env python3
"""Policies that the manifests keep, and references between them that must hold.

    manifests.py FOLDER           the files of kubernetes/, each by itself
    manifests.py --built FILE     what kustomize made of an overlay, as a whole
"""
import pathlib
import sys

import yaml

KINDS = {"Namespace": "v1", "ServiceAccount": "v1", "StatefulSet": "apps/v1", "Service": "v1", "ConfigMap": "v1",
         "PodDisruptionBudget": "policy/v1", "NetworkPolicy": "networking.k8s.io/v1", "PersistentVolumeClaim": "v1",
         "HorizontalPodAutoscaler": "autoscaling/v2", "ServiceMonitor": "monitoring.coreos.com/v1",
         "Kustomization": "kustomize.config.k8s.io/v1beta1"}


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
        for probe, path in (("startupProbe", "/livez"), ("readinessProbe", "/readyz"), ("livenessProbe", "/livez")):
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
        if kind == "StatefulSet":
            spec = document["spec"]
            pod = spec["template"]["spec"]
            yield from pod_problems(pod)
            drain = 60  # of base/chimere.yaml, checked below
            if pod["terminationGracePeriodSeconds"] < drain + 10:
                yield "a pod is killed before its answers have ended"


def whole_problems(documents):
    by_kind = {}
    for document in documents:
        by_kind.setdefault(document["kind"], []).append(document)
    labels = by_kind["StatefulSet"][0]["spec"]["template"]["metadata"]["labels"]
    selectors = [s["spec"]["selector"] for s in by_kind["Service"]]
    selectors += [s["spec"]["selector"]["matchLabels"] for s in by_kind["PodDisruptionBudget"]]
    selectors += [s["spec"]["podSelector"]["matchLabels"] for s in by_kind["NetworkPolicy"]]
    for selector in selectors:
        if not selector or any(labels.get(k) != v for k, v in selector.items()):
            yield f"the selector {selector} finds no pod"
    services = {s["metadata"]["name"] for s in by_kind["Service"]}
    if by_kind["StatefulSet"][0]["spec"]["serviceName"] not in services:
        yield "the set's service is not there"
    config = by_kind["ConfigMap"][0]
    options = yaml.safe_load(config["data"]["chimere.yaml"])
    if options["drain"] != 60:
        yield "drain has changed: the grace period of the pods must follow"
    if not options.get("dump-on-stall"):
        yield "dump-on-stall is not set: an engine that makes no step would be alive"
    named = {v["configMap"]["name"] for v in by_kind["StatefulSet"][0]["spec"]["template"]["spec"]["volumes"] if "configMap" in v}
    if named != {config["metadata"]["name"]}:
        yield f"the pods mount the configuration {named}, which is not there"


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
