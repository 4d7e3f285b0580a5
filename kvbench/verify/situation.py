"""Small caches with known content, and the right answer of decode on each."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from kvbench.closing import Closing
from kvbench.model import Kernel
from kvbench.native import Arena, Cache, Library, Team, described, rewrite
from kvbench.oracle import attention, attention_in_steps, rounded, tolerance, whole

# the root mean square of what rounding does to many numbers is so much less than what it may do to
# one
_TOGETHER = 4
STALE = 0xFF  # stands wherever nothing was stored: NaN in every float format


@dataclass(frozen=True, slots=True)
class Situation:
    """What is stored: lengths[b] tokens in sequence b. `facts` goes to Cache."""

    name: str
    kv_heads: int
    group: int
    head_dim: int
    capacity: int
    lengths: tuple[int, ...]
    facts: tuple[tuple[str, Any], ...] = ()


QUICK = (
    Situation("ragged batch", 2, 3, 80, 340, (333, 70)),
    Situation("ring and window", 2, 4, 64, 100, (257, 99), (("window", 90),)),
)
FULL = (
    *QUICK,
    Situation("one token", 1, 1, 1, 1, (1,)),
    Situation("odd sizes", 3, 7, 37, 700, (129, 1, 641), (("block_tokens", 5), ("pad", 0))),
    Situation("window", 1, 2, 128, 1200, (1111,), (("window", 1000), ("ring", False))),
    Situation("large group", 1, 33, 64, 300, (300,), (("block_tokens", 256),)),
    Situation("wide head", 2, 8, 256, 520, (513,), (("block_tokens", 1),)),
    Situation("long", 2, 2, 64, 4500, (4460,)),
)


class Prepared(Closing):
    """A situation stored in one layout and dtype by the plainest tier. right: float64 [B, Hq, D],
    of a kernel that takes the values as those of the dtype `read` (None: as they are); allowed: the
    largest error of a correct one, for all of it, or for each number where the kernel is of a
    variant `stepped` that rounds queries and weights. A copy has the same bytes, elsewhere.
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
        self.q = rng.standard_normal(
            (stored[0], s.kv_heads * s.group, s.head_dim), dtype=np.float32
        )
        # all sequences take the longest one's tokens;
        self.cache.bulk(self.k, self.v, isa=library.isas()[0])
        # then the shorter ones forget, so that their tails are stale
        self.cache.lengths[:] = s.lengths
        self._taken = (
            None if read == dtype else read,
            library.levels(stepped, dtype, s.head_dim) if stepped else None,
        )
        self._settle()

    @property
    def rounds(self) -> bool:
        """Whether its kernels round queries and weights, which hides the smallest faults."""
        return self._taken[1] is not None

    def _settle(self) -> None:
        """What is right for what is stored and asked now."""
        s, (read, levels) = self.situation, self._taken
        k, v = self.cache.numpy(isa=self.library.isas()[0])
        if read:
            k, v = rounded(k, read), rounded(v, read)
        held = np.minimum(self.cache.lengths, s.capacity)
        self.allowed: float | np.ndarray = tolerance(
            float(np.abs(v).max(initial=0.0)), max(s.lengths)
        )
        if levels:
            self.right, off = attention_in_steps(
                self.q, whole(k, v), held, levels, self.cache.window
            )
            self.allowed = self.allowed + off
        else:
            self.right = attention(self.q, whole(k, v), held, self.cache.window)

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
        self._settle()

    def change_queries(self) -> None:
        self.q[:] = self._other.standard_normal(self.q.shape, dtype=np.float32)
        self._settle()

    def read(self) -> bytes:
        """A digest of all that a kernel is given."""
        found = hashlib.blake2b(self.cache.arena.view().data)
        for part in (self.q.data, *described(self.cache)):
            found.update(part)
        return found.digest()

    def copy(self) -> Cache:
        twin = self._open()
        twin.arena.view()[:] = self.cache.arena.view()
        twin.lengths[:] = self.cache.lengths
        return twin

    def error(self, out: np.ndarray) -> float:
        """Largest difference to the right answer, in allowed ones; infinite where a number is
        missing.
        """
        share = np.abs(out.astype(np.float64) - self.right) / self.allowed
        if np.isnan(share).any():
            return np.inf
        if np.ndim(self.allowed) == 0:
            return float(share.max())
        together = np.square(share).reshape(len(out), self.situation.kv_heads, -1).mean(axis=2)
        return float(max(share.max(), _TOGETHER * np.sqrt(together.max())))

    def close(self) -> None:
        self.cache.close()


def scratch(library: Library, size: int) -> Arena:
    """Guarded memory for a probe."""
    return Arena(size, library.words("pages")[0], 1, library)


def how_taken(library: Library, kernel: Kernel) -> tuple[str | None, str | None]:
    """`read` and `stepped` of what a decode kernel is prepared for."""
    stepped = kernel.variant if library.levels(kernel.variant, kernel.dtype) else None
    return library.reads(kernel.variant, kernel.layout, kernel.dtype, "k"), stepped
