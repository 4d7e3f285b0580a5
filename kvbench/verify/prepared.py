"""Caches of the situations with known content, and the right answer of decode on each."""

import hashlib
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from kvbench.closing import Closing
from kvbench.errors import KvbenchError
from kvbench.model import Kernel
from kvbench.model.masks import TREE
from kvbench.model.planes import PLANES, together
from kvbench.model.scores import sinks, slopes
from kvbench.native import (
    Arena,
    Asked,
    Cache,
    Library,
    Team,
    attended,
    block_of,
    channel_of,
    decode_task,
    described,
    rewrite,
    times_channel,
)
from kvbench.oracle import (
    Scores,
    attention,
    attention_in_steps,
    rounded,
    rounding,
    tolerance,
    whole,
)
from kvbench.verify.situation import SINKS, SLOPES, SOFTCAP, Several, Situation

# The largest rounding error of one number, over the root mean square error of many numbers.
_TOGETHER = 4
STALE = 0xFF  # byte of everything that was not stored: NaN in every float format
_CAP, _BIAS = 1.5, 8.0  # a softcap that changes most scores; ALiBi's largest bias


class Question:
    """Queries q [B, Hq, D] or [B, queries, Hq, D] to a prepared cache. `facts`: arguments of
    decode_task that say what each query attends to.
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
        heads = s.kv_heads * s.group
        every: dict[str, Any] = {
            SINKS: np.array(sinks(heads, max(s.lengths)), np.float32),
            SOFTCAP: _CAP,
            SLOPES: np.array(slopes(_BIAS, heads), np.float32),
        }
        self._scores = {name: every[name] for name in several.scores}
        self.facts |= self._scores

    @property
    def asked(self) -> Asked:
        own = self.several
        window = self._prepared.cache.window or 0
        return Asked(
            own.queries,
            own.mask,
            window,
            ragged=own.counts is not None,
            softcap=SOFTCAP in own.scores,
            slopes=SLOPES in own.scores,
        )

    @property
    def alike(self) -> bool:
        """Whether K and V have the same dtype and width."""
        return self._prepared.situation.alike

    def unanswered(self) -> np.ndarray:
        """An array for an answer, filled with NaN."""
        dims = *self.q.shape[:-1], self._prepared.situation.v_dim
        return np.full(dims, np.nan, dtype=np.float32)

    @cached_property
    def answer(self) -> tuple[np.ndarray, float | np.ndarray]:
        """The right answer, and the largest error of a correct kernel."""
        own = self.several
        return self._prepared.answer(
            self.q,
            mask=own.mask,
            tree=self.facts.get("tree"),
            queries=own.counts,
            scores=Scores(**self._scores, kept=self._prepared.cache.kept),
        )

    def forget(self) -> None:
        """Drop the right answer: the cache or the queries have changed."""
        self.__dict__.pop("answer", None)

    def error(self, out: np.ndarray) -> float:
        """The largest difference to the right answer, in allowed errors; infinite if a number is
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
        """All that a kernel is told about the question."""
        arrays = (each for each in self.facts.values() if isinstance(each, np.ndarray))
        return [self.q.data, *(each.data for each in arrays)]


class Taken(NamedTuple):
    """How kernels read what is stored. `read`: the dtype as whose values they take it. `partner`:
    the dtype of V in situations with two dtypes; `partner_read`: as whose values V is taken. None:
    as stored. `stepped`: the variant, if it rounds queries and weights.
    """

    read: str | None = None
    partner: str = ""
    partner_read: str | None = None
    stepped: str | None = None

    def of(self, situation: Situation) -> "Taken":
        """The same for one situation, without fields that do not matter there."""
        return self if situation.apart else self._replace(partner="", partner_read=None)


AS_STORED = Taken()


class Prepared(Closing):
    """A situation stored by the plainest tier in one layout and dtype, for kernels that read it as
    `taken`. questions: the first has one query. A copy has the same bytes in other memory.
    """

    def __init__(
        self,
        library: Library,
        situation: Situation,
        layout: str,
        dtype: str,
        taken: Taken = AS_STORED,
        seed: int = 0,
        **facts: Any,
    ) -> None:
        s, self.library, self.situation = situation, library, situation
        word = together(dtype, taken.partner or dtype) if s.apart else dtype
        self._kind = {"layout": layout, "dtype": word, **dict(s.facts), **facts}
        self._kind |= {"shuffle": 1} if Cache.is_paged(layout, library) else {}
        rng, self._other = (
            np.random.default_rng([seed, len(s.lengths), s.head_dim]),
            np.random.default_rng(),
        )
        stored = (len(s.lengths), max(s.lengths), s.kv_heads)
        self.k, self.v = (
            rng.standard_normal((*stored, dim), dtype=np.float32) for dim in (s.head_dim, s.v_dim)
        )
        if s.apart and _has_scales(library, layout, dtype):
            self._kind["channel"] = channel_of(self.k)
        self.cache = self._open()
        self.cache.arena.view()[:] = STALE
        # All sequences take as many tokens as the longest one.
        self.cache.bulk(self.k, self.v, isa=library.isas()[0])
        # Then the shorter ones forget theirs, so that their tails are stale.
        self.cache.lengths[:] = s.lengths
        self._reads = taken.read, taken.partner_read if s.apart else taken.read
        self._levels = (
            library.levels(taken.stepped, word, s.head_dim, s.v_dim) if taken.stepped else None
        )
        self.questions = [Question(self, rng, each) for each in (Several(1), *s.several)]

    @property
    def rounds(self) -> bool:
        """Whether its kernels round queries and weights, which hides the smallest faults."""
        return self._levels is not None

    def answer(self, q: np.ndarray, **facts: Any) -> tuple[np.ndarray, float | np.ndarray]:
        """The right answer for the present content, float64 of q's shape; and the largest error of
        a correct kernel, one for all numbers, or one for each if kernels round.
        """
        s, levels = self.situation, self._levels
        stored = self.cache.numpy(isa=self.library.isas()[0])
        k, v = (
            rounded(own, read) if read else own
            for own, read in zip(stored, self._reads, strict=True)
        )
        if (channel := self.cache.channel) is not None:
            q, k = times_channel(q, channel), np.rint(k / channel)
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

    def allowed(self, plane: str, rows: np.ndarray) -> np.ndarray:
        """The largest error of each element of stored rows."""
        own = getattr(self.cache.struct, plane)
        if plane == "k" and self.cache.channel is not None:
            return np.broadcast_to(self.cache.channel * np.float32(0.501), rows.shape)
        block = block_of(self.cache.half(plane)[0], self.library)
        return rounding(rows, block, own.scale_bytes > 0)

    def change_token(self) -> None:
        """Replace one token's rows in the longest sequence."""
        s, longest = self.situation, max(self.situation.lengths)
        token = int(
            self._other.integers(
                max(0, longest - min(self.cache.window or longest, s.capacity)), longest
            )
        )
        rows = [
            self._other.standard_normal((len(s.lengths), s.kv_heads, dim), dtype=np.float32)
            for dim in (s.head_dim, s.v_dim)
        ]
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


def how_taken(library: Library, kernel: Kernel) -> Taken:
    """How a decode kernel reads what is stored."""
    variant, layout, dtype = kernel.variant, kernel.layout, kernel.dtype
    stepped = variant if library.levels(variant, dtype) else None
    partner = _partner(library, kernel)
    reads = [
        read if (read := library.reads(variant, layout, own, plane)) != own else None
        for plane, own in zip(PLANES, (dtype, partner), strict=True)
    ]
    return Taken(reads[0], partner, reads[1], stepped)


def _partner(library: Library, kernel: Kernel) -> str:
    """The next dtype of V that the kernel takes beside its own K; its own dtype if none."""
    words = library.words("dtype")
    at = words.index(kernel.dtype)
    for word in (*words[at + 1 :], *words[:at]):
        if _runs_pair(library, kernel, word):
            return word
    return kernel.dtype


def _runs_pair(library: Library, kernel: Kernel, v_dtype: str) -> bool:
    word = together(kernel.dtype, v_dtype)
    q = np.zeros((1, 1, 1), np.float32)
    try:
        with Cache(1, 1, 1, layout=kernel.layout, dtype=word, library=library) as cache:
            cache.lengths[:] = 1
            how: dict[str, Any] = {"isa": kernel.isa, "variant": kernel.variant}
            decode_task("decode", cache, q, np.zeros_like(q), 1, **how).close()
    except KvbenchError:
        return False
    return True


def _has_scales(library: Library, layout: str, dtype: str) -> bool:
    """Whether rows of K have scales of their own."""
    plain = Cache.planned(1, 1, 1, layout=layout, dtype=dtype, library=library)
    return plain.k.scale_bytes > 0


def takes(library: Library, kernel: Kernel, question: Question) -> bool:
    """Whether a decode kernel can be asked the question; a plug-in's kernel need not take all."""
    if kernel.variant in library.own_variants:
        return True
    words = kernel.id.split(".")[1:]
    return question.alike and not library.plugins.untaken(question.asked, *words)
