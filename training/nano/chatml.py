"""Dialogues and their text: the chat format the model is trained on, equal to the template that ships in the file.

A dialogue is a dict:
    messages   OpenAI-shaped: role system/user/assistant/tool; an assistant message may carry
               reasoning_content (str) and tool_calls [{"name": str, "arguments": dict}]
    tools      optional list of {"type": "function", "function": {"name", "description", "parameters"}}
    thinking   bool: False renders the empty think block that switches thinking off
    domain     what the dialogue teaches: chat, facts, arithmetic, reasoning, tools, code, stories, instructions
"""

import json
import re

# `{"key": ` and the opening of a list or object before a value. The comma is the model's: it ends a number.
FORCED = re.compile(r'[{\[]*"[A-Za-z_ ]+": [\[{]*|^[{\[]+')
TOOL_PREAMBLE = "# Tools\n\nYou can call these functions:\n\n<tools>"
TOOL_RULES = (
    "\n</tools>\n\nTo call a function, reply in this format:\n\n"
    "<tool_call>\n<function=NAME>\n<parameter=KEY>\nVALUE\n</parameter>\n</function>\n</tool_call>\n\n"
    "Call a function only when it fits the request; otherwise answer in plain words."
)


def value_text(value):
    """An argument the way the template prints it: JSON for containers, Python's str otherwise."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else str(value)


def call_text(call):
    arguments = "".join(
        f"<parameter={key}>\n{value_text(value)}\n</parameter>\n" for key, value in call["arguments"].items()
    )
    return f"<tool_call>\n<function={call['name']}>\n{arguments}</function>\n</tool_call>"


def assistant_text(message, after_last_query):
    content = (message.get("content") or "").strip()
    text = ""
    if after_last_query:
        text += f"<think>\n{(message.get('reasoning_content') or '').strip()}\n</think>\n\n"
    text += content
    for i, call in enumerate(message.get("tool_calls") or []):
        text += ("\n\n" if content else "") if i == 0 else "\n"
        text += call_text(call)
    return text + "<|im_end|>"


def forced_spans(text, start):
    """Places in a JSON answer that the grammar of a form decides: keys and what stands between values, from `start` on."""
    return tuple(match.span() for match in FORCED.finditer(text, start))


def segments(dialogue):
    """The rendered dialogue as (text, trained) pairs: the model learns to write the trained ones.

    An assistant message with "form" was written under a schema: there `trained` is a tuple of the (start, end) places in
    the text that the grammar writes, not the model.

    The first assistant turn after the last user message keeps its thoughts, earlier ones have dropped them, exactly
    as the template shows a conversation to the model later.
    """
    messages = dialogue["messages"]
    tools = dialogue.get("tools")
    out = []
    system = (messages[0]["content"] or "").strip() if messages[0]["role"] == "system" else ""
    if tools:
        listing = "".join("\n" + json.dumps(tool, ensure_ascii=False) for tool in tools)
        tail = "\n\n" + system if system else ""
        out.append((f"<|im_start|>system\n{TOOL_PREAMBLE}{listing}{TOOL_RULES}{tail}<|im_end|>\n", False))
    elif messages[0]["role"] == "system":
        out.append((f"<|im_start|>system\n{system}<|im_end|>\n", False))
    last_query = max(i for i, m in enumerate(messages) if m["role"] == "user")
    for i, message in enumerate(messages):
        role = message["role"]
        if role == "user":
            out.append((f"<|im_start|>user\n{message['content'].strip()}<|im_end|>\n", False))
        elif role == "tool":
            first = messages[i - 1]["role"] != "tool"
            last = i + 1 == len(messages) or messages[i + 1]["role"] != "tool"
            text = (
                "<|im_start|>user" if first else ""
            ) + f"\n<tool_response>\n{message['content'].strip()}\n</tool_response>"
            out.append((text + ("<|im_end|>\n" if last else ""), False))
        elif role == "assistant":
            text = assistant_text(message, i > last_query)
            head = "<|im_start|>assistant\n"
            if i > last_query:
                # What the generation prompt already holds is not for the model to write.
                prompt = "<think>\n" if dialogue.get("thinking") else "<think>\n\n</think>\n\n"
                head, text = head + prompt, text[len(prompt) :]
            out.append((head, False))
            start = text.find("</think>\n\n") + 10 if "</think>\n\n" in text else 0
            out.append((text, forced_spans(text, start) if message.get("form") else True))
            out.append(("\n", False))
    return out


def render(dialogue):
    return "".join(text for text, _ in segments(dialogue))


def check(dialogue):
    """Raises ValueError for a dialogue that the chat format cannot hold; returns it otherwise."""
    messages = dialogue["messages"]
    roles = [m["role"] for m in messages]
    if "user" not in roles or roles[-1] != "assistant" or "system" in roles[1:]:
        raise ValueError(f"roles {roles}: expected [system] user ... assistant")
    last_query = max(i for i, role in enumerate(roles) if role == "user")
    names = {tool["function"]["name"] for tool in dialogue.get("tools") or []}
    for i, message in enumerate(messages):
        for call in message.get("tool_calls") or []:
            if call["name"] not in names:
                raise ValueError(f"call of {call['name']!r}, which is not among the tools {sorted(names)}")
        reasoning = (message.get("reasoning_content") or "").strip()
        if message["role"] == "assistant" and i > last_query and bool(reasoning) != bool(dialogue.get("thinking")):
            raise ValueError(f"message {i}: thinking is {dialogue.get('thinking')} but its reasoning is {reasoning!r}")
        if message["role"] != "assistant" and not (message.get("content") or "").strip():
            raise ValueError(f"message {i} ({message['role']}) is empty")
    return dialogue
