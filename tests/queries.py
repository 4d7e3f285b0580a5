"""Which tokens each query of a step attends to, restated from the comments of kernels/abi.h.

B sequences of `lengths` tokens, each with up to `count` queries.
"""

from dataclasses import dataclass

import numpy as np

CHAIN, BLOCK, TREE = MASKS = ("chain", "block", "tree")
MOST = 32


@dataclass(frozen=True)
class Queries:
    """What a kvb_decode says of them, besides its window."""

    q_len: int = 0  # as given: 0 is one
    mask: str = CHAIN
    ends: np.ndarray | None = None  # int64 [B, count]
    tree: np.ndarray | None = None  # uint32 [B, count]

    @property
    def count(self) -> int:
        """Of a sequence, those included that it has not."""
        return max(1, self.q_len)

    def given(self, seq: int) -> int:
        """Queries of a sequence: those up to the last whose end is not 0."""
        if self.ends is None:
            return self.count
        return int(np.flatnonzero(np.append(1, self.ends[seq]))[-1])

    def there(self, seq: int, query: int) -> bool:
        return self.ends is None or bool(self.ends[seq, query])

    def tokens(self, seq: int, query: int, length: int, window: int) -> np.ndarray:
        """Those that a query attends to, in ascending order."""
        if not self.there(seq, query):
            return np.arange(0)
        given = self.given(seq)
        if self.mask == CHAIN:
            end = length - (given - 1 - query) if self.ends is None else int(self.ends[seq, query])
            tokens = np.arange(max(0, end))
        elif self.mask == BLOCK:
            tokens = np.arange(length)
        else:
            newest, word = length - given, int(self.tree[seq, query])
            own = [newest + i for i in range(given) if word >> i & 1]
            tokens = np.append(np.arange(max(0, newest)), [at for at in own if at >= 0])
        return tokens.astype(np.int64)[-window:] if window else tokens.astype(np.int64)

    def span(self, seq: int, length: int, window: int) -> tuple[int, int]:
        """First token that any query of a sequence attends to, and one past the last. Of a tree all
        tokens of its queries are there.
        """
        own = [query for query in range(self.given(seq)) if self.there(seq, query)]
        every: set[int] = set()
        for query in own:
            tokens = self.tokens(seq, query, length, window).tolist()
            every.update(tokens[:1], tokens[-1:])
        if self.mask == TREE and own and length:
            every |= {max(0, length - self.given(seq)), length - 1}
        return (min(every), max(every) + 1) if every else (0, 0)

    def attended(self, lengths, window: int) -> list[list[list[int]]]:
        """By sequence the tokens of each of its queries."""
        return [
            [self.tokens(seq, query, length, window).tolist() for query in range(self.given(seq))]
            for seq, length in enumerate(np.asarray(lengths).tolist())
        ]

    def spans(self, lengths, window: int) -> list[tuple[int, int]]:
        held = np.asarray(lengths).tolist()
        return [self.span(seq, length, window) for seq, length in enumerate(held)]


ONE = Queries()


# ---- drawn at random -----------------------------------------------------------------------------


def draw_tree(rng, lengths: np.ndarray, given: np.ndarray, count: int) -> np.ndarray:
    """Words of trees whose tokens have random parents; now and then of any tokens, and of tokens
    that are none.
    """
    words = np.zeros((len(lengths), count), dtype=np.uint32)
    for seq in range(len(lengths)):
        style = rng.random()
        for query in range(count):
            own, parent = 1 << query, int(rng.integers(-1, query)) if query else -1
            if style < 0.75:
                word = own | (int(words[seq, parent]) if parent >= 0 else 0)
            else:
                word = int(rng.integers(0, 1 << count)) | (own if style < 0.95 else 0)
            words[seq, query] = word
        if rng.random() < 0.2:
            beyond = (1 << 32) - (1 << int(given[seq]))
            words[seq] |= (rng.integers(0, 1 << 32, count) & beyond).astype(np.uint32)
    return words


def draw_ends(rng, lengths: np.ndarray, mask: str, count: int) -> np.ndarray | None:
    """None; of as many queries as each sequence has; or, of a chain, any ends. Some queries are
    left out.
    """
    style, ends = rng.random(), np.zeros((len(lengths), count), dtype=np.int64)
    if style < 0.5:
        return None
    if mask == CHAIN and style < 0.75:
        ends = rng.integers(0, lengths[:, None] + 1, ends.shape)
    else:
        for seq, length in enumerate(lengths.tolist()):
            given = int(rng.integers(0, count + 1))
            chained = length - np.arange(given)[::-1]
            ends[seq, :given] = np.maximum(0, chained) if mask == CHAIN else length
    return ends * (rng.random(ends.shape) >= (0.2 if rng.random() < 0.2 else 0))


def draw(rng, lengths: np.ndarray, q_len: int) -> Queries:
    """Often a chain whose ends nobody says."""
    if rng.random() < 0.25:
        return Queries(q_len)
    count = max(1, q_len)
    mask = MASKS[int(rng.choice(3, p=(0.4, 0.2, 0.4)))]
    asked = Queries(q_len, mask, draw_ends(rng, lengths, mask, count))
    if mask != TREE:
        return asked
    given = np.array([asked.given(seq) for seq in range(len(lengths))])
    return Queries(q_len, mask, asked.ends, draw_tree(rng, lengths, given, count))
