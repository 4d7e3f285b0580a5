"""The numbers of results/engine-at-8k.md: its sentences, and the values that kept files give.

Values are computed from the files themselves, not taken from what kvbench prints about them.
"""

import json
import re
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any

from kvbench.model import Ceiling
from kvbench.sizing.known import known
from results import engine
from tests.raw import ROOT

RUN = ROOT / "results" / "zen4-kvm-2" / "engine"
OWN = ROOT / "results" / "zen4-kvm-2" / "llama-4-layers"
SIZES = engine.Sizes()
MIB = 1 << 20
BYTES = {"f16": 2.0, "q8_0": 34 / 32}  # of an element in the cache
FORMATS = tuple(BYTES)
SHORT, MIDDLE, LONG = (depth + engine.TOKENS // 2 for depth in engine.DEPTHS)


@cache
def reached() -> dict[tuple[str, int], tuple[float, float, float, int]]:
    """Return what `engine.py run` printed by number format and context: tokens/s, the least and the
    most of the rounds, and how many rounds there are.
    """
    said = re.findall(
        r"(?m)^(\w+) at (\d+) tokens, thp pages: (\S+) tokens/s \((\S+) to (\S+) in (\d+) rounds\)",
        (OWN / "measured.txt").read_text(),
    )
    return {
        (dtype, int(context)): (float(rate), float(low), float(high), int(rounds))
        for dtype, context, rate, low, high, rounds in said
    }


def step(dtype: str, context: int) -> float:
    """Return the seconds of a step that was measured."""
    return 1 / reached()[dtype, context][0]


def weights() -> int:
    """Return the bytes of weights that a step reads: all of them, and one row of the embedding."""
    index = json.loads((OWN / "model.safetensors.index.json").read_text())
    words, row = len(engine.WORDS), 2 * SIZES.hidden
    return index["metadata"]["total_size"] - words * row + row


def cache_bytes(dtype: str, context: int) -> float:
    """Return the bytes of K and V of all layers."""
    return 2 * SIZES.layers * SIZES.kv_heads * SIZES.head_dim * BYTES[dtype] * context


@cache
def reads() -> Ceiling:
    """Return the GB/s of plain reads of memory by all threads, with both ends."""
    found = known(RUN).plain_read()
    assert found is not None
    return found


@cache
def layers(dtype: str, context: int) -> dict[tuple[str, str], float]:
    """Return the seconds of attention in a layer, by engine and layout: the fastest kernel's."""
    found: dict[tuple[str, str], float] = {}
    for each in json.loads((RUN / "summary.json").read_text())["results"]:
        point = each["point"]
        if (point["dtype"], point["shape"]["context"]) == (dtype, context):
            key = point["engine"], point["layout"]
            found[key] = min(each["seconds"], found.get(key, each["seconds"]))
    return found


ENGINE, BY_HEAD, OURS = ("ggml", "position"), ("ggml", "head"), ("kvbench", "head")
TIMED = 8192  # tokens of the attention that was timed alone


def attention(dtype: str, kernel: tuple[str, str] = ENGINE) -> float:
    """Return the seconds of all layers at the longest measured context."""
    return SIZES.layers * layers(dtype, TIMED)[kernel] * LONG / TIMED


def added(dtype: str) -> float:
    """Return how many seconds longer a step takes at the longest context than at the shortest."""
    return step(dtype, LONG) - step(dtype, SHORT)


def reading(dtype: str) -> float:
    """Return the seconds of plain reads of the cache at the longest context."""
    return cache_bytes(dtype, LONG) / (reads().median * 1e9)


def weighing() -> float:
    """Return the seconds of plain reads of the weights."""
    return weights() / (reads().median * 1e9)


def faster(dtype: str, kernel: tuple[str, str]) -> float:
    """Return the tokens/s at the longest context if attention took the time of this kernel."""
    return 1 / (step(dtype, LONG) - attention(dtype) + attention(dtype, kernel))


def missing(dtype: str) -> float:
    """Return the seconds of a step at the longest context that its parts alone do not explain."""
    return step(dtype, LONG) - weighing() - attention(dtype)


def kept(dtype: str, context: int) -> float:
    """Return the share of the speed at the shortest context."""
    return reached()[dtype, context][0] / reached()[dtype, SHORT][0]


def halved(dtype: str) -> float:
    """Return the tokens at which a step takes twice as long, on a line between two contexts."""
    twice, near, far = 2 * step(dtype, SHORT), step(dtype, MIDDLE), step(dtype, LONG)
    assert near < twice < far
    return MIDDLE + (twice - near) / (far - near) * (LONG - MIDDLE)


def lost() -> tuple[str, str]:
    """Return the claim of the title, if it is true of both formats."""
    assert all(kept(dtype, LONG) < 0.5 for dtype in FORMATS)
    return "half", f"{LONG // 1000}k"


@cache
def split(dtype: str) -> dict:
    """Return what `kvbench profile --engine` measured."""
    return json.loads((OWN / f"profile-{dtype}.json").read_text())


def part(name: str) -> list[str]:
    """Return the shares of a part of a call with their ends, for both formats: percent."""
    own = (
        next(each["share"] for each in split(dtype)["parts"] if each["part"] == name)
        for dtype in FORMATS
    )
    return [f"{100 * share[end]:.1f}" for share in own for end in ("value", "low", "high")]


# ---- how pages write values ----------------------------------------------------------------------


def ms(seconds: float, digits: int = 1) -> str:
    return f"{1e3 * seconds:.{digits}f}"


def percent(share: float) -> str:
    return f"{100 * share:.0f}"


def both(value: Callable[[str], str]) -> list[str]:
    """Return a value of each format."""
    return [value(dtype) for dtype in FORMATS]


def hundreds(tokens: float) -> str:
    return f"{round(tokens, -2):,.0f}"


def row(dtype: str, context: int) -> tuple[str, ...]:
    """Return the values of a row of the first table."""
    rate, low, high, rounds = reached()[dtype, context]
    assert rounds == engine.ROUNDS
    rates = (f"{each:.1f}" for each in (rate, low, high))
    return f"{context:,}", *rates, ms(step(dtype, context)), percent(kept(dtype, context))


def replaced(kernel: tuple[str, str]) -> list[str]:
    """Return the values of a row of the last table."""
    return [
        value
        for dtype in FORMATS
        for value in (
            ms(layers(dtype, TIMED)[kernel], 2),
            f"{faster(dtype, kernel):.0f}",
        )
    ]


def times(dtype: str) -> str:
    """Return how many times as fast the engine's kernel is on a cache that lies head by head."""
    found = layers(dtype, TIMED)
    return f"{found[ENGINE] / found[BY_HEAD]:.1f}"


def rates(dtype: str) -> list[str]:
    """Return the tokens/s at the shortest and at the longest context, as whole numbers."""
    return [f"{reached()[dtype, context][0]:.0f}" for context in (SHORT, LONG)]


def deep() -> str:
    """Return the tokens of the longest prompt."""
    return f"{engine.DEPTHS[-1]:,}"


def cores() -> int:
    """Return how many CPUs the run saw."""
    return len(json.loads((RUN / "machine.json").read_text())["topology"]["cpus"])


# A template, and a function that computes what stands in its places.
SENTENCES: tuple[tuple[str, Callable[[], Iterable[Any]]], ...] = (
    ("more than {} of its speed at {} tokens?", lost),
    (
        "at {} tokens/s when the context is empty, and at {} tokens/s behind {} tokens (f16 cache,"
        " {} threads). With a q8_0 cache it falls from {} to {} tokens/s.",
        lambda: (*rates("f16"), deep(), cores(), *rates("q8_0")),
    ),
    (
        "take {}% of the added time. The engine's attention takes {}% of it.",
        lambda: (percent(reading("f16") / added("f16")), percent(attention("f16") / added("f16"))),
    ),
    (
        "reach about {} tokens/s. The engine's own kernel would reach about {} if",
        lambda: [f"{faster('f16', kernel):.0f}" for kernel in (OURS, BY_HEAD)],
    ),
    (
        "has {}% of the bytes of f16, and behind {} tokens",
        lambda: (percent(BYTES["q8_0"] / BYTES["f16"]), deep()),
    ),
    (
        "{} of the speed is lost at about {} tokens with f16, and at about {} tokens with q8_0.",
        lambda: ("Half", *both(lambda dtype: hundreds(halved(dtype)))),
    ),
    ("a virtual machine with {} cores", lambda: [cores()]),
    ("{} layers of Llama-3.2-1B", lambda: [SIZES.layers]),
    (
        "decodes {} tokens behind prompts of several lengths. The table counts {} of these tokens",
        lambda: (engine.TOKENS, "half"),
    ),
    ("tokens/s ({} rounds)", lambda: [engine.ROUNDS]),
    *(
        (
            f"| {dtype} | {{}} | {{}} ({{}} to {{}}) | {{}} ms | {{}}% |",
            partial(row, dtype, context),
        )
        for dtype in BYTES
        for context in (SHORT, MIDDLE, LONG)
    ),
    (
        "reads {} MiB of weights at every context. At {} tokens it also reads the cache: {} MiB in"
        " f16, {} MiB in q8_0. Plain reads of memory reach {} GB/s here.",
        lambda: (
            f"{weights() / MIB:.0f}",
            f"{LONG:,}",
            *both(lambda dtype: f"{cache_bytes(dtype, LONG) / MIB:.0f}"),
            f"{reads().median:.1f}",
        ),
    ),
    (
        "the weights take {} ms, the f16 cache takes {} ms and the q8_0 cache takes {} ms. But a"
        " step takes {} ms longer with f16 and {} ms longer with q8_0. Memory explains {}% and {}%",
        lambda: (
            ms(weighing()),
            *both(lambda dtype: ms(reading(dtype))),
            *both(lambda dtype: ms(added(dtype))),
            *both(lambda dtype: percent(reading(dtype) / added(dtype))),
        ),
    ),
    (
        "At {} tokens attention takes {}% of a step with f16 and {}% with q8_0. It takes {}% and"
        " {}% of the time that was added since {} tokens.",
        lambda: (
            f"{LONG:,}",
            *both(lambda dtype: percent(attention(dtype) / step(dtype, LONG))),
            *both(lambda dtype: percent(attention(dtype) / added(dtype))),
            SHORT,
        ),
    ),
    ("splits a call at {} tokens", lambda: [f"{split('f16')['point']['shape']['context']:,}"]),
    ("plain reads of as many bytes | {}% ({} to {}) | {}% ({} to {}) |", partial(part, "read")),
    ("without tokens | {}% ({} to {}) | {}% ({} to {}) |", partial(part, "start")),
    ("beyond the read | {}% ({} to {}) | {}% ({} to {}) |", partial(part, "core")),
    ("sharing would save | {}% ({} to {}) | {}% ({} to {}) |", partial(part, "threads")),
    ("more than once | {}% ({} to {}) | {}% ({} to {}) |", partial(part, "rest")),
    (
        "takes {} times as long as memory needs with f16, and {} times with q8_0",
        lambda: both(lambda dtype: f"{split(dtype)['core_times']['value']:.1f}"),
    ),
    (
        "is {} times as fast in f16 if the rows of a head follow each other, and {} times in q8_0",
        lambda: both(times),
    ),
    (
        "step at {} tokens, and replaces the time of attention in its {} layers",
        lambda: (f"{LONG:,}", SIZES.layers),
    ),
    ("| ggml, as llama.cpp calls it | {} ms | {} | {} ms | {} |", partial(replaced, ENGINE)),
    ("| ggml, the cache head by head | {} ms | {} | {} ms | {} |", partial(replaced, BY_HEAD)),
    ("| kvbench's fastest kernel | {} ms | {} | {} ms | {} |", partial(replaced, OURS)),
    ("Attention was timed at {} tokens", lambda: [f"{TIMED:,}"]),
    (
        "At {} tokens {} ms of the step are neither weights nor attention. With q8_0 the parts take"
        " {} ms more than the step.",
        lambda: (f"{LONG:,}", ms(missing("f16")), ms(-missing("q8_0"))),
    ),
    (
        "to within {} to {} GB/s. The rounds of f16 at {} tokens",
        lambda: (f"{reads().low:.0f}", f"{reads().high:.0f}", SHORT),
    ),
    ("Weights of {} bits", lambda: [4]),
)
