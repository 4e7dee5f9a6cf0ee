#!/usr/bin/env python3
"""Lists the include edges under src/ that point the wrong way, and exits with 1 when there are any.

usage: check_includes.py [REPOSITORY]

A file may include its own folder and the folders that stand before it in ORDER. Backends stand there like folders:
they may include backend/, which may not include them, and cpu/ may lean on reference/ but never the other way round.
The folders apps/, tests/ and bench/ may include everything and are not looked at.
"""

import pathlib
import re
import sys

ORDER = [
    "base",
    "text",
    "web",
    "tools",
    "documents",
    "tensor",
    "gguf",
    "sampling",
    "backend",
    "backend/reference",
    "backend/cpu",
    "backend/cuda",
    "tokenizer",
    "jinja",
    "grammar",
    "chat",
    "cache",
    "models",
    "convert",
    "engram",
    "speculative",
    "engine",
    "store",
    "retrieval",
    "orchestrator",
    "odo",
    "improve/mezo",
    "improve/examples",
    "improve",
    "server/tracing",
    "server/http",
    "server",
    "quantizer",
]
RANK = {name: rank for rank, name in enumerate(ORDER)}
SOURCES = {".h", ".cpp", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def layer(parts):
    """The deepest entry of ORDER that a path inside src/ lies in, or None."""
    for n in range(len(parts) - 1, 0, -1):
        name = "/".join(parts[:n])
        if name in RANK:
            return name
    return None


def included_path(src, file, target):
    """Path of an included file relative to src/: includes are written from src/, or beside the file that has them."""
    beside = file.parent / target
    if not (src / target).exists() and beside.exists():
        return beside.resolve().relative_to(src.resolve())
    return pathlib.PurePosixPath(target)


def problems(src):
    for file in sorted(path for path in src.rglob("*") if path.suffix in SOURCES):
        name = file.relative_to(src)
        own = layer(name.parts)
        if own is None:
            yield f"src/{name}: its folder is not in the order of {pathlib.Path(__file__).name}"
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            match = INCLUDE.match(line)
            if not match:
                continue
            other = layer(included_path(src, file, match[1]).parts)
            if other is None:
                yield f'src/{name}:{number}: "{match[1]}" lies in no folder of src/ that has a place in the order'
            elif RANK[other] > RANK[own]:
                yield f'src/{name}:{number}: {own} may not include {other}: "{match[1]}"'


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    src = root / "src"
    if not src.is_dir():
        print(f"{src}: expected a folder", file=sys.stderr)
        return 2
    found = list(problems(src))
    for problem in found:
        print(problem)
    if found:
        print(f"{len(found)} includes point the wrong way; the order is {', '.join(ORDER)}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
