"""Dialogues made from the evaluation folder: measured on, never trained on."""

import json
import lzma
import re


def rows(path):
    opener = lzma.open if path.suffix == ".xz" else open
    with opener(path, "rt", encoding="utf8") as stream:
        return [json.loads(line) for line in stream]


def eval_dialogues(data):
    """Word problems of GSM8K's test set and SVAMP, the answer in plain steps."""
    for row in rows(data / "eval" / "gsm8k_test_1187.jsonl.xz"):
        steps, answer = re.sub(r"<<.*?>>", "", row["answer"]).split("####")
        yield dialogue(row["question"], f"{steps.strip()}\nThe answer is {answer.strip()}.")
    for row in rows(data / "eval" / "svamp_850.jsonl"):
        question = f"{row['Body'].strip().rstrip('.')}. {row['Question'].strip()}"
        equation = row["Equation"].replace("( ", "").replace(" )", "").replace(".0", "")
        yield dialogue(question, f"{equation} = {str(row['Answer']).removesuffix('.0')}.")


def dialogue(question, answer):
    return {
        "messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}],
        "thinking": False,
        "domain": "word_problems",
    }
