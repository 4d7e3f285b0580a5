"""Which tokens each query of a step attends to, restated from the comments of kernels/abi.h. B
sequences of `lengths` tokens, each with up to `count` queries.
"""

from dataclasses import dataclass

import numpy as np

CHAIN, BLOCK, TREE = MASKS = ("chain", "block", "tree")
MOST = 32


@dataclass(frozen=True)
class Queries:
    """The fields of a kvb_decode about queries, besides its window."""

    q_len: int = 0  # as given: 0 is one
    mask: str = CHAIN
    ends: np.ndarray | None = None  # int64 [B, count]
    tree: np.ndarray | None = None  # uint32 [B, count]
    kept: int = 0  # first tokens that are attended to in addition to a window

    @property
    def count(self) -> int:
        """Queries of a sequence, including those that it leaves out."""
        return max(1, self.q_len)

    def given(self, seq: int) -> int:
        """Queries that a sequence really has: up to the last whose end is not 0."""
        if self.ends is None:
            return self.count
        return int(np.flatnonzero(np.append(1, self.ends[seq]))[-1])

    def there(self, seq: int, query: int) -> bool:
        return self.ends is None or bool(self.ends[seq, query])

    def tokens(self, seq: int, query: int, length: int, window: int) -> np.ndarray:
        """The tokens that a query attends to, in ascending order."""
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
        if window:
            before, last = tokens[:-window], tokens[-window:]
            tokens = np.append(before[before < self.kept], last)
        return tokens.astype(np.int64)

    def own(self, seq: int, query: int, length: int) -> int:
        """The query's own token; below 0 if a sequence has more queries than tokens."""
        if self.mask == CHAIN and self.ends is not None:
            return int(self.ends[seq, query]) - 1
        return length - self.given(seq) + query

    def start(self, seq: int, query: int, length: int, window: int) -> int:
        """The first token after those that the window leaves out, among the tokens before the
        newest ones; 0 if it leaves out none.
        """
        tokens = self.tokens(seq, query, length, window)
        behind = tokens[-1] + 1 if len(tokens) else 0
        if self.mask == TREE:
            behind = max(0, length - self.given(seq))
        older = tokens[tokens < behind]
        if len(older) == behind:
            return 0
        return int(min(older[older >= self.kept], default=behind))

    def ranges(self, seq: int, length: int, window: int) -> list[tuple[int, int]]:
        """Ranges of a sequence's tokens, each as the first token and one past the last: the kept
        ones if all queries leave out tokens after them, and all from the first other attended token
        on. With a tree, all tokens of its queries are in the range.
        """
        own = [query for query in range(self.given(seq)) if self.there(seq, query)]
        first = min((self.start(seq, query, length, window) for query in own), default=0)
        tokens = [self.tokens(seq, query, length, window) for query in own]
        end = max((int(each[-1]) + 1 for each in tokens if len(each)), default=0)
        rest = (first, length if self.mask == TREE and own else end)
        return [(0, self.kept), rest] if self.kept and first else [rest]

    def span(self, seq: int, length: int, window: int) -> tuple[int, int]:
        """The first token that any query of a sequence attends to, and one past the last."""
        ranges = self.ranges(seq, length, window)
        return ranges[0][0], ranges[-1][1]

    def attended(self, lengths, window: int) -> list[list[list[int]]]:
        """For each sequence, the tokens of each of its queries."""
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
    """Words of trees with random parents; now and then with arbitrary tokens, and with tokens that
    do not exist.
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
    """Ends of a chain's queries: none, as many queries as each sequence has, or arbitrary ends.
    Some queries are left out.
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
    """Random queries: often a chain without given ends."""
    if rng.random() < 0.25:
        return Queries(q_len)
    count = max(1, q_len)
    mask = MASKS[int(rng.choice(3, p=(0.4, 0.2, 0.4)))]
    asked = Queries(q_len, mask, draw_ends(rng, lengths, mask, count))
    if mask != TREE:
        return asked
    given = np.array([asked.given(seq) for seq in range(len(lengths))])
    return Queries(q_len, mask, asked.ends, draw_tree(rng, lengths, given, count))
