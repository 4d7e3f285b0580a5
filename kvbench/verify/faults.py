"""Faults planted on purpose, in a copy of a prepared cache: the comparison that passes a kernel
must notice each.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kvbench.model import Kernel
from kvbench.model.annotated import about
from kvbench.native import Cache, Library, block_of, token_bytes
from kvbench.verify.situation import Prepared, Situation, how_taken

_HERE = Situation("faults", 2, 3, 64, 260, (250, 200), (("block_tokens", 20),))


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault over all kernels it was planted under."""

    name: Annotated[str, about("what was planted")]
    planted: Annotated[int, about("kernels it was planted under")]
    caught: Annotated[int, about("of them, those where it was noticed")]
    margin: Annotated[
        float | None, about("ratio to the allowed error: the least that it caused; null if unknown")
    ]


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
        return (cache or self.cache).decode(
            self.q if q is None else q, self.kernel.variant, self.kernel.isa
        )

    @property
    def bytes(self) -> np.ndarray:
        """The cache's own."""
        return self.cache.arena.view()

    def rows(self, token: int, head: int) -> list[np.ndarray]:
        """Of sequence 0."""
        return token_bytes(self.cache, token, head)

    def copy_token(self, start: int, end: int) -> None:
        """In sequence 0."""
        for head in range(self.cache.struct.kv_heads):
            for source, target in zip(self.rows(start, head), self.rows(end, head), strict=True):
                self.bytes[target] = self.bytes[source]


# ---- the faults: each returns what the kernel then answers ---------------------------------------


def flipped_bit(victim: Victim) -> np.ndarray:
    """The highest bit of one element of one key: its sign, or what a code counts most by."""
    keys = victim.prepared.k[0, : victim.last, 0]
    token = int(np.argmax(keys @ victim.q[0, 0]))  # the one that weighs most
    element = int(np.argmax(np.abs(victim.q[0, 0] * keys[token])))
    key, (elements, size) = victim.rows(token, 0)[0], victim.block
    byte, mask = element * size + size - 1, 0x80
    # behind the scale of its block; of 4 bits, two that lie half a block apart share a byte
    if elements > 1:
        place, codes = element % elements, size - 2
        byte, mask = (
            element // elements * size + 2 + place % codes,
            (0x80 if place >= elements - codes else 0x08),
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
    for one, two in zip(victim.rows(victim.last, 0), victim.rows(victim.last, 1), strict=True):
        victim.bytes[one], victim.bytes[two] = victim.bytes[two], victim.bytes[one]
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
    """Scores over sqrt(D + 1) in place of sqrt(D); over sqrt(D + 2) where the kernel rounds."""
    dim, more = victim.prepared.situation.head_dim, 2 if victim.prepared.rounds else 1
    return victim.decode(q=victim.q * np.float32(np.sqrt(dim / (dim + more))))


def skipped_token(victim: Victim) -> np.ndarray:
    """The newest token takes the place of one that is forgotten."""
    victim.copy_token(victim.last, victim.last // 2)
    victim.cache.lengths[0] -= 1
    return victim.decode()


FAULTS = (
    flipped_bit,
    one_slot_off,
    swapped_head,
    wrong_layer,
    wrong_sequence,
    stale_tail,
    wrong_scale,
    skipped_token,
)


def plant(library: Library, kernels: Iterable[Kernel]) -> Iterator[Fault]:
    """Each fault under each of the kernels that decode, and run here."""
    kernels = [kernel for kernel in kernels if kernel.op == "decode" and kernel.runnable]
    cells = {
        kernel: (kernel.layout, kernel.dtype, *how_taken(library, kernel)) for kernel in kernels
    }
    kinds = dict.fromkeys(cells.values())
    with ExitStack() as owned:
        prepared = {
            kind: [
                owned.enter_context(Prepared(library, _HERE, *kind, seed=seed)) for seed in (0, 1)
            ]
            for kind in kinds
        }
        for fault in FAULTS:
            errors = [_error(fault, kernel, *prepared[cells[kernel]]) for kernel in kernels]
            caught = sum(error > 1 for error in errors)
            margin = finite(min(errors, default=np.inf))
            yield Fault(fault.__name__.replace("_", " "), len(errors), caught, margin)


def _error(
    fault: Callable[[Victim], np.ndarray], kernel: Kernel, prepared: Prepared, other: Prepared
) -> float:
    """The error of the damaged answer in allowed errors."""
    victim = Victim(prepared, other, kernel)
    with victim.cache:
        return prepared.error(fault(victim))
