"""A run of several queries a step that was never measured: its times are computed."""

from dataclasses import replace

from tests.made_run import DECODE, MIB, visit

COUNTS = (1, 2, 4, 8, 16)
LAUNCHES = 7
LONGER = {  # than one query from memory, by dtype: the core's time of one query
    "f16": 0.3,
    "i8": 0.6,
    "q4_0": 2.0,
}
HEADS = ((32, 8), (8, 8), (64, 8))  # of llama-3-8b, of one query head a KV head, and of eight
CONTEXTS = (4096, 16384)
_MEMORY = 20.0  # GB/s
_NOISE = (0.99, 1.01, 1.0, 0.98, 1.02, 1.0, 1.0)  # of a launch, beside what all in it share


def point(dtype, heads=HEADS[0], context=CONTEXTS[0], queries=1, **shape):
    q_heads, kv_heads = heads
    own = {"q_heads": q_heads, "kv_heads": kv_heads, "head_dim": 128, "q_len": queries}
    whole = {"context": context, "capacity": context}
    return replace(DECODE, dtype=dtype, shape=replace(DECODE.shape, **own, **whole, **shape))


def core(dtype, queries):
    """Its time, over that of one query from memory."""
    return LONGER[dtype] * queries


def longer(dtype, queries):
    """How many times as long as one query: the longer of memory and core."""
    return max(1.0, core(dtype, queries)) / max(1.0, core(dtype, 1))


def record(of, launch, noise=1.0):
    """`of`: one point of a family, in this launch."""
    shape, of_all = of.shape, 1 + 0.05 * (launch % 3)
    one = max(1.0, core(of.dtype, 1)) * of_all
    own = longer(of.dtype, shape.q_len) * (noise if shape.q_len > 1 else 1.0)
    seconds = {
        "point": one * own,
        "core": core(of.dtype, shape.q_len) * of_all,
        "twin": 0.98 * of_all,
        "memory": of_all,
        **({"alone": one} if shape.q_len > 1 else {}),
    }
    # visit() has all but these move a tenth less
    less = {name: 1.0 if name in ("point", "twin") else 0.9 for name in seconds}
    rates = {name: [_MEMORY * less[name] / each] * 4 for name, each in seconds.items()}
    found = visit(launch, rates, of, walked=256 * MIB, flops=1e9)
    return replace(found, traffic=dict.fromkeys(seconds, found.traffic["point"]))


def family(dtype, heads=HEADS[0], context=CONTEXTS[0], counts=COUNTS, noise=_NOISE, **shape):
    """`noise`: by launch."""
    return [
        record(point(dtype, heads, context, count, **(shape if count > 1 else {})), launch, each)
        for count in counts
        for launch, each in enumerate(noise)
    ]


def records(dtypes=tuple(LONGER), heads=HEADS, contexts=CONTEXTS):
    return [
        each
        for dtype in dtypes
        for kind in heads
        for context in contexts
        for each in family(dtype, kind, context)
    ]
