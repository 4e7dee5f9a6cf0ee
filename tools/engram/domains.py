#!/usr/bin/env python3
"""Tables of four domains from the data folder (training/DATA.md), and what they are worth.

usage: domains.py split DATA OUT              texts to OUT/NAME.{table,development,test}.jsonl, test text also as .txt
       domains.py build OUT FOLDER            FOLDER/NAME.engram from the table texts: the small ones of assets/engram
       domains.py matrix OUT FOLDER           perplexity of every test text without a table and with each of them

Documents are split by a hash of their text: 80 % make the table, 10 % are for choosing, 10 % for the figures. From the
last two every document is left out that shares a run of 13 words with the table's.
"""

import argparse
import hashlib
import json
import lzma
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHIMERE = ROOT / "build/release/chimere"
DOMAINS = ["code", "general", "medical", "security"]
SECURITY = re.compile(
    r"\b(secur\w+|vulnerab\w+|attack\w*|encrypt\w*|passwords?|authenticat\w+|authoriz\w+|permissions?|credentials?|"
    r"malware|phishing|exploit\w*|csrf|xss|injection|tls|ssl|https|certificates?|privacy|threats?|hacker\w*)\b", re.I)
SECURITY_SHARE = 0.012  # of a document's words: about one in eighty
MOST_TEST_BYTES = 60_000  # of a domain: 15 thousand tokens
# Chosen on development text, so that the four files together stay below 3 MB.
LEAST = {"code": 12, "general": 16, "medical": 16, "security": 4}
ORDERS = (2, 4)


def rows(data, name):
    for path in sorted((data / name).parent.glob((data / name).name + ".jsonl*")):
        opened = lzma.open(path, "rt", encoding="utf8") if path.suffix == ".xz" else open(path, encoding="utf8")
        with opened as lines:
            for line in lines:
                yield json.loads(line)


def documents(data, domain):
    """Texts of a domain. No set is about security: its documents are picked by their words from manuals."""
    government = ["18f_blog", "18f_handbook", "digitalgov", "plainlanguage"]
    if domain == "medical":
        for row in rows(data, "medquad/medquad"):
            if len(row["a"].split()) > 140:  # the shorter ones were read in training
                yield row["a"]
    elif domain == "code":
        for name in ["typescript", "react"]:
            for row in rows(data, "docs-permissive/" + name):
                yield row["text"]
    else:
        manuals = ["docs-permissive/" + n for n in ["django", "flask", "python_peps", "ms_web_dev", "ms_iot"]]
        for name in ["usgov-public-domain/" + n for n in government] + (manuals if domain == "security" else []):
            for row in rows(data, name):
                text = row["text"]
                is_security = len(SECURITY.findall(text)) > SECURITY_SHARE * len(text.split()) + 2
                if is_security == (domain == "security"):
                    yield text


def part_of(text):
    bucket = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little") % 10
    return "development" if bucket == 8 else "test" if bucket == 9 else "table"


def runs(text, n=13):
    words = re.findall(r"\w+", text.lower())
    return {hash(tuple(words[i:i + n])) for i in range(len(words) - n + 1)}


def split(data, out):
    out.mkdir(parents=True, exist_ok=True)
    for domain in DOMAINS:
        parts = {"table": [], "development": [], "test": []}
        for text in dict.fromkeys(documents(data, domain)):
            parts[part_of(text)].append(text)
        seen = set()
        for text in parts["table"]:
            seen |= runs(text)
        for part in ["development", "test"]:
            parts[part] = [text for text in parts[part] if not runs(text) & seen]
        for part, items in parts.items():
            with open(out / f"{domain}.{part}.jsonl", "w", encoding="utf8") as file:
                for text in items:
                    file.write(json.dumps({"text": text}) + "\n")
            if part != "table":
                joined = "\n\n".join(items).encode()[:MOST_TEST_BYTES]
                (out / f"{domain}.{part}.txt").write_text(joined.decode(errors="ignore"), encoding="utf8")
        print(domain, {part: (len(items), sum(map(len, items))) for part, items in parts.items()})


def build(out, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for domain in DOMAINS:
        subprocess.run([CHIMERE, "engram", "build", folder / f"{domain}.engram", "--source", domain,
                        "--text", out / f"{domain}.table.jsonl", "--min-order", str(ORDERS[0]),
                        "--max-order", str(ORDERS[1]), "--least", str(LEAST[domain])], check=True)
        (folder / f"{domain}.engram.lock").unlink(missing_ok=True)


def perplexity(text, tables):
    command = [CHIMERE, "perplexity", "--text", text, "--ctx", "256", "--json", "--threads", "1"]
    for table in tables:
        command += ["--engram", table]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["perplexity"]


def matrix(out, folder, part):
    print("| test text | without | " + " | ".join(DOMAINS) + " |\n|" + "---|" * (len(DOMAINS) + 2))
    for domain in DOMAINS:
        text = out / f"{domain}.{part}.txt"
        without = perplexity(text, [])
        cells = []
        for table in DOMAINS:
            change = perplexity(text, [folder / f"{table}.engram"]) / without - 1
            cells.append(f"**{change:+.1%}**" if table == domain else f"{change:+.1%}")
        print(f"| {domain} | {without:.2f} | " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["split", "build", "matrix"])
    parser.add_argument("paths", nargs=2, type=pathlib.Path)
    parser.add_argument("--part", default="test", choices=["development", "test"])
    options = parser.parse_args()
    if options.verb == "split":
        split(*options.paths)
    elif options.verb == "build":
        build(*options.paths)
    else:
        matrix(*options.paths, options.part)


if __name__ == "__main__":
    sys.exit(main())
