"""Conversations that change the subject: turns of different skills one after another.

Every generator teaches its own skill from a fresh start. People do not start afresh: they ask for a story after a sum and for advice
after a function. These dialogues teach that an earlier turn is over, whatever it was about.
"""


class Turns:
    """A sample of single-turn dialogues, kept as they stream by."""

    def __init__(self, rng, most=60_000):
        self.rng, self.most, self.seen, self.kept = rng, most, 0, []

    def offer(self, dialogue):
        """Keeps a dialogue of one question and one answer, without tools; later ones replace earlier ones at random."""
        messages = [m for m in dialogue["messages"] if m["role"] != "system"]
        if dialogue.get("tools") or len(messages) != 2:
            return
        self.seen += 1
        if len(self.kept) < self.most:
            self.kept.append((messages, dialogue["thinking"]))
        elif (place := self.rng.randrange(self.seen)) < self.most:
            self.kept[place] = (messages, dialogue["thinking"])


def dialogues(rng, pools, count, most_turns=7):
    """`count` conversations of 2 to `most_turns` turns, each turn from any of the pools ({name: Turns})."""
    pools = [pool.kept for pool in pools.values() if pool.kept]
    for _ in range(count):
        turns = [rng.choice(rng.choice(pools)) for _ in range(rng.randint(2, most_turns))]
        messages = []
        for (question, answer), _ in turns[:-1]:
            messages += [question, {"role": "assistant", "content": answer["content"]}]
        final, thinking = turns[-1]
        yield {"messages": messages + final, "thinking": thinking, "domain": "mixed"}
