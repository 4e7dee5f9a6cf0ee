#!/usr/bin/env python3
"""Renders chat templates with Python's jinja2, set up as Hugging Face tokenizers set it up, for the golden tests.

usage: capture_templates.py SCENARIOS.json TEMPLATE_FOLDER OUTPUT_FOLDER
       capture_templates.py --snippets SNIPPETS.json

Writes OUTPUT_FOLDER/NAME.json for every NAME.jinja: {scenario: {"text": ...} or {"error": ..., "raised": ...}}.
"raised" is true when the template itself called raise_exception. The clock stands at 2026-01-15 12:34:56.
With --snippets, records the "expected" list of {"variables", "templates", "expected"} in place: text, or null for an error.
"""

import copy
import datetime
import json
import pathlib
import sys

import jinja2
import jinja2.ext
import jinja2.nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime.datetime(2026, 1, 15, 12, 34, 56)


class Raised(jinja2.exceptions.TemplateError):
    """raise_exception was called."""


class Generation(jinja2.ext.Extension):
    """{% generation %} marks what the assistant said; rendering shows its body."""

    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_render")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(lineno)

    def _render(self, caller):
        return caller()


def raise_exception(message):
    raise Raised(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def failure(error):
    return {"error": f"{type(error).__name__}: {error}", "raised": isinstance(error, Raised)}


def render_all(source, scenarios):
    try:
        template = environment().from_string(source)
    except (jinja2.exceptions.TemplateSyntaxError, SyntaxError) as error:
        return {name: failure(error) for name in scenarios}
    results = {}
    for name, variables in scenarios.items():
        try:
            results[name] = {"text": template.render(**copy.deepcopy(variables))}
        except Exception as error:  # any Python error ends a render
            results[name] = failure(error)
    return results


def capture_snippets(path):
    data = json.loads(path.read_text(encoding="utf-8"))
    data["expected"] = [
        render_all(source, {"only": data["variables"]})["only"].get("text") for source in data["templates"]
    ]
    path.write_text(json.dumps(data, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")


def main():
    if sys.argv[1] == "--snippets":
        capture_snippets(pathlib.Path(sys.argv[2]))
        return
    scenarios = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    folder, out = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    out.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.glob("*.jinja")):
        with open(path, encoding="utf-8", newline="") as file:
            source = file.read()
        text = json.dumps(render_all(source, scenarios), ensure_ascii=False, indent=0)
        (out / (path.stem + ".json")).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
