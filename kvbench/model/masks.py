"""Which of the newest tokens of a sequence each of its queries attends to: one for each query, as
bits. All older tokens are attended to by every query.
"""

MOST_QUERIES = 32  # of a sequence in a step: a word has so many bits
CHAIN, BLOCK, TREE = "chain", "block", "tree"
MASKS = (CHAIN, BLOCK, TREE)


def tokens_seen(mask: str, queries: int) -> tuple[int, ...]:
    """By query a word: bit i is the i-th of the newest tokens, of which there are as many as
    queries. chain: each sees those up to its own; block: each sees all; tree: each sees its
    ancestors and itself, in a binary tree whose tokens lie level by level.
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
