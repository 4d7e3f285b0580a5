"""Values that no argument is meant to have: each is refused in one line that names it, or taken for what it is."""

from collections.abc import Callable

import numpy as np
import pytest

from kvbench.errors import BadArgument, KvbenchError, OutOfMemory
from kvbench.native import Arena, Cache, Pool, Team

ODD = (None, "x", float("nan"), 1.5, -1, 1 << 62, 1 << 70, 10**400, [], [1], (1, 2, 3), {}, b"x", object())
K = np.zeros((1, 2, 8), np.float32)  # batch, KV heads, head_dim


def cache(**facts):
    return Cache(**{"kv_heads": 2, "head_dim": 8, "capacity": 32} | facts)


def filled(ring=None, layout="head"):
    made = cache(ring=ring, layout=layout)
    for _ in range(40 if ring else 4):
        made.append(K, K)
    return made


def pool(**facts):
    return Pool(**{"kv_heads": 2, "head_dim": 8, "blocks": 8} | facts)


def calls(made: Callable, method: str, names: str, **usual) -> dict[str, Callable]:
    """Of one method, by its argument, the call with that value."""
    return {
        f"{made.__name__}.{method}.{name}": lambda value, name=name: getattr(made(), method)(**usual | {name: value})
        for name in names.split()
    }


def ring():
    return filled(ring=True)


def paged():
    return filled(layout="paged")


def drawn():
    return pool().cache(32)


def arena():
    return Arena(4096)


def team():
    return Team(1)


def builds(made: Callable, names: str, **usual) -> dict[str, Callable]:
    return {f"{made.__name__}.{name}": lambda value, name=name: made(**usual | {name: value}) for name in names.split()}


STORED = "kv_heads head_dim dtype block_tokens inner scale tensor_scale pages guard library"
CALLS = {
    **builds(cache, f"{STORED} capacity batch layout window ring pad shuffle arena offset", dtype="e4m3"),
    **builds(Cache.size_of, "blocks capacity library", kv_heads=2, head_dim=8, capacity=32, layout="paged"),
    **builds(pool, f"{STORED} blocks layout", dtype="e4m3"),
    **builds(Arena, "size pages guard library", size=4096),
    **builds(Team, "threads cpus library", threads=1),
    **calls(filled, "append", "k v isa threads", k=K, v=K),
    **calls(filled, "bulk", "k v isa threads head_major nt", k=K[None], v=K[None]),
    **calls(filled, "decode", "q variant isa threads deterministic", q=K),
    **calls(filled, "rollback", "tokens to"),
    **calls(filled, "rollback", "sequence", tokens=1),
    **calls(filled, "clear", "isa threads"),
    **calls(filled, "numpy", "isa threads"),
    **{name: call for made in (filled, drawn) for how in ("would_overflow", "reserve", "advance")
       for name, call in calls(made, how, "tokens").items()},
    **calls(drawn, "refuse_unplaced", "tokens"),
    **{name: call for made in (filled, ring, paged) for name, call in {
        **calls(made, "place", "token head sequence", token=0, head=0),
        **calls(made, "rows", "first count isa threads", first=0, count=1)}.items()},
    **calls(pool, "cache", "capacity batch window ring", capacity=32),
    **calls(arena, "part", "offset size", offset=0, size=64),
    **calls(arena, "view", "dtype"),
    **calls(team, "run", "passes between"),
    "team.run.a task": lambda value: Team(1).run(value),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_odd_values(name):
    argument, refused = name.rpartition(".")[2], 0
    flag = argument in ("ring", "head_major", "nt", "deterministic")
    for value in ODD:
        try:
            CALLS[name](value)
        except KvbenchError as error:
            refused += 1
            assert "\n" not in error.args[0] and len(error.args[0]) < 600 and error.hint
            assert argument in error.args[0] or type(value) in (int, type(None)) or flag, error
    assert refused > 5 or flag, "a flag is what its value is true for"


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: filled().place(32, 0), BadArgument, "token is 32"),
        (lambda: filled().place(0, 2), BadArgument, "head is 2"),
        (lambda: filled().place(0, 0, 1), BadArgument, "sequence is 1"),
        (lambda: drawn().place(0, 0), BadArgument, "token 0 of sequence 0 has no block"),
        (lambda: cache(dtype="e4m3", tensor_scale="x"), BadArgument, "tensor_scale is 'x'"),
        (lambda: cache(ring=np.zeros(3)), BadArgument, "ring is array"),
        (lambda: filled().rows(0, 1 << 62), BadArgument, "count is 4611686018427387904"),
        (lambda: arena().view("V3"), BadArgument, "dtype: "),
        (lambda: team().run(passes=1 << 62), OutOfMemory, "passes: "),
    ],
)
def test_what_is_said(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_results_that_memory_does_not_hold(monkeypatch):
    made = filled()
    monkeypatch.setattr(np, "empty", lambda *_, **__: (_ for _ in ()).throw(MemoryError))
    with pytest.raises(OutOfMemory, match="count: there is no memory for results of 128 B"):
        made.rows(0, 2)
