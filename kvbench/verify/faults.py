"""Faults planted on purpose in a copy of a prepared cache. The comparison that passes a kernel must
notice each of them.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from kvbench.closing import Closing
from kvbench.model import Kernel
from kvbench.model.annotated import about
from kvbench.model.masks import CHAIN, TREE
from kvbench.native import Cache, Library, Team, block_of, decode_task, token_bytes
from kvbench.verify.prepared import Prepared, Question, how_taken, takes
from kvbench.verify.situation import SINKS, SLOPES, SOFTCAP, Several, Situation

_QUERIES = 3
_HERE = Situation(
    "faults",
    2,
    3,
    64,
    260,
    (250, 200),
    (("block_tokens", 20),),
    (
        Several(_QUERIES, CHAIN, (_QUERIES, 2)),
        Several(_QUERIES, TREE),
        Several(1, scores=(SINKS,)),
        Several(1, scores=(SOFTCAP,)),
        Several(1, scores=(SLOPES, SINKS)),
    ),
)
_ONE, _CHAIN, _TREE, _SINKS, _CAP, _SLOPES = range(6)  # indexes of the cache's questions


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


class Victim(Closing):
    """A kernel, its question, and the prepared cache, or a copy if the cache is to be damaged."""

    def __init__(
        self, prepared: Prepared, other: Prepared, kernel: Kernel, question: Question, team: Team
    ) -> None:
        self.prepared, self.other, self.kernel, self._team = prepared, other, kernel, team
        self._whole, self.q, self.facts = prepared.cache, question.q, question.facts
        self.last = int(self._whole.lengths[0]) - 1  # newest token of sequence 0
        self.block = block_of(self._whole.dtype, self._whole.library)  # elements and bytes

    @cached_property
    def cache(self) -> Cache:
        """A copy of the prepared cache."""
        self._whole = self.prepared.copy()
        return self._whole

    def close(self) -> None:
        if self._whole is not self.prepared.cache:
            self._whole.close()

    @property
    def lengths(self) -> np.ndarray:
        return self._whole.lengths[:, None]

    def decode(
        self, cache: Cache | None = None, q: np.ndarray | None = None, **facts: np.ndarray | float
    ) -> np.ndarray:
        """Ask the kernel. `facts` replace those of the question."""
        cache, q = cache or self._whole, self.q if q is None else np.ascontiguousarray(q)
        how = {"isa": self.kernel.isa, "variant": self.kernel.variant, **self.facts, **facts}
        out = np.empty_like(q)
        with decode_task("decode", cache, q, out, self._team.threads, **how) as task:
            self._team.run(task)
        return out

    @property
    def bytes(self) -> np.ndarray:
        """The bytes of the prepared cache."""
        return self.cache.arena.view()

    def rows(self, token: int, head: int) -> list[np.ndarray]:
        """The bytes of a token's rows in sequence 0."""
        return token_bytes(self.cache, token, head)

    def copy_token(self, start: int, end: int) -> None:
        """Copy a token over another one in sequence 0."""
        for head in range(self.cache.struct.kv_heads):
            for source, target in zip(self.rows(start, head), self.rows(end, head), strict=True):
                self.bytes[target] = self.bytes[source]


# ---- the faults: each returns what the kernel then answers ---------------------------------------


def flipped_bit(victim: Victim) -> np.ndarray:
    """The highest bit of one element of one key: its sign, or the largest part of a code."""
    keys = victim.prepared.k[0, : victim.last, 0]
    token = int(np.argmax(keys @ victim.q[0, 0]))  # the token with the largest weight
    element = int(np.argmax(np.abs(victim.q[0, 0] * keys[token])))
    key, (elements, size) = victim.rows(token, 0)[0], victim.block
    byte, mask = element * size + size - 1, 0x80
    # after the scale of its block; with 4 bits, elements half a block apart share a byte
    if elements > 1:
        place, codes = element % elements, size - 2
        byte, mask = (
            element // elements * size + 2 + place % codes,
            (0x80 if place >= elements - codes else 0x08),
        )
    victim.bytes[key[byte]] ^= mask
    return victim.decode()


def one_slot_off(victim: Victim) -> np.ndarray:
    """The newest token is written after its slot; the slot keeps its old bytes."""
    victim.copy_token(victim.last, victim.last + 1)
    victim.copy_token(0, victim.last)
    return victim.decode()


def swapped_head(victim: Victim) -> np.ndarray:
    """K and V of one token are exchanged between two heads."""
    for one, two in zip(victim.rows(victim.last, 0), victim.rows(victim.last, 1), strict=True):
        victim.bytes[one], victim.bytes[two] = victim.bytes[two], victim.bytes[one]
    return victim.decode()


def wrong_layer(victim: Victim) -> np.ndarray:
    return victim.decode(cache=victim.other.cache)


def wrong_sequence(victim: Victim) -> np.ndarray:
    """Every query attends to the tokens of the other sequence."""
    return victim.decode(q=victim.q[::-1])[::-1]


def stale_tail(victim: Victim) -> np.ndarray:
    """One token too many: a row that an earlier request left there."""
    victim.copy_token(0, victim.last + 1)
    victim.cache.lengths[0] += 1
    return victim.decode()


def wrong_scale(victim: Victim) -> np.ndarray:
    """Scores are divided by sqrt(D + 1), not sqrt(D); by sqrt(D + 2) if the kernel rounds."""
    dim, more = victim.prepared.situation.head_dim, 2 if victim.prepared.rounds else 1
    return victim.decode(q=victim.q * np.float32(np.sqrt(dim / (dim + more))))


def skipped_token(victim: Victim) -> np.ndarray:
    """The newest token is copied over an older one, which is lost."""
    victim.copy_token(victim.last, victim.last // 2)
    victim.cache.lengths[0] -= 1
    return victim.decode()


def mask_off_by_one(victim: Victim) -> np.ndarray:
    """Each query but the last attends to one token too many, as the next query does."""
    ends = victim.facts["ends"]
    return victim.decode(ends=np.where(ends, np.minimum(ends + 1, victim.lengths), 0))


def mask_without_its_own(victim: Victim) -> np.ndarray:
    """Each query attends only to the tokens before its own."""
    ends = victim.facts["ends"]
    return victim.decode(ends=np.maximum(0, ends - 1))


def end_of_its_neighbour(victim: Victim) -> np.ndarray:
    """One row of a group is wrong: the last head of the first query ends where the second query
    does.
    """
    ends = victim.facts["ends"].copy()
    ends[0, 0] = ends[0, 1]
    right, wrong = victim.decode(), victim.decode(ends=ends)
    head = victim.prepared.situation.group - 1
    right[0, 0, head] = wrong[0, 0, head]
    return right


def swapped_tree_bit(victim: Victim) -> np.ndarray:
    """A query attends to the second of the newest tokens instead of the first, or the reverse."""
    tree = victim.facts["tree"].copy()
    tree.flat[np.argmax((tree ^ tree >> 1) & 1)] ^= 0b11  # the first word where they differ
    return victim.decode(tree=tree)


def sink_of_each_half(victim: Victim) -> np.ndarray:
    """The sink's weight counts twice, as if two units had each added it."""
    return victim.decode(sinks=victim.facts[SINKS] + np.float32(np.log(2)))


def scores_not_capped(victim: Victim) -> np.ndarray:
    return victim.decode(softcap=0.0)


def slope_from_the_next_token(victim: Victim) -> np.ndarray:
    """Every score gets one slope too much; beside a sink, the sink gets one slope less."""
    return victim.decode(sinks=victim.facts[SINKS] + victim.facts[SLOPES])


# the faults, each with its question
FAULTS: dict[Callable[[Victim], np.ndarray], int] = {
    flipped_bit: _ONE,
    one_slot_off: _ONE,
    swapped_head: _ONE,
    wrong_layer: _ONE,
    wrong_sequence: _ONE,
    stale_tail: _ONE,
    wrong_scale: _ONE,
    skipped_token: _ONE,
    mask_off_by_one: _CHAIN,
    mask_without_its_own: _CHAIN,
    end_of_its_neighbour: _CHAIN,
    swapped_tree_bit: _TREE,
    sink_of_each_half: _SINKS,
    scores_not_capped: _CAP,
    slope_from_the_next_token: _SLOPES,
}


def plant(library: Library, kernels: Iterable[Kernel]) -> Iterator[Fault]:
    """Plant each fault under each decode kernel that runs here."""
    kernels = [kernel for kernel in kernels if kernel.op == "decode" and kernel.runnable]
    cells = {
        kernel: (kernel.layout, kernel.dtype, how_taken(library, kernel).of(_HERE))
        for kernel in kernels
    }
    kinds = dict.fromkeys(cells.values())
    with ExitStack() as owned:
        team = owned.enter_context(Team(1, library=library))
        prepared = {
            kind: [
                owned.enter_context(Prepared(library, _HERE, *kind, seed=seed)) for seed in (0, 1)
            ]
            for kind in kinds
        }
        for fault, which in FAULTS.items():
            errors = []
            for kernel in kernels:
                own, other = prepared[cells[kernel]]
                question = own.questions[which]
                if takes(library, kernel, question):
                    with Victim(own, other, kernel, question, team) as victim:
                        # the damaged answer's error, in allowed errors
                        errors.append(question.error(fault(victim)))
            if errors:
                caught = sum(error > 1 for error in errors)
                name = fault.__name__.replace("_", " ")
                yield Fault(name, len(errors), caught, finite(min(errors)))
