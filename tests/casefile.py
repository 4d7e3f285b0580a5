"""Cases as files for the C checker (tests/check). Little-endian; a file is one record after
another:

8 bytes   "KVBCASE6"
int64     the fields of FIELDS, words as their index in the library's lists
float64   scale of the scores; scales of the whole tensors K and V; softcap
float32   scales of channels of K [kv_heads][head_dim], where by_channel
int64     lengths [batch]
op decode:         ends int64 [batch][queries], where they are told; words of trees uint32
                   [batch][queries], where the mask is a tree. There are q_len queries, or where
                   that is 0 one. slopes float32 [q_heads], where sloped; sinks likewise, where
                   there are sinks
int32     table [batch][ceil(capacity / block_tokens)], paged only
op decode:         planes K, V, K scales, V scales as they stand before;
                   q float32 [batch][queries][q_heads][head_dim]; out and bound float64
                   [batch][queries][q_heads][v_dim]
op append, bulk:   k, v float32 in source order, [batch][tokens][kv_heads][head_dim] or head-major,
                   of v v_dim;
                   the four planes as they must be after (before: `fill` in every byte)
"""

import struct
from pathlib import Path

from tests import cases
from tests.raw import mask_of

MAGIC = b"KVBCASE6"
FIELDS = (
    "seed",
    "index",
    "op",
    "layout",
    "inner",
    "k_dtype",
    "v_dtype",
    "k_scale",
    "v_scale",
    "ring",
    "batch",
    "kv_heads",
    "head_dim",
    "v_dim",
    "capacity",
    "block_tokens",
    "blocks",
    "pad",
    "k_bytes",
    "v_bytes",
    "k_scale_bytes",
    "v_scale_bytes",
    "q_heads",
    "q_len",
    "mask",
    "told",
    "window",
    "kept",
    "sloped",
    "sinks",
    "by_channel",
    "variant",
    "schedule",
    "threads",
    "deterministic",
    "guard",
    "fill",
    "tokens",
    "head_major",
    "nt",
    "paged",
)
PLANES = ("k", "v", "k_scale", "v_scale")
LARGEST = 256 << 10  # bytes of planes worth carrying to an emulator


def fields(raw, case: cases.Case, op: str) -> dict[str, int]:
    shape, store = case.shape, case.store
    values = {name: getattr(case, name, 0) for name in FIELDS}
    values |= {name: getattr(shape, name) for name in FIELDS if hasattr(shape, name)}
    values |= {name: raw.word(name, getattr(shape, name)) for name in ("layout", "inner")}
    values |= {name: raw.word(name, getattr(case, name)) for name in ("variant", "schedule")}
    for name, side in zip("kv", shape.sides, strict=True):
        values |= {
            f"{name}_dtype": raw.word("dtype", side.dtype),
            f"{name}_scale": raw.word("scale", side.scale),
        }
    values |= dict(zip((f"{name}_bytes" for name in PLANES), shape.planes, strict=True))
    values |= {"op": raw.word("op", op), "paged": case.table is not None}
    queries = case.queries
    values |= {"q_len": queries.q_len, "mask": mask_of(raw, queries)}
    values |= {"told": queries.ends is not None, "kept": queries.kept}
    values |= {"sloped": case.scores.slopes is not None, "sinks": case.scores.sinks is not None}
    values |= {"by_channel": shape.channel is not None}
    if op != "decode":
        values |= {"tokens": store.tokens, "head_major": store.head_major, "nt": store.nt}
    return values


def record(raw, case: cases.Case, op: str) -> bytes:
    values = fields(raw, case, op)
    parts = [MAGIC, struct.pack(f"<{len(FIELDS)}q", *(int(values[name]) for name in FIELDS))]
    parts.append(struct.pack("<4d", case.scale, *case.shape.tensor, case.scores.softcap))
    if case.shape.channel is not None:
        parts.append(case.shape.channel.astype("<f4").tobytes())
    begun = case if op == "decode" else case.store
    parts.append(begun.lengths.astype("<i8").tobytes())
    if op == "decode" and case.queries.ends is not None:
        parts.append(case.queries.ends.astype("<i8").tobytes())
    if op == "decode" and case.queries.tree is not None:
        parts.append(case.queries.tree.astype("<u4").tobytes())
    for values in (case.scores.slopes, case.scores.sinks):
        if op == "decode" and values is not None:
            parts.append(values.astype("<f4").tobytes())
    if begun.table is not None:
        parts.append(begun.table.astype("<i4").tobytes())
    if op == "decode":
        out, bound = cases.answer(case)
        parts += [plane.tobytes() for plane in case.planes.all()]
        parts += [case.q.tobytes(), out.tobytes(), bound.tobytes()]
    else:
        parts += [cases.source(begun, values).tobytes() for values in (begun.k, begun.v)]
        parts += [plane.tobytes() for plane in cases.stored(case).all()]
    return b"".join(parts)


def write(raw, folder: Path, seed: int, count: int) -> Path:
    """The first cases of a seed, one decode and at most one store record each."""
    words, path = cases.Words.of(raw), folder / f"cases-{seed}.bin"
    folder.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for index in range(count):
            case = cases.make(words, seed, index)
            if sum(case.shape.planes) > LARGEST:
                continue
            file.write(record(raw, case, "decode"))
            if case.store is not None:
                file.write(record(raw, case, "append" if case.store.append else "bulk"))
    return path
