"""One case through one tier of the library: decode within its bound, twin and stores byte for byte,
guards on.
"""

from contextlib import ExitStack

import numpy as np

from tests import cases, oracle, twin
from tests.raw import (
    Arena,
    Bound,
    Raw,
    Refused,
    Team,
    decode_args,
    queries_args,
    scores_args,
    store_args,
)

SENTINEL = np.float32(-7777.25)


class Bench:
    """A library and its teams, opened once for many cases."""

    def __init__(self, raw: Raw | None = None):
        self.raw = raw or Raw()
        self.words = cases.Words.of(self.raw)
        self.teams: dict[int, Team] = {}

    def team(self, threads: int) -> Team:
        if threads not in self.teams:
            self.teams[threads] = Team(self.raw, threads)
        return self.teams[threads]

    def close(self) -> None:
        for team in self.teams.values():
            team.close()
        self.teams.clear()

    def floats(self, stack: ExitStack, values: np.ndarray, guard: int) -> np.ndarray:
        """A copy whose end (guard 1) or start (guard 2) touches an unreadable page."""
        arena = stack.enter_context(Arena(self.raw, oracle.round_up(values.nbytes, 64), guard))
        view = arena.floats(values.size, at_end=guard == 1).reshape(values.shape)
        view[...] = values
        return view


def failures(bench: Bench, case: cases.Case, isas: list[str]) -> list[str]:
    """The failures, one line each; empty if all is well."""
    found = []
    expected = cases.answer(case)
    planes = cases.stored(case) if case.store else None
    for isa in isas:
        here = bench.words.runs(case.variant, case.shape, isa)
        check = decode_failures if here else refusal_failures
        found += [f"{isa}: {line}" for line in check(bench, case, isa, *expected)]
        if case.store:
            found += [f"{isa}: {line}" for line in store_failures(bench, case, isa, planes)]
    return found


def decode_failures(bench: Bench, case: cases.Case, isa: str, expected, bound) -> list[str]:
    with ExitStack() as stack:
        cache = stack.enter_context(
            Bound(bench.raw, case.shape, case.lengths, case.table, case.guard)
        )
        cache.put(case.planes)
        q = bench.floats(stack, case.q, case.guard)
        out = bench.floats(stack, np.full(case.out, SENTINEL), case.guard)
        args = decode_args(
            bench.raw, cache, q, out, isa, case.variant, case.schedule, window=case.window,
            deterministic=case.deterministic, scale=case.scale,
            **queries_args(bench.raw, case.queries), **scores_args(bench.raw, case.scores),
        )  # fmt: skip
        bench.team(case.threads).do("decode", args)
        found = compare(case, out, expected, bound)
        if case.deterministic and case.index % 4 == 0:
            first = out.tobytes()
            bench.team(case.threads % 4 + 1).do("decode", args)
            if out.tobytes() != first:
                found.append(
                    f"not deterministic: {case.threads} against {case.threads % 4 + 1} threads"
                )
        if case.index % 3 == 0:
            found += twin_failures(bench, case, args)
        if case.shape.ring and case.window:
            found += ring_failures(bench, case, args)
        if any(
            not np.array_equal(a, b)
            for a, b in zip(cache.planes.all(), case.planes.all(), strict=True)
        ):
            found.append("decode or twin wrote into the cache")
        return found


def twin_failures(bench: Bench, case: cases.Case, args) -> list[str]:
    """Check what the twin has loaded: the rows, and nothing else. After a ring's end, and among
    kept tokens, a unit may begin inside a transposed block, which is then read from both sides. In
    these cases one unit is used.
    """
    shape, threads = case.shape, case.threads
    if shape.k.cell and (shape.ring or case.queries.kept):
        args.deterministic, threads = 0, 1
    found = bench.team(threads).sum("twin", args)
    walks = case.q_rows if case.variant == "perhead" else 1
    rows = twin.rows_words(shape, case.planes, case.table, case.ranges)
    right = walks * rows % 65536
    return [] if found == right else [f"twin: sum {found}, expected {right}"]


def ring_failures(bench: Bench, case: cases.Case, args) -> list[str]:
    """One more token may be too many for a ring: then it must be refused."""
    args.window = case.window + 1
    needed = cases.room_for(case.lengths, case.queries, args.window, ring=True)
    try:
        with bench.raw.task("decode", args, case.threads):
            planned = True
    except Refused as refused:
        planned = "window" not in refused.args[1]
    args.window = case.window
    if planned == (needed <= case.shape.capacity):
        return []
    return [f"window {case.window + 1}: a ring of {case.shape.capacity} {needed=} {planned=}"]


def refusal_failures(bench: Bench, case: cases.Case, isa: str, *_) -> list[str]:
    """A tier that lacks the variant must report that, and run nothing in its place."""
    with Bound(bench.raw, case.shape, case.lengths, case.table, case.guard) as cache:
        out = np.full(case.out, SENTINEL)
        more = queries_args(bench.raw, case.queries)
        args = decode_args(
            bench.raw, cache, case.q, out, isa, case.variant, window=case.window, **more
        )
        try:
            bench.team(case.threads).do("decode", args)
        except Refused as refused:
            named = all(
                word in refused.args[1] for word in (f"variant {case.variant}", f"isa {isa}")
            )
            return [] if named and (out == SENTINEL).all() else [f"refused, but: {refused}"]
        return [f"decode {case.variant} ran, which is not listed"]


def compare(case: cases.Case, out: np.ndarray, expected, bound) -> list[str]:
    error = np.abs(out.astype(np.float64) - expected)
    wrong = ~(error <= bound)
    if not wrong.any():
        return []
    at = np.unravel_index(np.argmax(np.where(np.isnan(error), np.inf, error) * wrong), wrong.shape)
    return [
        f"decode {case.variant} out[{', '.join(map(str, at))}] is {out[at]:.9g}, expected"
        f" {expected[at]:.9g}; error {error[at]:.3g}, bound {bound[at]:.3g}; {int(wrong.sum())} of"
        f" {wrong.size} wrong"
    ]


def store_failures(bench: Bench, case: cases.Case, isa: str, planes: oracle.Planes) -> list[str]:
    store, shape = case.store, case.shape
    with ExitStack() as stack:
        cache = stack.enter_context(Bound(bench.raw, shape, store.lengths, store.table, case.guard))
        cache.put(oracle.Planes.filled(shape, case.fill))
        k, v = (
            bench.floats(stack, cases.source(store, values), case.guard)
            for values in (store.k, store.v)
        )
        args = store_args(
            bench.raw,
            cache,
            k,
            v,
            store.tokens,
            isa,
            head_major=store.head_major,
            nt=store.nt,
            advance=case.index % 2,
        )
        op = "append" if store.append else "bulk"
        bench.team(case.threads).do(op, args)
        found = list(compare_planes(op, cache.planes, planes))
        if not np.array_equal(cache.lengths, store.lengths + (case.index % 2) * store.tokens):
            found.append(
                f"{op}: lengths are {cache.lengths.tolist()} after {store.lengths.tolist()}"
            )
        if not found:
            cache.lengths[:] = store.lengths + store.tokens
            found += unpack_failures(bench, case, cache, isa)
        if case.index % 16 == 0:
            bench.team(case.threads).do("clear", cache.cache, bench.raw.word("isa", isa))
            if any(plane.any() for plane in cache.planes.all()):
                found.append("clear left a byte")
        return found


def compare_planes(op: str, got: oracle.Planes, expected: oracle.Planes) -> list[str]:
    found = []
    for name, mine, right in zip(
        ("k", "v", "k_scale", "v_scale"), got.all(), expected.all(), strict=True
    ):
        wrong = np.flatnonzero(mine != right)
        if len(wrong):
            at = int(wrong[0])
            found.append(
                f"{op}: {name}[{at}] is {mine[at]:#04x}, expected {right[at]:#04x}; {len(wrong)}"
                " bytes wrong"
            )
    return found


def unpack_failures(bench: Bench, case: cases.Case, cache: Bound, isa: str) -> list[str]:
    """Check all live rows decoded, the oldest first; zeros after a sequence's end or for a block
    that was left out.
    """
    store, shape = case.store, case.shape
    held = np.minimum(cache.lengths, shape.capacity)
    count = int(held.max())
    if count * shape.batch * shape.kv_heads * max(side.dim for side in shape.sides) > 200_000:
        return []
    got = [
        np.full((shape.batch, count, shape.kv_heads, side.dim), SENTINEL) for side in shape.sides
    ]
    bench.team(case.threads).do(
        "unpack",
        cache.cache,
        0,
        count,
        *(bench.raw.floats(x) for x in got),
        bench.raw.word("isa", isa),
    )
    found = []
    for seq, live in enumerate(held):
        first = int(cache.lengths[seq] - live)
        slots = oracle.slots_of(shape, first, int(live))
        gone = oracle.places(shape, shape.k, store.table, seq, slots)[0] < 0
        right = oracle.load(shape, cache.planes, store.table, seq, first, int(live))
        for name, mine, rows in zip("kv", got, right, strict=True):
            expected = np.zeros(mine.shape[1:], np.float32)
            with np.errstate(all="ignore"):
                rows = np.where(gone[..., None], 0, rows).astype(np.float32)
            expected[:live] = rows.swapaxes(0, 1)
            if not np.array_equal(mine[seq], expected, equal_nan=True):
                found.append(f"unpack: {name} of sequence {seq} differs")
    return found
