#!/usr/bin/env python3
"""Writes an SPDX 2.3 document of what is in a packaged program: the libraries linked into it and the page's packages.

    tools/sbom.py --static build/packages/static --program chimere --version 0.1.0 --commit abc --epoch 0 > sbom.json

Versions of Debian's libraries are those of the packages their archives come from: the installed ones, or those that
FOLDER/packages of --static names, which were unpacked there for another machine. No time but --epoch is in it,
so that the same sources give the same bytes.
"""
import argparse
import datetime
import hashlib
import json
import pathlib
import re
import subprocess
import sys

# Debian's packages whose archives or headers end up in the program.
LINKED = ["libssl-dev", "libsqlite3-dev", "libyaml-cpp-dev", "libutf8proc-dev", "libidn2-dev", "libunistring-dev",
          "libedit-dev", "libbsd-dev", "libmd-dev", "libncurses-dev", "zlib1g-dev", "libstdc++-12-dev", "libboost1.81-dev",
          "nlohmann-json3-dev", "libcli11-dev"]


def package(name, version, kind, source):
    ident = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", f"{kind}-{name}")
    return {"SPDXID": ident, "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False, "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION",
            "copyrightText": "NOASSERTION",
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                              "referenceLocator": source}]}


def debian_packages(folder):
    unpacked = {}
    if (folder / "packages").exists():
        unpacked = {line.split()[0]: line.split()[1:] for line in (folder / "packages").read_text().splitlines()}
    for name in LINKED:
        if name in unpacked:
            source, version = unpacked[name]
            yield package(source, version, "deb", f"pkg:deb/debian/{source}@{version}?arch=source")
            continue
        if unpacked:
            name += "-arm64-cross"  # the compiler's own, which is installed
        found = subprocess.run(["dpkg-query", "-W", "-f=${source:Package} ${source:Version}", name], capture_output=True,
                               text=True, check=False)
        if found.returncode == 0:
            source, version = found.stdout.split()
            yield package(source, version, "deb", f"pkg:deb/debian/{source}@{version}?arch=source")
        else:
            sys.exit(f"sbom.py: {name} is not installed")


def built_packages(folder):
    for line in (folder / "versions").read_text().splitlines():
        name, version = line.split("_", 1)
        yield package(name, version, "deb", f"pkg:deb/debian/{name}@{version}?arch=source")


def page_packages(lock):
    for path, entry in json.loads(lock.read_text())["packages"].items():
        if path and not entry.get("dev") and "version" in entry:
            name = path.rsplit("node_modules/", 1)[-1]
            yield package(name, entry["version"], "npm",
                          f"pkg:npm/{name.replace('@', '%40')}@{entry['version']}")


def main():
    parser = argparse.ArgumentParser()
    for option in ("static", "program", "version", "commit", "epoch", "lock"):
        parser.add_argument("--" + option, required=True)
    options = parser.parse_args()
    program = pathlib.Path(options.program)
    static = pathlib.Path(options.static)
    parts = {p["SPDXID"]: p for p in [*debian_packages(static), *built_packages(static),
                                      *page_packages(pathlib.Path(options.lock))]}
    own = package("chimere", options.version, "own", f"pkg:generic/chimere@{options.version}")
    own["licenseDeclared"] = own["licenseConcluded"] = "Apache-2.0"
    own["checksums"] = [{"algorithm": "SHA256", "checksumValue": hashlib.sha256(program.read_bytes()).hexdigest()}]
    time = datetime.datetime.fromtimestamp(int(options.epoch), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"chimere-{options.version}",
        "documentNamespace": f"urn:chimere:sbom:{options.version}:{options.commit}",
        "creationInfo": {"created": time, "creators": ["Tool: chimere-sbom"]},
        "packages": [own, *[parts[k] for k in sorted(parts)]],
        "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                           "relatedSpdxElement": own["SPDXID"]}] +
                         [{"spdxElementId": own["SPDXID"], "relationshipType": "STATIC_LINK" if "-deb-" in k else "CONTAINS",
                           "relatedSpdxElement": k} for k in sorted(parts)],
    }
    json.dump(document, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
