"""What a conversation shares is found, what is saved is counted by hand, and a wrong rollback is no time."""

import numpy as np
import pandas as pd
import pytest

from kvbench.errors import BadArgument, WrongAnswer
from kvbench.lab.experiments import prefix
from kvbench.lab.experiments.prefix import Request, Words
from kvbench.native import Cache


@pytest.mark.parametrize(
    ("before", "prompt", "common"),
    [
        ([], [1, 2, 3], 0),
        ([1, 2], [1, 2, 3], 2),
        ([1, 2, 3, 4], [1, 2, 3], 2),
        ([1, 2, 3], [1, 2, 3], 2),
        ([1, 9, 3], [1, 2, 3], 1),
        ([9, 2, 3], [1, 2, 3], 0),
        ([5], [5], 0),
    ],
)
def test_what_is_common(before, prompt, common):
    assert Request(np.array(before, dtype=int), np.array(prompt)).common == common


@pytest.mark.parametrize("name", prefix._TRACES)
def test_traces_are_what_they_say(name):
    requests = prefix._traces(1)[name]
    assert [r.prompt.tolist() for r in requests] == [r.prompt.tolist() for r in prefix._traces(1)[name]]
    assert len(requests) == prefix._TURNS
    assert requests[0].common == 0
    for request in requests[1:]:
        prompt, before = request.prompt.tolist(), request.before.tolist()
        same = next(
            n for n, (a, b) in enumerate(zip(prompt, [*before, None], strict=False)) if a != b or n + 1 == len(prompt)
        )
        assert request.common == same >= prefix._SYSTEM
        assert len(set(prompt)) == len(prompt)


def test_traces_are_of_different_kinds():
    common = {name: [r.common - len(r.before) for r in own[1:]] for name, own in prefix._traces(1).items()}
    assert not any(common["chat"])
    assert [n < 0 for n in common["edited"]] == [True, False] * 3 + [True]
    assert [n < 0 for n in common["branches"]] == [False] * 4 + [True] * 3
    assert all(n < 0 for n in common["strangers"])


def test_a_small_one(asked, monkeypatch):
    """A cache of few tokens; every count by hand."""
    monkeypatch.setattr(prefix, "_ROUNDS", 2)
    monkeypatch.setattr(prefix, "_TRACES", {"talk": talk})
    found = prefix.experiment(asked, dtype="i8", layout="paged")
    rollback, reset = (found.table[found.table["way"] == way].iloc[0] for way in ("rollback", "reset"))
    assert (rollback["tokens_asked"], rollback["tokens_filled"]) == (5 + 12 + 9, 5 + 4 + 2)
    assert (reset["tokens_asked"], reset["tokens_filled"]) == (26, 26)
    assert rollback["saved"] == pytest.approx(15 / 26)
    assert reset["bytes"] == 26 * 28 * 2 * 8 * (128 + 4)
    assert (found.table["seconds"] > 0).all()
    assert "11 of 26 tokens" in found.sentence
    found.figure.canvas()


def talk(words: Words):
    system = words.some(5)
    yield system, words.some(3)
    yield np.append(np.arange(8), words.some(4)), words.some(1)
    yield np.append(np.arange(7), words.some(2)), words.some(1)


def test_a_rollback_that_is_wrong_is_found(asked, monkeypatch):
    real = Cache.rollback
    monkeypatch.setattr(Cache, "rollback", lambda cache, to: real(cache, to=max(to - 1, 0)))
    monkeypatch.setattr(prefix, "_TRACES", {"talk": talk})
    with pytest.raises(WrongAnswer, match="talk 1"):
        prefix.experiment(asked)


def test_stores_keep_to_the_cpus_that_were_asked_for(asked, monkeypatch):
    """Every task of the timed calls: those of a Cache's own methods have threads that are not pinned."""
    made, ran = [], []

    class Seen(prefix.Team):
        def __init__(self, threads, cpus, library):
            made.append(tuple(cpus))
            super().__init__(threads, cpus, library)

        def run(self, *tasks, **facts):
            ran.append(tasks)
            return super().run(*tasks, **facts)

    monkeypatch.setattr(prefix, "Team", Seen)
    for store in ("bulk", "append", "decode"):
        monkeypatch.setattr(Cache, store, lambda *_, **__: pytest.fail("not on these CPUs"))
    monkeypatch.setattr(prefix, "_ROUNDS", 1)
    monkeypatch.setattr(prefix, "_TRACES", {"talk": talk})
    prefix.experiment(asked)
    assert made == [asked.cpus] and len(ran) > 2 * 3 * 2


def test_an_unknown_model(asked):
    with pytest.raises(BadArgument, match="model"):
        prefix.experiment(asked, model="parrot")


def table(*rows):
    names = ("trace", "way", "tokens_filled", "saved", "bytes", "seconds", "seconds_low", "seconds_high")
    return pd.DataFrame([dict(zip(names, row, strict=True)) for row in rows])


RESETS = [("chat", "reset", 100, 0.0, 1 << 20, 1.0, 0.9, 1.1), ("tree", "reset", 100, 0.0, 1 << 20, 1.0, 0.9, 1.1)]


@pytest.mark.parametrize(
    ("chat", "tree", "said"),
    [
        ((0.2, 0.1, 0.3), (0.3, 0.2, 0.4), ["500 ms in place of 2 s", "less in every trace"]),
        ((0.2, 0.1, 0.3), (1.0, 0.8, 1.2), ["noise less in chat, and elsewhere no difference that the noise would"]),
        ((1.0, 0.8, 1.2), (1.0, 0.8, 1.2), ["2 s in place of 2 s, which is no difference that the noise would let"]),
        ((1.0, 0.8, 1.2), (2.0, 1.8, 2.2), ["beyond noise more in tree, and elsewhere no difference that the noise"]),
        ((2.0, 1.8, 2.2), (2.0, 1.8, 2.2), ["4 s in place of 2 s, beyond noise more in every trace."]),
        ((0.2, 0.1, 0.3), (2.0, 1.8, 2.2), ["beyond noise less in chat and more in tree."]),
    ],
)
def test_the_sentence(chat, tree, said):
    rows = [("chat", "rollback", 10, 0.9, 1 << 18, *chat), ("tree", "rollback", 40, 0.6, 1 << 18, *tree)]
    sentence = prefix._sentence(table(*rows, *RESETS))
    said = [*said, "50 of 200 tokens", "75% fewer", "chat 90%, tree 60%", "512 KiB of 2 MiB"]
    assert all(words in sentence for words in said), sentence
