"""The arena map: where the buffers of a decoder lie in one block of memory.

for each buffer, in their order: the next aligned offset, its bytes, then its canary
"""

import math
from collections import Counter
from collections.abc import Iterator

from kvbench.errors import BadArgument
from kvbench.model.size import ArenaMap, Buffer, KindBytes
from kvbench.native import Cache
from kvbench.suite import Model, stated

_CANARY_BYTES = 64  # at least; a canary reaches to the next aligned offset
_LINE = 64  # bytes: a cache of the library begins on a cache line
_PAD = 0  # bytes between the heads of the mapped cache
_LARGEST = 1 << 62


def arena_map(
    model: str, context: int, dtype: str, align: int = _LINE, canaries: bool = False
) -> ArenaMap:
    """Lay out the buffers of a decoder. `dtype`: of the cache. `canaries`: put a known pattern
    behind each buffer; an overrun would destroy it.
    """
    known = stated(model, "hidden", "intermediate", "vocabulary")
    if not 1 <= context <= _LARGEST // max(known.vocabulary, known.q_heads * known.head_dim):
        raise BadArgument(f"--context is {context}", "at least 1, and no more than memory can hold")
    if align < _LINE or align & (align - 1):
        raise BadArgument(f"--align is {align}", f"a power of two, at least {_LINE}")
    buffers = tuple(_laid(known, context, dtype, align, canaries))
    total, kinds = buffers[-1].end + buffers[-1].canary, Counter[str]()
    for buffer in buffers:
        kinds[buffer.kind] += buffer.size
    if between := total - kinds.total():
        kinds["between"] = between
    shares = {kind: KindBytes(count, count / total) for kind, count in kinds.items()}
    return ArenaMap(model, context, dtype, align, total, shares, buffers)


def _laid(known: Model, context: int, dtype: str, align: int, canaries: bool) -> Iterator[Buffer]:
    cache = Cache.planned(known.kv_heads, known.head_dim, context, dtype=dtype, pad=_PAD)
    offset = 0
    for name, kind, each, shape, about in _buffers(known, context):
        size = known.layers * cache.bytes if name == "kv_cache" else each * math.prod(shape)
        least = offset + size + (_CANARY_BYTES if canaries else 0)
        after = -(-least // align) * align
        canary = after - offset - size if canaries else 0
        yield Buffer(name, kind, offset, offset + size, size, canary, shape, about)
        offset = after


def _buffers(known: Model, tokens: int) -> tuple[tuple[str, str, int, tuple[int, ...], str], ...]:
    """Buffers of a decoder that takes a whole prompt at once, then continues token by token: name,
    kind, bytes of an element, shape, and an explanation. For one sequence. Only the cache has a
    dtype; the library knows its bytes.
    """
    dim, wide, queries = known.head_dim, known.intermediate, (known.q_heads, tokens, known.head_dim)
    row, stored = (tokens, known.hidden), (known.kv_heads, tokens, known.head_dim)
    return (
        ("text_input", "input", 1, (16 * tokens,), _TEXT),
        ("token_ids", "input", 4, (tokens,), "An int32 for each token."),
        (
            "embedded_input",
            "scratch",
            4,
            row,
            "A row of the hidden size for each token, in float32.",
        ),
        ("layer_input", "scratch", 4, row, "As embedded_input; each layer's input in turn."),
        ("residual", "scratch", 4, row, _RESIDUAL),
        ("kv_cache", "persistent", 0, (known.layers, 2, *stored), _CACHE),
        ("rope_cache", "persistent", 4, (2, tokens, dim // 2), _ROPE),
        ("q_scratch", "scratch", 4, queries, "Queries of all tokens, head-major, in float32."),
        (
            "k_scratch",
            "scratch",
            4,
            stored,
            "Keys of all tokens before they are stored in the cache, in float32.",
        ),
        ("v_scratch", "scratch", 4, stored, "Values, as k_scratch."),
        ("attn_q_gate_packed", "scratch", 4, (tokens, 2, known.q_heads, dim), _PACKED),
        ("attn_gate", "scratch", 4, (tokens, known.q_heads, dim), _GATE),
        (
            "attn_scratch",
            "scratch",
            4,
            queries,
            "Outputs of attention of all tokens and query heads, in float32.",
        ),
        ("mlp_scratch", "scratch", 4, (tokens, 3 * wide + known.hidden), _MLP),
        ("layer_output", "scratch", 4, row, "As embedded_input; each layer's output in turn."),
        ("logits", "output", 4, (tokens, known.vocabulary), _LOGITS),
    )


_TEXT = "16 bytes of text for each token, an estimate."
_RESIDUAL = "As embedded_input; added again after attention and after the feed-forward."
_CACHE = (
    "Each layer's K, then its V, head-major; then the scales, for formats with scales. Each part"
    " fills whole cache lines."
)
_ROPE = (
    "Cosine and sine of every position for each pair of a head's elements, in float32; computed"
    " once."
)
_PACKED = (
    "Queries and gates of all tokens, as one projection returns them; not used by models without a"
    " gate."
)
_GATE = "The unpacked gates; not used by models without a gate."
_MLP = (
    "For each token: gate, up and their product, as wide as the feed-forward, and one row of the"
    " hidden size. A decoder may keep less."
)
_LOGITS = "A float32 for each token of the prompt and word of the vocabulary."
