#!/usr/bin/env python3
"""What a prompt that the job `prompts` finds is worth on questions with known answers, judged by what the answers do.

    measure_prompts.py --chimere PROGRAM --shared FOLDER --route code|medical [--teach 60] [--exam 50]

The first questions are asked and corrected with the known answer, as a person does who teaches; the job learns and proves a
prompt from them; the exam has questions behind those, each answered greedily with and without the prompt. Code (the test part of MBPP) is run with
its tests in bubblewrap, without network; medical texts (MedQuAD) are compared by the F1 of the words that both have. Prints
one line of JSON. The gain's interval is a bootstrap over questions. Neither set is part of this repository.
"""

import argparse
import collections
import hashlib
import json
import lzma
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "thinking"))

MOST_CODE, LEAST_ANSWER, MOST_ANSWER, MOST_QUESTION = 500, 80, 500, 300
SMALL = frozenset("a an and are as at be by for from in is it its of on or that the this to was were which with".split())
RESAMPLES, SECONDS, BYTES = 10_000, 5, 1 << 29


def lines(path):
    with lzma.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def code_questions(shared):
    for task in lines(shared / "data/eval/mbpp_test_450.jsonl.xz"):
        answer = task["code"].replace("\r\n", "\n").strip()
        if len(answer) <= MOST_CODE and not task["test_setup_code"]:
            yield {"question": f"{task['text'].strip()} It should pass this test: {task['test_list'][0]}",
                   "answer": f"```python\n{answer}\n```", "tests": "\n".join(task["test_list"])}


def medical_questions(shared):
    for pair in lines(shared / "data/medquad/medquad.jsonl.xz"):
        question, answer = pair["q"].strip(), " ".join(pair["a"].split())
        if LEAST_ANSWER <= len(answer) <= MOST_ANSWER and len(question) <= MOST_QUESTION:
            yield {"question": question, "answer": answer}


def shuffled(questions):
    """Each once, in an order of their own that is always the same."""
    unique = {one["question"]: one for one in questions}
    return sorted(unique.values(), key=lambda one: hashlib.sha256(one["question"].encode()).hexdigest())


def words_f1(right, answer):
    def words(text):
        return collections.Counter(word for word in re.findall(r"\w+", text.lower()) if word not in SMALL)
    wanted, said = words(right), words(answer)
    total = wanted.total() + said.total()
    return 2 * (wanted & said).total() / total if total else 0.0


def code_in(answer):
    """The first fenced block, else all of it."""
    fenced = re.search(r"```[^\n]*\n(.*?)(?:```|\Z)", answer, re.DOTALL)
    return fenced.group(1) if fenced else answer


def passes(code, tests):
    program = (f"import resource as r\nr.setrlimit(r.RLIMIT_AS, ({BYTES}, {BYTES}))\n"
               f"r.setrlimit(r.RLIMIT_CPU, ({SECONDS}, {SECONDS}))\n{code}\n{tests}\nprint('all passed')\n")
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib",
               "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--tmpfs", "/tmp", "--chdir", "/tmp", "/usr/bin/python3", "-I", "-S", "-"]
    try:
        run = subprocess.run(command, input=program, capture_output=True, text=True, timeout=60 * SECONDS)
    except subprocess.TimeoutExpired:
        return 0.0
    # A program that ends before its tests has passed none.
    return 1.0 if run.returncode == 0 and run.stdout.endswith("all passed\n") else 0.0


def interval(differences, seed=1):
    """Mean and its 95 % interval, of means of what is drawn with putting back."""
    draw = random.Random(seed)
    means = sorted(sum(draw.choices(differences, k=len(differences))) / len(differences) for _ in range(RESAMPLES))
    mean = sum(differences) / len(differences)
    return {"mean": mean, "low": means[RESAMPLES * 25 // 1000], "high": means[RESAMPLES * 975 // 1000]}


class Teacher:
    """A server with a journal, until its folder goes."""

    def __init__(self, program, folder):
        from run import Served
        self.folder = folder
        os.environ["CHIMERE_JOURNAL"] = str(folder / "journal.db")
        os.environ["CHIMERE_LEARN"] = "on"
        os.environ["CHIMERE_NO_IMPROVE"] = "true"
        self.served = Served(program, threads=1)

    def post(self, path, body):
        import urllib.request
        request = urllib.request.Request(f"http://127.0.0.1:{self.served.port}{path}", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as response:
            return json.load(response), response.headers

    def ask(self, question, prompt="", max_tokens=160):
        messages = [{"role": "system", "content": prompt}] if prompt else []
        return self.post("/v1/chat/completions", {
            "messages": [*messages, {"role": "user", "content": question}], "temperature": 0, "max_tokens": max_tokens,
            "enable_thinking": False, "engram": {"alpha": 0}, "user": "teacher"})

    def teach(self, one):
        _, headers = self.ask(one["question"], max_tokens=1)
        self.post("/v1/feedback", {"user": "teacher", "request_id": headers["X-Request-Id"], "correction": one["answer"]})


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--chimere", required=True)
    arguments.add_argument("--shared", type=pathlib.Path, required=True)
    arguments.add_argument("--route", choices=("code", "medical"), required=True)
    arguments.add_argument("--teach", type=int, default=60)
    arguments.add_argument("--exam", type=int, default=50)
    o = arguments.parse_args()
    program = os.path.abspath(o.chimere)
    questions = shuffled((code_questions if o.route == "code" else medical_questions)(o.shared))
    taught, exam = questions[:o.teach], questions[o.teach:o.teach + o.exam]
    with tempfile.TemporaryDirectory(prefix="chimere-prompts-") as name:
        folder = pathlib.Path(name)
        teacher = Teacher(program, folder)
        try:
            for one in taught:
                teacher.teach(one)
            learned = subprocess.run([program, "improve", "run", "prompts", "--owner", "teacher", "--now", "--json", "--threads", "1", "--dir",
                                      str(folder / "improve")], capture_output=True, text=True, check=True)
            run = json.loads(learned.stdout.strip().splitlines()[-1])
            prompt = (folder / "improve/artefacts" / run["artefact"]).read_text() if run["artefact"] else ""

            def mark(one, with_prompt):
                said = teacher.ask(one["question"], with_prompt)[0]["choices"][0]["message"]["content"] or ""
                return passes(code_in(said), one["tests"]) if o.route == "code" else words_f1(one["answer"], said)
            before = [mark(one, "") for one in exam]
            after = [mark(one, prompt) for one in exam] if prompt else before
            right = [passes(code_in(one["answer"]), one["tests"]) for one in exam] if o.route == "code" else []
        finally:
            teacher.served.process.terminate()
            teacher.served.process.wait()
    print(json.dumps({"route": o.route, "taught": len(taught), "exam": len(exam), "prompt": prompt, "state": run["state"], "verdict": run["verdict"],
                      "cpu_seconds": run["cost"]["cpu_seconds"], "before": sum(before) / len(before), "after": sum(after) / len(after),
                      "gain": interval([b - a for a, b in zip(before, after)]), "known_answers_pass": sum(right)}, ensure_ascii=False))


if __name__ == "__main__":
    main()
