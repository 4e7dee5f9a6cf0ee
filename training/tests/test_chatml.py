"""The chat format the model is trained on is the one its template renders."""

import json
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

try:
    import jinja2
except ImportError:
    raise unittest.SkipTest("jinja2 is not installed")

from nano import chatml
from nano.synthetic import arithmetic

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def template():
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)

    def refuse(message):
        raise ValueError(message)

    environment.globals["raise_exception"] = refuse
    source = pathlib.Path(chatml.__file__).with_name("chat_template.jinja").read_text()
    return environment.from_string(source)


def openai_shaped(message):
    """The message as a client sends it back: calls wrapped in `function`."""
    calls = [{"type": "function", "function": call} for call in message.get("tool_calls") or []]
    return {**message, "tool_calls": calls} if calls else message


DIALOGUES = [
    {"messages": [{"role": "user", "content": " Hi "}, {"role": "assistant", "content": "Hello!"}], "thinking": False},
    {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello!"},
            {"role": "user", "content": "Bye"},
            {"role": "assistant", "content": "Goodbye!", "reasoning_content": "A farewell."},
        ],
        "thinking": True,
    },
    {
        "messages": [
            {"role": "user", "content": "Weather in Rome and Oslo?"},
            {
                "role": "assistant",
                "content": "One moment.",
                "reasoning_content": "Two calls.",
                "tool_calls": [
                    {"name": "get_weather", "arguments": {"city": "Rome"}},
                    {"name": "get_weather", "arguments": {"city": "Oslo", "days": 2, "parts": ["wind"], "now": True}},
                ],
            },
            {"role": "tool", "content": "sunny"},
            {"role": "tool", "content": "rain"},
            {"role": "assistant", "content": "Sun in Rome, rain in Oslo.", "reasoning_content": "I have both."},
        ],
        "tools": [WEATHER],
        "thinking": True,
    },
    {
        "messages": [
            {"role": "system", "content": "Help."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "", "tool_calls": [{"name": "get_weather", "arguments": {}}]},
        ],
        "tools": [WEATHER],
        "thinking": False,
    },
]


class Template(unittest.TestCase):
    def test_renders_what_the_model_was_trained_on(self):
        chat = template()
        for dialogue in DIALOGUES + list(arithmetic.dialogues(random.Random(3), 200)):
            chatml.check(dialogue)
            rendered = chat.render(
                messages=[openai_shaped(m) for m in dialogue["messages"]], tools=dialogue.get("tools")
            )
            self.assertEqual(rendered, chatml.render(dialogue))

    def test_generation_prompt_is_the_untrained_head_of_the_answer(self):
        chat = template()
        for dialogue in DIALOGUES:
            messages = [openai_shaped(m) for m in dialogue["messages"][:-1]]
            prompt = chat.render(
                messages=messages,
                tools=dialogue.get("tools"),
                add_generation_prompt=True,
                enable_thinking=dialogue["thinking"],
            )
            parts = chatml.segments(dialogue)
            self.assertEqual(prompt, "".join(text for text, _ in parts[:-2]))
            self.assertTrue(parts[-2][1])

    def test_refuses_what_it_cannot_show(self):
        chat = template()
        for messages in (
            [],
            [{"role": "system", "content": "x"}],
            [{"role": "user", "content": "x"}, {"role": "system", "content": "y"}],
        ):
            with self.assertRaises(ValueError):
                chat.render(messages=messages)


if __name__ == "__main__":
    unittest.main()
