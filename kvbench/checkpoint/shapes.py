"""Compute bytes of tensors that an index names without their sizes, from the shapes that the
configuration gives to these names.

This is done only if all names are known. The sum must then equal the total that the index states.
"""

from collections.abc import Collection, Mapping
from typing import Any

from kvbench.checkpoint.facts import OTHER

_SCALED = "_scale_inv"  # suffix of a matrix of 8 bits: one float32 for each of its blocks
_TILE = 128  # rows and columns of such a block
_GROUP = 32  # elements of 4 bits that share one byte of scale
_FLOAT = 4
_BLOCKS, _SCALES = "_blocks", "_scales"  # suffixes of a tensor of 4 bits


def sizes_of(names: Collection[str], facts: Mapping[str, int], element: int) -> dict[str, int]:
    """Bytes of tensors, by name. `facts`: the configuration's numbers. `element`: bytes of an
    element that is not quantized. Vision and audio count 0: their shapes are unknown. Raises
    KeyError for an unknown name.
    """
    every, tables = frozenset(names), (_matrices(facts), _vectors(facts), _fused(facts))
    return {
        name: 0 if OTHER.search(name) else _bytes(name, every, facts, element, tables)
        for name in every
    }


def elements_of(sizes: Mapping[str, int], element: int) -> dict[str, int]:
    """Elements of tensors, by name. `sizes`: from sizes_of(). Scales do not count as elements."""
    return {name: _elements(name, sizes, element) for name in sizes}


def _elements(name: str, sizes: Mapping[str, int], element: int) -> int:
    if name.endswith((_SCALED, _SCALES)):
        return 0
    if name.endswith(_BLOCKS):
        return 2 * sizes[name]  # a byte holds two elements
    return sizes[name] // (1 if name + _SCALED in sizes else element)


def _bytes(
    name: str,
    every: frozenset[str],
    facts: Mapping[str, int],
    element: int,
    tables: tuple[Any, ...],
) -> int:
    matrices, vectors, fused = tables
    path, _, last = name.rpartition(".")
    module = path.rpartition(".")[2]
    if module == "experts" and last in fused:
        count, form = fused[last]
        return count * element if form else count
    if last == "e_score_correction_bias":
        return facts["experts"] * _FLOAT
    if last == "sinks":
        return facts["q_heads"] * element
    if module in vectors or module.endswith("layernorm"):
        return vectors.get(module, facts["hidden"]) * element
    rows, columns = matrices[module] if module in matrices else _wide(module, path, facts)
    if last == f"weight{_SCALED}":
        return -(-rows // _TILE) * -(-columns // _TILE) * _FLOAT
    if last == "bias":
        return rows * element
    if last != "weight":
        raise KeyError(name)
    return rows * columns * (1 if name + _SCALED in every else element)


def _wide(module: str, path: str, facts: Mapping[str, int]) -> tuple[int, int]:
    """Rows and columns of a part of a gated feed-forward: the whole layer's, the shared one, or an
    expert's.
    """
    place = "routed" if ".experts." in path else "shared" if "shared_expert" in path else "dense"
    width, hidden = facts[place], facts["hidden"]
    return {"gate_proj": (width, hidden), "up_proj": (width, hidden), "down_proj": (hidden, width)}[
        module
    ]


def _matrices(facts: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Rows and columns of each matrix."""
    hidden, heads, table = facts["hidden"], facts["q_heads"], (facts["vocabulary"], facts["hidden"])
    low, query, turned = facts["kv_rank"], facts["q_rank"], facts["qk_dim"]
    return {
        **dict.fromkeys(("embed_tokens", "lm_head", "head"), table),
        "q_proj": (heads * turned, hidden),
        "k_proj": (facts["kv_heads"] * facts["qk_dim"], hidden),
        "v_proj": (facts["kv_heads"] * facts["v_dim"], hidden),
        "o_proj": (hidden, heads * facts["v_dim"]),
        "q_a_proj": (query, hidden),
        "q_b_proj": (heads * turned, query),
        "kv_a_proj_with_mqa": (low + facts["rope"], hidden),
        "kv_b_proj": (heads * (turned - facts["rope"] + facts["v_dim"]), low),
        **dict.fromkeys(("gate", "router"), (facts["experts"], hidden)),
        "shared_expert_gate": (1, hidden),
        "eh_proj": (hidden, 2 * hidden),
    }


def _vectors(facts: Mapping[str, int]) -> dict[str, int]:
    return {
        **dict.fromkeys(("norm", "enorm", "hnorm"), facts["hidden"]),
        **dict.fromkeys(("q_norm", "k_norm"), facts["qk_dim"]),
        "q_a_layernorm": facts["q_rank"],
        "kv_a_layernorm": facts["kv_rank"],
    }


def _fused(facts: Mapping[str, int]) -> dict[str, tuple[int, bool]]:
    """Sizes of tensors with all experts of a layer: bytes, or elements (then with True)."""
    hidden, width, experts = facts["hidden"], facts["routed"], facts["experts"]
    found: dict[str, tuple[int, bool]] = {}
    for name, rows, columns in (("gate_up_proj", 2 * width, hidden), ("down_proj", hidden, width)):
        blocks = experts * rows * -(-columns // _GROUP)
        found |= {
            name: (experts * rows * columns, True),
            f"{name}_bias": (experts * rows, True),
            f"{name}{_BLOCKS}": (blocks * _GROUP // 2, False),
            f"{name}{_SCALES}": (blocks, False),
        }
    return found
