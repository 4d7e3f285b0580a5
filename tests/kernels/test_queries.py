"""Several queries a step: what each rule of kvb_decode says that they attend to, by hand; and every
variant on every tier.
"""

from dataclasses import replace

import numpy as np
import pytest

from tests import cases, oracle, trial
from tests.kernels.test_decode import EVERY, case_of, of, table_of
from tests.queries import BLOCK, TREE, Queries
from tests.raw import Bound, Refused, decode_args, queries_args

LENGTHS = (600, 2, 0)
NONE = ([], [], [], [])
SHORT = ([], [], [0], [0, 1])  # of two tokens, the last of four queries
WORDS = np.array([[0b0001, 0b0011, 0b0101, 0b1011]] * 3, np.uint32)
# the same, with bits of tokens that do not exist
TOLD = WORDS | np.uint32(0xFFFFFFF0)
TWO = np.array([[600, 600, 0, 0], [2, 2, 0, 0], [0] * 4])
HOLE = np.array([[600, 0, 600, 0], [0, 2, 0, 0], [0] * 4])
ENDS = np.array([[7, 600, 0, 256], [2, 0, 1, 2], [0] * 4])


def to(end: int, *more: int) -> list[int]:
    return [*range(end), *more]


# the queries, the window, and for each sequence the tokens of each query
RULES = {
    "chain": (Queries(4), 0, ((to(597), to(598), to(599), to(600)), SHORT, NONE)),
    "block": (Queries(4, BLOCK), 0, ([to(600)] * 4, [to(2)] * 4, NONE)),
    "tree": (
        Queries(4, TREE, tree=TOLD),
        0,
        (
            (to(597), to(598), to(597, 598), to(598, 599)),
            ([], [], [0], [1]),
            NONE,
        ),
    ),
    "any ends": (
        Queries(4, ends=ENDS),
        0,
        ((to(7), to(600), [], to(256)), (to(2), [], to(1), to(2)), NONE),
    ),
    "block of two": (
        Queries(4, BLOCK, TWO),
        0,
        ((to(600), to(600), [], []), (to(2), to(2), [], []), NONE),
    ),
    "tree of two": (
        Queries(4, TREE, TWO, TOLD | np.uint32(0b1100)),
        0,
        ((to(599), to(600), [], []), ([0], [0, 1], [], []), NONE),
    ),
    "tree with a hole": (
        Queries(4, TREE, HOLE, WORDS),
        0,
        ((to(598), [], to(598, 599), []), ([], [0, 1], [], []), NONE),
    ),
    "chain, window": (
        Queries(4),
        3,
        (
            ([594, 595, 596], [595, 596, 597], [596, 597, 598], [597, 598, 599]),
            SHORT,
            NONE,
        ),
    ),
    "block, window": (
        Queries(4, BLOCK),
        300,
        ([[*range(300, 600)]] * 4, [to(2)] * 4, NONE),
    ),
    "tree, window": (
        Queries(4, TREE, tree=WORDS),
        2,
        (
            ([595, 596], [596, 597], [596, 598], [597, 599]),
            ([], [], [0], [1]),
            NONE,
        ),
    ),
    "tree, window and tokens before": (
        Queries(4, TREE, tree=WORDS),
        5,
        (
            (
                [592, 593, 594, 595, 596],
                [593, 594, 595, 596, 597],
                [593, 594, 595, 596, 598],
                [594, 595, 596, 597, 599],
            ),
            ([], [], [0], [1]),
            NONE,
        ),
    ),
    "any ends, window": (
        Queries(4, ends=ENDS),
        2,
        (([5, 6], [598, 599], [], [254, 255]), ([0, 1], [], [0], [0, 1]), NONE),
    ),
}
RULED = pytest.mark.parametrize("rule", RULES)


@RULED
def test_what_a_rule_says(rule):
    asked, window, right = RULES[rule]
    for seq, tokens in enumerate(right):
        found = [asked.tokens(seq, query, LENGTHS[seq], window).tolist() for query in range(4)]
        assert found == list(tokens), seq


def layouts_of(variant: str) -> list[str]:
    return sorted(layout for own, layout in EVERY if own == variant)


@pytest.mark.parametrize("variant", sorted({variant for variant, _ in EVERY}))
@RULED
def test_every_variant_obeys_it(bench, rule, variant):
    """Every variant runs in some layout, with few heads or many. Tokens that no query attends to
    are NaN. The newest tokens have scores and values that would show in a wrong place.
    """
    asked, window, _ = RULES[rule]
    turn, layouts = list(RULES).index(rule), layouts_of(variant)
    layout = layouts[turn % len(layouts)]
    shape = of(variant, layout, batch=3, capacity=600, v_dim=(96, 40)[turn % 2])
    how = {"variant": variant, "q_heads": 2 * (1, 3, 8)[turn % 3], "window": window}
    how |= {"queries": asked, "evicted": True, "deterministic": turn % 2}
    table = table_of(shape)
    plain = case_of(bench, shape, LENGTHS, table, **how)
    assert trial.failures(bench, plain, bench.raw.tiers()) == []
    loud = case_of(bench, shape, LENGTHS, table, kind="skewed", **how)
    rng = np.random.default_rng(7)
    k, v = (rng.standard_normal((2, 4, side.dim), dtype=np.float32) for side in shape.sides)
    oracle.put(shape, loud.planes, table, 0, np.arange(596, 600), 30 * k, 1000 * v, padding=False)
    assert trial.failures(bench, loud, bench.raw.tiers()) == []


@pytest.mark.parametrize("rule", [rule for rule in RULES if RULES[rule][1]])
def test_a_ring_holds_what_the_earliest_query_attends_to(bench, rule):
    """If the ring has lost one of these tokens, the call is refused."""
    asked, window, right = RULES[rule]
    earliest = min(tokens[0] for tokens in right[0] if tokens)
    shape = of("flash", "head", batch=3, capacity=600 - earliest, ring=True)
    how = {"queries": asked, "window": window}
    passing = case_of(bench, shape, LENGTHS, **how)
    assert trial.failures(bench, passing, bench.raw.tiers()) == []
    with Bound(bench.raw, replace(shape, capacity=shape.capacity - 1), LENGTHS) as bound:
        out = np.zeros(passing.out, np.float32)
        more = queries_args(bench.raw, asked)
        args = decode_args(bench.raw, bound, passing.q, out, "scalar", window=window, **more)
        for maker in ("decode", "twin"):
            with pytest.raises(Refused, match=f"ring keeps capacity {shape.capacity - 1}"):
                bench.team(1).do(maker, args)
    assert cases.room_for(passing.lengths, asked, window, ring=True) == shape.capacity
