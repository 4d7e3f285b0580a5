"""A run of several queries a step that was never measured: its times are computed."""

from dataclasses import replace

from tests.made_run import DECODE, MIB, visit

COUNTS = (1, 2, 4, 8, 16)
LAUNCHES = 7
MEMORY = 20.0  # GB/s
# GB/s of the core at one query: how many times as long as memory it takes at `q` is q * 20 / that
CORES = {"f16": 60.0, "bf16": 70.0, "i8": 25.0, "q4_0": 10.0}
HEADS = ((32, 8), (8, 8), (64, 8))  # G = 4, as llama-3-8b has them, 1 and 8
CONTEXTS = (4096, 16384)
_WALKED = 256 * MIB
_DUTY = 0.05  # of the time of one query, that each more costs besides


def point(dtype, heads, context, queries=1, **facts):
    q_heads, kv_heads = heads
    shape = replace(
        DECODE.shape,
        q_heads=q_heads,
        kv_heads=kv_heads,
        head_dim=128,
        context=context,
        capacity=context,
        q_len=queries,
    )
    return replace(DECODE, dtype=dtype, shape=shape, **facts)


def times(dtype, heads, queries):
    """As long as one query, from memory; and of the core, over the same."""
    group = heads[0] / heads[1]
    core = MEMORY / CORES[dtype] * queries * (group / 4) ** 0.5
    one = max(1.0, MEMORY / CORES[dtype] * (group / 4) ** 0.5)
    return max(1.0, core) * (1 + _DUTY * (queries - 1) / queries) / one, core / one


def visits(of, launch, noise=0.01):
    """`of`: a point of one query or of several, with its heads and dtype. A record of this launch,
    as its family has it.
    """
    heads = of.shape.q_heads, of.shape.kv_heads
    here = 1 + noise * ((launch * 7 + of.shape.q_len * 3) % 5 - 2)
    all_of = 1 + 0.05 * (launch % 3)  # what all of a launch share
    longer, core = times(of.dtype, heads, of.shape.q_len)
    one = MEMORY / max(1.0, MEMORY / CORES[of.dtype] * (heads[0] / heads[1] / 4) ** 0.5) * all_of
    rates = {
        "point": one / longer / here,
        "core": one / core,
        "twin": MEMORY * 1.02 * all_of,
        "memory": MEMORY * all_of,
    }
    if of.shape.q_len > 1:
        rates["alone"] = one
    same = {name: [rate] * 4 for name, rate in rates.items()}
    # others move a tenth less than the point: all are to move as much
    same = {
        n: [0.9 * r for r in own] if n not in ("point", "twin") else own for n, own in same.items()
    }
    found = visit(launch, same, of, walked=_WALKED, flops=1e9)
    return replace(found, traffic=dict.fromkeys(rates, found.traffic["point"]))


def records(dtypes=tuple(CORES), heads=HEADS, contexts=CONTEXTS, counts=COUNTS, **facts):
    return [
        visits(point(dtype, kind, context, count, **facts), launch)
        for dtype in dtypes
        for kind in heads
        for context in contexts
        for count in counts
        for launch in range(LAUNCHES)
    ]
