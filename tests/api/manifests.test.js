// manifests.test.js  The cluster's manifests against the schemas of Kubernetes, the Prometheus operator and the Gateway
// API: overlays as kustomize builds them where there is a kubectl that can, else each file by itself.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import test from "node:test";

const folder = join(dirname(process.env.CHIMERE_MODEL), "../deploy/kubernetes");
const extensions = {
  "monitoring.coreos.com": "@kubernetes-models/prometheus-operator",
  "gateway.networking.k8s.io": "@kubernetes-models/gateway-api",
};

function parsed(yaml) {
  const code = "import json, sys, yaml; json.dump([d for d in yaml.safe_load_all(sys.stdin) if d], sys.stdout)";
  return JSON.parse(execFileSync("/usr/bin/python3", ["-c", code], { input: yaml }));
}

function run(...command) {
  try {
    return execFileSync(command[0], command.slice(1), { stdio: ["ignore", "pipe", "ignore"] }).toString();
  } catch {
    return "";
  }
}

const builds = /Kustomize Version: v([5-9]|\d\d)/.test(run("kubectl", "version", "--client"));

// The same value, whose fields leave `unread` when somebody reads them.
function watched(value, path, unread, prototype = Object.prototype) {
  if (typeof value !== "object" || value === null) return value;
  const copy = Array.isArray(value) ? [] : Object.create(prototype);
  for (const [name, field] of Object.entries(value)) {
    copy[name] = watched(field, `${path}/${name}`, unread);
    unread.add(`${path}/${name}`);
  }
  const get = (target, name) => {
    unread.delete(`${path}/${String(name)}`);
    return target[name];
  };
  return new Proxy(copy, { get });
}

// What is wrong with a manifest: the schema's words, and fields that it does not know, as the validator never looks at
// those. The API server would drop them.
async function problems(manifest) {
  const group = manifest.apiVersion.split("/")[0];
  const schemas = await import(`${extensions[group] ?? "kubernetes-models"}/${manifest.apiVersion}`);
  const Model = schemas[manifest.kind];
  if (!Model) return [`there is no ${manifest.kind} in ${manifest.apiVersion}`];
  const unread = new Set();
  const found = [];
  try {
    Model.prototype.validate.call(watched(manifest, "", unread, Model.prototype));
  } catch (error) {
    found.push(error.message);
  }
  return [...found, ...[...unread].map((path) => `${path}: the schema has no such field`)];
}

function manifestsOf(path) {
  if (statSync(path).isFile()) return parsed(readFileSync(path));
  if (builds) return parsed(execFileSync("kubectl", ["kustomize", path]));
  const files = readdirSync(path).filter((name) => name.endsWith(".yaml"));
  return files.flatMap((name) => manifestsOf(join(path, name))).filter((m) => m.kind && m.kind !== "Kustomization");
}

const places = builds ? ["overlays/nvidia", "overlays/gateway"] : ["base", "balancer", "overlays/ha", "overlays/gateway"];
let all = [];

for (const place of places) {
  test(`${place} keeps to the schemas`, async () => {
    const manifests = manifestsOf(join(folder, place));
    assert.ok(manifests.length > 0);
    for (const manifest of manifests) {
      assert.deepEqual(await problems(manifest), [], `${manifest.kind} ${manifest.metadata.name}`);
    }
    all = all.concat(manifests);
  });
}

test("a field that is misspelt or of another type is found", async () => {
  const set = structuredClone(all.find((m) => m.kind === "StatefulSet"));
  const monitor = structuredClone(all.find((m) => m.kind === "ServiceMonitor"));
  set.spec.template.spec.terminationGracePeriod = 75;
  assert.deepEqual(await problems(set), ["/spec/template/spec/terminationGracePeriod: the schema has no such field"]);
  set.spec.replicas = "three";
  assert.match((await problems(set))[0], /replicas must be integer/);
  monitor.spec.endpoints[0].intervall = "15s";
  assert.deepEqual(await problems(monitor), ["/spec/endpoints/0/intervall: the schema has no such field"]);
});
