"""Small caches with known content, and the right answer of decode on each."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kvbench.closing import Closing
from kvbench.model import Kernel
from kvbench.model.masks import BLOCK, CHAIN, TREE
from kvbench.native import Arena, Asked, Cache, Library, Team, attended, described, rewrite
from kvbench.oracle import attention, attention_in_steps, rounded, tolerance, whole

# the root mean square of what rounding does to many numbers is so much less than what it may do to
# one
_TOGETHER = 4
STALE = 0xFF  # stands wherever nothing was stored: NaN in every float format


@dataclass(frozen=True, slots=True)
class Several:
    """So many queries for the newest tokens of each sequence; or `counts`[b] of them."""

    queries: int
    mask: str = CHAIN
    counts: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Situation:
    """What is stored, lengths[b] tokens in sequence b, and what is asked beside one query of each.
    `facts` goes to Cache.
    """

    name: str
    kv_heads: int
    group: int
    head_dim: int
    capacity: int
    lengths: tuple[int, ...]
    facts: tuple[tuple[str, Any], ...] = ()
    several: tuple[Several, ...] = ()


QUICK = (
    Situation("ragged batch", 2, 3, 80, 340, (333, 70), several=(Several(4, TREE, (4, 3)),)),
    Situation(
        "ring and window",
        2,
        4,
        64,
        100,
        (257, 99),
        (("window", 90),),
        (Several(3), Several(2, BLOCK)),
    ),
)
FULL = (
    *QUICK,
    Situation("one token", 1, 1, 1, 1, (1,), several=(Several(3), Several(3, TREE))),
    Situation("many queries", 1, 2, 32, 70, (65,), several=(Several(32), Several(32, TREE))),
    Situation(
        "odd sizes",
        3,
        7,
        37,
        700,
        (129, 1, 641),
        (("block_tokens", 5), ("pad", 0)),
        (Several(5, CHAIN, (0, 4, 5)),),
    ),
    Situation(
        "window",
        1,
        2,
        128,
        1200,
        (1111,),
        (("window", 1000), ("ring", False)),
        (Several(5, TREE),),
    ),
    Situation("large group", 1, 33, 64, 300, (300,), (("block_tokens", 256),), (Several(2),)),
    Situation("wide head", 2, 8, 256, 520, (513,), (("block_tokens", 1),), (Several(3, BLOCK),)),
    Situation("long", 2, 2, 64, 4500, (4460,), several=(Several(2, BLOCK),)),
)


class Question:
    """Queries q [B, Hq, D] or [B, queries, Hq, D] to a prepared cache. `facts`: those of
    decode_task that say what each attends to.
    """

    def __init__(self, prepared: "Prepared", rng: np.random.Generator, several: Several) -> None:
        s, self._prepared, self.several = prepared.situation, prepared, several
        batch, queries = len(s.lengths), several.queries
        shape = (batch, queries, s.kv_heads * s.group, s.head_dim)
        self.q = rng.standard_normal(shape if queries > 1 else (batch, *shape[2:]), np.float32)
        self.facts: dict[str, Any] = {}
        if queries > 1:
            tree = rng.random((batch, queries, queries)) < 0.5 if several.mask == TREE else None
            lengths, counts = prepared.cache.lengths, several.counts
            self.facts = attended(self.q, lengths, several.mask, tree, counts)

    @property
    def asked(self) -> Asked:
        own = self.several
        window = self._prepared.cache.window or 0
        return Asked(own.queries, own.mask, window, own.counts is not None)

    @cached_property
    def answer(self) -> tuple[np.ndarray, float | np.ndarray]:
        """What is right, and the largest error of a correct kernel."""
        own = self.several
        tree = self.facts.get("tree")
        return self._prepared.answer(self.q, mask=own.mask, tree=tree, queries=own.counts)

    def forget(self) -> None:
        """For something else is right now."""
        self.__dict__.pop("answer", None)

    def error(self, out: np.ndarray) -> float:
        """Largest difference to the right answer, in allowed ones; infinite where a number is
        missing.
        """
        right, allowed = self.answer
        share = np.abs(out.astype(np.float64) - right) / allowed
        if np.isnan(share).any():
            return np.inf
        if np.ndim(allowed) == 0:
            return float(share.max())
        heads = self._prepared.situation.kv_heads
        together = np.square(share).reshape(*share.shape[:-2], heads, -1).mean(axis=-1)
        return float(max(share.max(), _TOGETHER * np.sqrt(together.max())))

    def said(self) -> list[memoryview]:
        """All that a kernel is told of it."""
        arrays = (each for each in self.facts.values() if isinstance(each, np.ndarray))
        return [self.q.data, *(each.data for each in arrays)]


class Prepared(Closing):
    """A situation stored in one layout and dtype by the plainest tier, for kernels that take the
    values as those of the dtype `read` (None: as they are), and that round queries and weights
    where they are of a variant `stepped`. questions: the first is of one query. A copy has the same
    bytes, elsewhere.
    """

    def __init__(
        self,
        library: Library,
        situation: Situation,
        layout: str,
        dtype: str,
        read: str | None = None,
        stepped: str | None = None,
        seed: int = 0,
        **facts: Any,
    ) -> None:
        s, self.library, self.situation = situation, library, situation
        self._kind = {"layout": layout, "dtype": dtype, **dict(s.facts), **facts}
        self._kind |= {"shuffle": 1} if Cache.is_paged(layout, library) else {}
        self.cache = self._open()
        self.cache.arena.view()[:] = STALE
        rng, self._other = (
            np.random.default_rng([seed, len(s.lengths), s.head_dim]),
            np.random.default_rng(),
        )
        stored = (len(s.lengths), max(s.lengths), s.kv_heads, s.head_dim)
        self.k, self.v = rng.standard_normal((2, *stored), dtype=np.float32)
        # all sequences take the longest one's tokens;
        self.cache.bulk(self.k, self.v, isa=library.isas()[0])
        # then the shorter ones forget, so that their tails are stale
        self.cache.lengths[:] = s.lengths
        self._taken = (
            None if read == dtype else read,
            library.levels(stepped, dtype, s.head_dim) if stepped else None,
        )
        self.questions = [Question(self, rng, each) for each in (Several(1), *s.several)]

    @property
    def rounds(self) -> bool:
        """Whether its kernels round queries and weights, which hides the smallest faults."""
        return self._taken[1] is not None

    def answer(self, q: np.ndarray, **facts: Any) -> tuple[np.ndarray, float | np.ndarray]:
        """Right for what is stored now: float64 of q's shape. And the largest error of a correct
        kernel, for all of it; or for each number, where kernels round.
        """
        s, (read, levels) = self.situation, self._taken
        k, v = self.cache.numpy(isa=self.library.isas()[0])
        if read:
            k, v = rounded(k, read), rounded(v, read)
        held, window = np.minimum(self.cache.lengths, s.capacity), self.cache.window
        allowed = tolerance(float(np.abs(v).max(initial=0.0)), max(s.lengths))
        if levels:
            right, off = attention_in_steps(q, whole(k, v), held, levels, window, **facts)
            return right, allowed + off
        return attention(q, whole(k, v), held, window, **facts), allowed

    def _open(self) -> Cache:
        s = self.situation
        return Cache(
            s.kv_heads,
            s.head_dim,
            s.capacity,
            len(s.lengths),
            library=self.library,
            guard=1,
            pages=self.library.words("pages")[0],
            **self._kind,
        )

    def change_token(self) -> None:
        """Other rows for one token of the longest sequence, in place."""
        s, longest = self.situation, max(self.situation.lengths)
        token = int(
            self._other.integers(
                max(0, longest - min(self.cache.window or longest, s.capacity)), longest
            )
        )
        rows = self._other.standard_normal(
            (2, len(s.lengths), s.kv_heads, s.head_dim), dtype=np.float32
        )
        with Team(1, library=self.library) as team:
            rewrite(team, self.cache, token, *rows)
        for question in self.questions:
            question.forget()

    def change_queries(self) -> None:
        for question in self.questions:
            question.q[:] = self._other.standard_normal(question.q.shape, dtype=np.float32)
            question.forget()

    def read(self) -> bytes:
        """A digest of all that a kernel is given."""
        found = hashlib.blake2b(self.cache.arena.view().data)
        told = (part for question in self.questions for part in question.said())
        for part in (*told, *described(self.cache)):
            found.update(part)
        return found.digest()

    def copy(self) -> Cache:
        twin = self._open()
        twin.arena.view()[:] = self.cache.arena.view()
        twin.lengths[:] = self.cache.lengths
        return twin

    def close(self) -> None:
        self.cache.close()


def scratch(library: Library, size: int) -> Arena:
    """Guarded memory for a probe."""
    return Arena(size, library.words("pages")[0], 1, library)


def how_taken(library: Library, kernel: Kernel) -> tuple[str | None, str | None]:
    """`read` and `stepped` of what a decode kernel is prepared for."""
    stepped = kernel.variant if library.levels(kernel.variant, kernel.dtype) else None
    return library.reads(kernel.variant, kernel.layout, kernel.dtype, "k"), stepped


def takes(library: Library, kernel: Kernel, question: Question) -> bool:
    """Whether a decode kernel is asked it: a plug-in's need not take several queries."""
    if kernel.variant in library.own_variants or question.several.queries == 1:
        return True
    return not library.plugins.untaken(question.asked, *kernel.id.split(".")[1:])
