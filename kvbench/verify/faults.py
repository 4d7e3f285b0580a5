"""Faults planted on purpose, in a copy of a prepared cache: the comparison that passes a kernel must notice each."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kvbench.model import Kernel
from kvbench.model.annotated import about
from kvbench.native import Cache, Library, block_of, key_bytes
from kvbench.verify.situation import Prepared, Situation, how_taken

_HERE = Situation("faults", 2, 3, 64, 260, (250, 200), (("block_tokens", 20),))


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault over all kernels it was planted under."""

    name: Annotated[str, about("what was planted")]
    planted: Annotated[int, about("kernels it was planted under")]
    caught: Annotated[int, about("of them, those where it was noticed")]
    margin: Annotated[float | None, about("ratio to the allowed error: the least that it caused; null if unknown")]


def finite(share: float) -> float | None:
    return share if np.isfinite(share) else None


class Victim:
    """A copy of the prepared cache that may be damaged, and a kernel that runs on it."""

    def __init__(self, prepared: Prepared, other: Prepared, kernel: Kernel) -> None:
        self.prepared, self.other, self.kernel = prepared, other, kernel
        self.cache, self.q = prepared.copy(), prepared.q.copy()
        self.last = int(self.cache.lengths[0]) - 1  # newest token of sequence 0
        self.block = block_of(self.cache.dtype, self.cache.library)  # elements and bytes

    def decode(self, cache: Cache | None = None, q: np.ndarray | None = None) -> np.ndarray:
        return (cache or self.cache).decode(self.q if q is None else q, self.kernel.variant, self.kernel.isa)

    @property
    def bytes(self) -> np.ndarray:
        """The cache's own."""
        return self.cache.arena.view()

    def rows(self, token: int, head: int) -> list[np.ndarray]:
        """Where the bytes of K and V of a token of sequence 0 lie, and of their scales where rows have any."""
        c = self.cache.struct
        row, scale = self.cache.place(token, head)
        places = [key_bytes(self.cache, token, head), c.k.bytes + row + np.arange(c.v.row_bytes)]
        if c.k.scale_bytes:
            width = min(c.k.scale_token_stride, c.k.scale_head_stride)  # scales lie side by side one way or the other
            scales = c.k.bytes + c.v.bytes + scale + np.arange(width)
            places += [scales, c.k.scale_bytes + scales]
        return places

    def altered(self, byte: int, mask: int, token: int) -> dict[int, float]:
        """By how much which elements of a key of sequence 0 and head 0 change when these bits of the cache do."""
        library = self.cache.library.isas()[0]
        before = self.cache.rows(token, 1, library)[0][0, 0, 0]
        self.bytes[byte] ^= mask
        after = self.cache.rows(token, 1, library)[0][0, 0, 0]
        self.bytes[byte] ^= mask
        with np.errstate(invalid="ignore"):
            change = np.abs(after - before)
        return {int(element): float(change[element]) for element in np.flatnonzero(after != before)}

    def copy_token(self, start: int, end: int) -> None:
        """In sequence 0."""
        for head in range(self.cache.struct.kv_heads):
            for source, target in zip(self.rows(start, head), self.rows(end, head), strict=True):
                self.bytes[target] = self.bytes[source]

    def swap(self, one: list[np.ndarray], two: list[np.ndarray]) -> None:
        for a, b in zip(one, two, strict=True):
            self.bytes[a], self.bytes[b] = self.bytes[b], self.bytes[a]


# ---- the faults: each returns what the kernel then answers ----------------------------------------------------------


def flipped_bit(victim: Victim) -> np.ndarray:
    """The highest bit of one element of one key: its sign, or what a code counts most by."""
    keys = victim.prepared.k[0, : victim.last, 0]
    token = int(np.argmax(keys @ victim.q[0, 0]))  # the one that weighs most
    element = int(np.argmax(np.abs(victim.q[0, 0] * keys[token])))
    key, (elements, size) = victim.rows(token, 0)[0], victim.block
    byte, mask = element * size + size - 1, 0x80
    if elements > 1:  # wherever in its block the bit is that changes the element most, and no other
        first = element // elements * size
        places = [(byte, mask) for byte in range(first, first + size) for mask in (0x80, 0x08)]
        changes = {place: victim.altered(key[place[0]], place[1], token) for place in places}
        byte, mask = max(
            (place for place in places if [*changes[place]] == [element]), key=lambda at: changes[at][element]
        )
    victim.bytes[key[byte]] ^= mask
    return victim.decode()


def one_slot_off(victim: Victim) -> np.ndarray:
    """The newest token written behind its slot, which keeps what was there before."""
    victim.copy_token(victim.last, victim.last + 1)
    victim.copy_token(0, victim.last)
    return victim.decode()


def swapped_head(victim: Victim) -> np.ndarray:
    """One token's K and V of two heads, exchanged."""
    victim.swap(victim.rows(victim.last, 0), victim.rows(victim.last, 1))
    return victim.decode()


def wrong_layer(victim: Victim) -> np.ndarray:
    return victim.decode(cache=victim.other.cache)


def wrong_sequence(victim: Victim) -> np.ndarray:
    """Every query meets the tokens of the other sequence."""
    return victim.decode(q=victim.q[::-1])[::-1]


def stale_tail(victim: Victim) -> np.ndarray:
    """One token too many: a row that an earlier request left behind."""
    victim.copy_token(0, victim.last + 1)
    victim.cache.lengths[0] += 1
    return victim.decode()


def wrong_scale(victim: Victim) -> np.ndarray:
    """Scores over sqrt(D + 1) in place of sqrt(D); over sqrt(D + 2) where the kernel rounds to whole numbers."""
    dim, more = victim.prepared.situation.head_dim, 2 if victim.prepared.rounds else 1
    return victim.decode(q=victim.q * np.float32(np.sqrt(dim / (dim + more))))


def wrong_row_scale(victim: Victim) -> np.ndarray | None:
    """The scales of the longest and the shortest key, or of their blocks, exchanged. Nothing where rows have none."""
    length = np.abs(victim.prepared.k[0, : victim.last, 0]).max(axis=1)
    one, two = (victim.rows(int(token), 0) for token in (length.argmax(), length.argmin()))
    elements, size = victim.block
    if elements > 1:  # the bytes of a block that all its elements hang on
        token = int(length.argmax())
        found = [byte for byte in range(size) if len(victim.altered(one[0][byte], 4, token)) > elements // 2]
        victim.swap(*([row[0].reshape(-1, size)[:, found[0] : found[-1] + 1]] for row in (one, two)))
    elif len(one) == 4:
        victim.swap(one[2:3], two[2:3])
    else:
        return None
    return victim.decode()


def skipped_token(victim: Victim) -> np.ndarray:
    """The newest token takes the place of one that is forgotten."""
    victim.copy_token(victim.last, victim.last // 2)
    victim.cache.lengths[0] -= 1
    return victim.decode()


FAULTS: tuple[Callable[[Victim], np.ndarray | None], ...] = (
    flipped_bit, one_slot_off, swapped_head, wrong_layer, wrong_sequence, stale_tail, wrong_scale, wrong_row_scale,
    skipped_token,
)  # fmt: skip


def plant(library: Library, kernels: Iterable[Kernel]) -> Iterator[Fault]:
    """Each fault under each of the kernels that decode, and run here."""
    kernels = [kernel for kernel in kernels if kernel.op == "decode" and kernel.runnable]
    cells = {kernel: (kernel.layout, kernel.dtype, *how_taken(library, kernel)) for kernel in kernels}
    kinds = dict.fromkeys(cells.values())
    with ExitStack() as owned:
        prepared = {
            kind: [owned.enter_context(Prepared(library, _HERE, *kind, seed=seed)) for seed in (0, 1)] for kind in kinds
        }
        for fault in FAULTS:
            errors = [_error(fault, kernel, *prepared[cells[kernel]]) for kernel in kernels]
            errors = [error for error in errors if error is not None]
            caught = sum(error > 1 for error in errors)
            margin = finite(min(errors, default=np.inf))
            yield Fault(fault.__name__.replace("_", " "), len(errors), caught, margin)


def _error(
    fault: Callable[[Victim], np.ndarray | None], kernel: Kernel, prepared: Prepared, other: Prepared
) -> float | None:
    """The error of the damaged answer in allowed errors; none where the fault does not apply."""
    victim = Victim(prepared, other, kernel)
    with victim.cache:
        out = fault(victim)
        return None if out is None else prepared.error(out)
