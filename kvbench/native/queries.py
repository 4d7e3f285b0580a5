"""Several queries of a sequence in one step, as the library is told: how many each sequence has,
and which tokens they attend to.
"""

from typing import Any

import numpy as np

from kvbench.errors import BadArgument, unknown_word
from kvbench.model.masks import CHAIN, MASKS, MOST_QUERIES, TREE
from kvbench.native.arguments import floats


def asked_of(q: Any, batch: int, head_dim: int) -> np.ndarray:
    """Check q: float32 [batch, q_heads, head_dim] or [batch, q, q_heads, head_dim]."""
    heads = ("q_heads", head_dim)
    array = floats("q", q, (batch, *heads), (batch, "q", *heads))
    if queries_of(array) > MOST_QUERIES:
        raise BadArgument(
            f"q has {queries_of(array)} queries of a sequence", f"at most {MOST_QUERIES}"
        )
    return array


def queries_of(q: np.ndarray) -> int:
    """The number of queries of each sequence."""
    return q.shape[1] if q.ndim == 4 else 1


def attended(
    q: np.ndarray, lengths: np.ndarray, mask: Any, tree: Any, queries: Any
) -> dict[str, Any]:
    """The fields `mask`, `tree` and `ends` of decode_task, without those that change nothing.

    tree: booleans [q, q] or [batch, q, q]. queries: [batch], how many queries each sequence has.
    """
    found: dict[str, Any] = {}
    most = queries_of(q)
    if not isinstance(mask, str) or mask not in MASKS:
        raise unknown_word("mask", mask, MASKS)
    if tree is not None and mask not in (CHAIN, TREE):
        raise BadArgument(f"a tree is given, but mask is {mask}", "leave out one of the two")
    if mask == TREE and tree is None:
        raise BadArgument(
            "mask tree needs a tree", f"tree: booleans [{most}, {most}], a row for each query"
        )
    own = None if queries is None else _counted(queries, len(lengths), most)
    if tree is not None:
        found |= {"mask": TREE, "tree": _words(tree, len(lengths), most)}
    elif mask != CHAIN:
        found["mask"] = mask
    if own is not None:
        found["ends"] = _ends(lengths, own, most, found.get("mask", CHAIN))
    return found


def _counted(queries: Any, batch: int, most: int) -> np.ndarray:
    """Check the queries of each sequence: int64 [batch]."""
    try:
        counts = np.asarray(queries)
    except (TypeError, ValueError) as error:
        raise BadArgument(f"queries is not an array: {error}", _counts(batch, most)) from None
    if counts.shape != (batch,) or counts.dtype.kind not in "iu":
        raise BadArgument(
            f"queries is of {counts.dtype} and the shape {list(counts.shape)}",
            _counts(batch, most),
        )
    if wrong := [int(count) for count in counts if not 0 <= count <= most]:
        raise BadArgument(
            f"queries: a sequence has {wrong[0]}; q has {most} of each", f"0 to {most}"
        )
    return counts.astype(np.int64)


def _counts(batch: int, most: int) -> str:
    return f"expected are whole numbers [{batch}], 0 to {most}"


def _words(tree: Any, batch: int, most: int) -> np.ndarray:
    """Turn a tree into uint32 [batch, q]: bit i of a query's word stands for the i-th of the newest
    tokens.
    """
    try:
        rows = np.asarray(tree)
    except (TypeError, ValueError) as error:
        raise BadArgument(f"tree is not an array: {error}", _trees(batch, most)) from None
    square = (most, most)
    if rows.dtype != bool or rows.shape not in (square, (batch, *square)):
        raise BadArgument(
            f"tree is of {rows.dtype} and the shape {list(rows.shape)}", _trees(batch, most)
        )
    bits = np.uint32(1) << np.arange(most, dtype=np.uint32)
    words = np.where(rows, bits, np.uint32(0)).sum(axis=-1, dtype=np.uint32)
    return np.ascontiguousarray(np.broadcast_to(words, (batch, most)))


def _trees(batch: int, most: int) -> str:
    return f"expected are booleans [{most}, {most}], or [{batch}, {most}, {most}]"


def _ends(lengths: np.ndarray, queries: np.ndarray, most: int, mask: str) -> np.ndarray:
    """int64 [batch, q]: how many of its sequence's tokens each query attends to; 0 for a query that
    the sequence does not have.
    """
    query, own = np.arange(most), queries[:, None]
    after = own - 1 - query if mask == CHAIN else 0  # tokens behind the query's own
    return np.where(query < own, np.maximum(0, lengths[:, None] - after), 0)
