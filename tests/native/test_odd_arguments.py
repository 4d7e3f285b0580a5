"""Odd values of every argument: each is refused in one line with its name, or taken for what it
is.
"""

import inspect
from functools import partial

import numpy as np
import pytest

from kvbench.errors import BadArgument, KvbenchError, OutOfMemory
from kvbench.native import Arena, Cache, Team

K = np.zeros((1, 2, 8), np.float32)  # batch, KV heads, head_dim
ODD = (
    None,
    "x",
    float("nan"),
    1.5,
    -1,
    1 << 62,
    1 << 70,
    10**400,
    [],
    [1],
    [["x"]],
    (1, 2, 3),
    {},
    b"x",
    object(),
)
HEADS = {"kv_heads": 2, "head_dim": 8}
FLAGS = ("ring", "head_major", "nt", "deterministic")  # each is what its value is true for


def filled(**facts):
    made = Cache(**HEADS, capacity=32, **facts)
    for _ in range(40 if facts.get("ring") else 4):
        made.append(K, K)
    return made


MADE = {"head": filled, "ring": lambda: filled(ring=True), "paged": lambda: filled(layout="paged")}
MADE |= {"arena": lambda: Arena(4096), "team": lambda: Team(1)}
METHODS = {
    "head": "append bulk decode clear numpy advance rollback would_overflow place rows",
    "ring": "place rows",
    "paged": "place rows",
    "arena": "part view",
    "team": "run",
}
CALLS = {f"{who}.{how}": partial(lambda who, how: getattr(MADE[who](), how), who, how)
         for who, hows in METHODS.items() for how in hows.split()}  # fmt: skip
CALLS |= {"Cache": lambda: partial(Cache, layout="paged", dtype="e4m3")}
CALLS |= {"Arena": lambda: Arena, "Team": lambda: Team}
PAIRS = [
    (call, name) for call, made in CALLS.items() for name in inspect.signature(made()).parameters
]
USUAL = HEADS | {
    "capacity": 32,
    "size": 64,
    "offset": 0,
    "threads": 1,
    "token": 0,
    "head": 0,
    "first": 0,
}
USUAL |= {"count": 1, "k": K, "v": K, "q": K}


@pytest.mark.parametrize(("call", "name"), PAIRS)
def test_odd_values(call, name):
    needed = [
        each.name
        for each in inspect.signature(CALLS[call]()).parameters.values()
        if each.default is each.empty
    ]
    usual = {each: USUAL[each] for each in needed if each not in (name, "tasks")}
    usual |= {"tokens": 1} if call == "head.rollback" and name == "sequence" else {}
    usual |= {each: K[None] for each in usual if call == "head.bulk"}
    refused = 0
    for value in ODD:
        try:
            CALLS[call]()(value) if name == "tasks" else CALLS[call]()(**usual | {name: value})
        except KvbenchError as error:
            refused += 1
            assert "\n" not in error.args[0] and len(error.args[0]) < 600 and error.hint
            told = name.rstrip("s") in error.args[0]
            assert told or value is None or name in FLAGS or isinstance(error, OutOfMemory), error
    assert refused > 5 or name in FLAGS


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: filled().place(32, 0), "token is 32"),
        (lambda: filled().place(0, 2), "head is 2"),
        (lambda: filled().place(0, 0, 1), "sequence is 1"),
        (lambda: filled(shuffle=1), "shuffle: a head cache is not paged"),
        (lambda: filled(blocks=4), "blocks: a head cache is not paged"),
        (lambda: filled(layout="paged", blocks=2, shuffle=1), "shuffle: .* filled later"),
        (lambda: filled(layout="paged", dtype="e4m3", tensor=(1, 0)), "tensor is "),
        (lambda: filled(window=0), "window is 0"),
        (lambda: filled().rows(0, 1 << 62), "count is 4611686018427387904"),
    ],
)
def test_what_is_said(call, words):
    with pytest.raises(BadArgument, match=words):
        call()


def test_rows_that_memory_does_not_hold(monkeypatch):
    made = filled()
    monkeypatch.setattr(np, "empty", lambda *_, **__: (_ for _ in ()).throw(MemoryError))
    with pytest.raises(OutOfMemory, match="count is 2: too little memory"):
        made.rows(0, 2)
