"""Masks: which of a sequence's newest tokens each query attends to. There is one newest token for
each query; all queries attend to all older tokens. A mask of one query is a word of bits.
"""

MOST_QUERIES = 32  # per sequence and step: a word has 32 bits
CHAIN, BLOCK, TREE = "chain", "block", "tree"
MASKS = (CHAIN, BLOCK, TREE)


def tokens_seen(mask: str, queries: int) -> tuple[int, ...]:
    """The word of each query: bit i is set if it attends to the i-th of the newest tokens.

    chain: each query sees the tokens up to its own. block: each sees all. tree: each sees its own
    token and its ancestors, in a binary tree stored level by level.
    """
    every = (1 << queries) - 1
    return tuple(_word(mask, query, every) for query in range(queries))


def _word(mask: str, query: int, every: int) -> int:
    if mask == BLOCK:
        return every
    if mask == CHAIN:
        return (2 << query) - 1
    above = _word(mask, (query - 1) // 2, every) if query else 0
    return above | 1 << query
