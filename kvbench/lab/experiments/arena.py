"""Does a decoder whose memory is one planned block keep every buffer within its bounds?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from kvbench.errors import Refused, WrongAnswer
from kvbench.lab.experiment import Asked, Outcome
from kvbench.machine import available_memory
from kvbench.model import ArenaMap
from kvbench.native import Arena, Cache, Team, decode_task, store_task
from kvbench.oracle import attention, tolerance, whole
from kvbench.report.figures.buffers import arena as figure
from kvbench.report.ruled import Column
from kvbench.sizing.map import CANARY, arena_map
from kvbench.units import counted, size

_TOKENS = 64
_PLANTED = "layer_output"


def experiment(asked: Asked, model: str = "qwen3-0.6b", context: int = 256) -> Outcome:
    plan = arena_map(model, context, "f32", canaries=True)
    if plan.total > available_memory():
        raise Refused(f"the map takes {size(plan.total)}, {size(available_memory())} are free", "a smaller --context")
    with Arena(plan.total, library=asked.library) as arena:
        fence(arena.view(), plan)
        loop = decoded(arena, plan, asked, min(_TOKENS, context))
        planted = _plant(arena.view(), plan)
        table = _table(arena.view(), plan, loop)
    return Outcome(table, _COLUMNS, figure(table, _ABOUT), _sentence(plan, loop), _notes(plan, planted))


_COLUMNS = (
    Column("offset", "offset", "0x{:X}".format),
    Column("end", "end", "0x{:X}".format),
    Column("name", "buffer"),
    Column("kind", "kind"),
    Column("size", "size", size),
    Column("written", "of it written", size),
    Column("canary", "canary"),
)
_ABOUT = "One block, each buffer at its planned offset. Bars are their bytes; marks what a decode loop wrote of them."


@dataclass(frozen=True, slots=True)
class Loop:
    """What a decode loop did. `overrun`: buffers whose canary was found broken, and the step after which it was.
    `exact`: the cache's bytes are those that were appended, each where the map has it, and no others."""

    steps: int
    layers: int
    overrun: dict[str, int]
    exact: bool


def fence(memory: np.ndarray, plan: ArenaMap) -> None:
    for buffer in plan.buffers:
        memory[buffer.end : buffer.end + buffer.canary] = _pattern(buffer.canary)


def overrun(memory: np.ndarray, plan: ArenaMap) -> list[str]:
    """Buffers whose canary is broken."""
    return [
        buffer.name
        for buffer in plan.buffers
        if not np.array_equal(memory[buffer.end : buffer.end + buffer.canary], _pattern(buffer.canary))
    ]


def decoded(arena: Arena, plan: ArenaMap, asked: Asked, steps: int) -> Loop:
    """Every token through every layer: queries, keys and values drawn into their scratch, K and V appended from there
    to the layer's cache, attention over all that it holds."""
    layers, _, kv_heads, _, head_dim = plan.buffer("kv_cache").shape
    q_heads = plan.buffer("q_scratch").shape[0]
    q, out = (_first_row(arena, plan, name, q_heads) for name in ("q_scratch", "attn_scratch"))
    k, v = (_first_row(arena, plan, name, kv_heads) for name in ("k_scratch", "v_scratch"))
    rng = np.random.default_rng(asked.seed)
    stored = rng.standard_normal((steps, layers, 2, kv_heads, head_dim), dtype=np.float32)
    queries = rng.standard_normal((layers, *q.shape), dtype=np.float32)
    answers, broken = np.empty_like(queries), {}
    with Team(len(asked.cpus), asked.cpus, asked.library) as team:
        caches = _caches(arena, plan, asked)
        for step in range(steps):
            for layer, cache in enumerate(caches):
                q[:], (k[0], v[0]) = queries[layer], stored[step, layer]
                with store_task("append", cache, k, v, team.threads, isa=asked.isa, advance=True) as append:
                    team.run(append)
                with decode_task("decode", cache, q, out, team.threads, isa=asked.isa) as decode:
                    team.run(decode)
                answers[layer] = out
            for name in overrun(arena.view(), plan):
                broken.setdefault(name, step + 1)
    _check(queries, stored, answers)
    return Loop(steps, layers, broken, exact(arena.view(), plan, stored))


def _caches(arena: Arena, plan: ArenaMap, asked: Asked) -> list[Cache]:
    """One for each layer, side by side from the map's offset on."""
    place = plan.buffer("kv_cache")
    layers, _, kv_heads, context, head_dim = place.shape
    facts = {"dtype": plan.dtype, "pad": 0, "arena": arena, "library": asked.library}
    each = place.size // layers
    return [Cache(kv_heads, head_dim, context, offset=place.offset + n * each, **facts) for n in range(layers)]


def _first_row(arena: Arena, plan: ArenaMap, name: str, heads: int) -> np.ndarray:
    """The token at the front of a scratch buffer, [1, heads, head_dim]; a decode step needs no more of it."""
    dim = plan.buffer(name).shape[-1]
    first = plan.buffer(name).offset // 4
    return arena.view(np.float32)[first : first + heads * dim].reshape(1, heads, dim)


def _check(queries: np.ndarray, stored: np.ndarray, answers: np.ndarray) -> None:
    """Of the last token, in every layer."""
    for layer, (query, answer) in enumerate(zip(queries, answers, strict=True)):
        k, v = stored[:, layer].swapaxes(0, 1)
        off = np.abs(attention(query, whole(k[None], v[None]), [len(stored)]) - answer).max()
        if not off <= tolerance(float(np.abs(v).max()), len(stored)):
            raise WrongAnswer(f"decode of layer {layer} is off by {off:.3g}", "run kvbench verify")


def exact(memory: np.ndarray, plan: ArenaMap, stored: np.ndarray) -> bool:
    place = plan.buffer("kv_cache")
    rows = memory[place.offset : place.end].view(np.float32).reshape(*place.shape[:4], -1)
    held = rows[:, :, :, : len(stored), : place.shape[4]]
    wanted = stored.transpose(1, 2, 3, 0, 4)
    others = np.count_nonzero(rows) - np.count_nonzero(held)
    return bool(np.array_equal(held.view(np.uint32), wanted.view(np.uint32))) and not others


def _plant(memory: np.ndarray, plan: ArenaMap) -> list[str]:
    """What is found when one byte is written behind a buffer; it is put back."""
    at = plan.buffer(_PLANTED).end
    memory[at] ^= 0xFF
    found = overrun(memory, plan)
    memory[at] ^= 0xFF
    return found


def _pattern(count: int) -> np.ndarray:
    return np.resize(np.frombuffer(CANARY, dtype=np.uint8), count)


def _table(memory: np.ndarray, plan: ArenaMap, loop: Loop) -> pd.DataFrame:
    """written: bytes of the 4-byte words that are not zero, as all were."""
    return pd.DataFrame(
        {
            "name": buffer.name,
            "kind": buffer.kind,
            "offset": buffer.offset,
            "end": buffer.end,
            "size": buffer.size,
            "written": 4 * np.count_nonzero(memory[buffer.offset : buffer.end].view(np.uint32)),
            "canary": f"broken in step {loop.overrun[buffer.name]}" if buffer.name in loop.overrun else "intact",
        }
        for buffer in plan.buffers
    )


def _sentence(plan: ArenaMap, loop: Loop) -> str:
    share = plan.buffer("kv_cache").size / plan.total
    broken = ", ".join(f"{name} was overrun in step {step}" for name, step in loop.overrun.items())
    kept = broken or f"all {len(plan.buffers)} canaries are intact"
    where = "every byte of K and V lies where the map has it" if loop.exact else "the cache is not as the map has it"
    return (
        f"In one block of {size(plan.total)}, {share:.1%} of it cache, {counted(loop.steps, 'token')} went through "
        f"{counted(loop.layers, 'layer')}: {kept}, and {where}."
    )


def _notes(plan: ArenaMap, planted: Sequence[str]) -> tuple[str, ...]:
    told = "it was found, and named" if planted == [_PLANTED] else f"found was {', '.join(planted) or 'nothing'}"
    return (
        f"{plan.model} at {plan.context} tokens, {plan.dtype}; the plan of kvbench size --map with canaries, in one allocation",
        "attention alone is computed, from drawn queries, keys and values; its answers are checked against float64",
        f"a byte was written behind {_PLANTED} when the loop was over: {told}",
    )
