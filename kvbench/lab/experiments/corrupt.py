"""How soon does a decoder say something else when its cache is wrong, and would anyone see it before?"""

from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np
import pandas as pd

from kvbench.apart import apart
from kvbench.lab.decoder import Cached, Decoder, Naive, greedy
from kvbench.lab.experiment import Asked, Outcome
from kvbench.native import Cache, key_bytes
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.ruled import Column

PROMPT, STEPS = 32, 256  # tokens
FAULT = 64  # the step before which a cache goes wrong
_HEALTHY = "healthy"
_BYTE = 0x40  # as float32 3.0, as float16 2.1: a number in every format, and a key that attracts or repels

Fault = Callable[[Cached], None]


def experiment(asked: Asked, dtype: str = "f32") -> Outcome:
    decoder = Decoder(asked.seed)
    prompt = np.random.default_rng(asked.seed).integers(decoder.sizes.vocabulary, size=PROMPT).tolist()
    naive = apart(_naive, asked.seed, prompt, STEPS, cpus=asked.cpus[:1])
    runs = [
        _beside(naive, _run(decoder, prompt, asked, fault, layout=layout, dtype=dtype)).assign(layout=layout, run=name)
        for layout in asked.library.words("layout")
        if dtype in asked.library.dtypes(layout)
        for name, fault in {_HEALTHY: None, **_FAULTS}.items()
    ]
    every = pd.concat(runs, ignore_index=True)
    table = pd.DataFrame([_summary(own) for own in runs])
    margin = _margin(naive)
    return Outcome(table, _COLUMNS, _figure(every, margin), _sentence(table, margin, dtype), _notes(margin), every)


# ---- the faults ------------------------------------------------------------------------------------------------------


def _one_key(cached: Cached) -> None:
    """Of the first layer's first head, in the middle of the prompt."""
    cache = cached.caches[0]
    cache.arena.view()[key_bytes(cache, PROMPT // 2, head=0)] = _BYTE


def _shifted(cached: Cached) -> None:
    """From now on a token's row lies one slot behind the one that is read as its."""

    rightly = cached.store

    def store(cache: Cache, k: np.ndarray, v: np.ndarray) -> None:
        cache.advance(1)
        rightly(cache, k, v)
        cache.rollback(1)

    cached.store = store


_FAULTS: dict[str, Fault] = {"one key overwritten": _one_key, "every write one slot late": _shifted}


# ---- the runs --------------------------------------------------------------------------------------------------------


def _naive(seed: int, prompt: Sequence[int], steps: int) -> np.ndarray:
    """The logits of every step."""
    return np.array(list(islice(greedy(Naive(Decoder(seed)).step, prompt), steps)))


def _run(decoder: Decoder, prompt: Sequence[int], asked: Asked, fault: Fault | None, **facts: str) -> np.ndarray:
    with Cached(decoder, PROMPT + STEPS + 1, asked.isa, library=asked.library, **facts) as cached:
        logits = greedy(cached.step, prompt)
        before = list(islice(logits, FAULT))
        if fault:
            fault(cached)
        return np.array([*before, *islice(logits, STEPS - FAULT)])


def _margin(logits: np.ndarray) -> float:
    """By how much the best logit leads, where it leads least."""
    best = np.partition(logits, -2, axis=1)[:, -2:]
    return float((best[:, 1] - best[:, 0]).min())


def _beside(naive: np.ndarray, own: np.ndarray) -> pd.DataFrame:
    """A row for each step."""
    facts = {"step": np.arange(len(own)), "token": own.argmax(axis=1), "naive_token": naive.argmax(axis=1)}
    return pd.DataFrame({**facts, "distance": np.abs(own.astype(float) - naive).max(axis=1)})


def _summary(own: pd.DataFrame) -> dict[str, object]:
    """first: the step of the first other token, or none."""
    other = own.loc[own["token"] != own["naive_token"], "step"]
    first = int(other.iloc[0]) if len(other) else None
    same = own if first is None else own[own["step"] <= first]
    return {
        "layout": own["layout"].iloc[0],
        "run": own["run"].iloc[0],
        "first": np.nan if first is None else first,
        "others": len(other),
        "before": own.loc[own["step"] < FAULT, "distance"].max(),
        "at": own.loc[own["step"] == FAULT, "distance"].iloc[0],
        "same": same["distance"].max(),
        "largest": own["distance"].max(),
    }


# ---- what is told ----------------------------------------------------------------------------------------------------

_COLUMNS = (
    Column("layout", "layout"),
    Column("run", "cache"),
    Column("first", "first other token", "{:.0f}".format),
    Column("others", f"others of {STEPS}"),
    Column("before", f"before {FAULT}", "{:.1e}".format),
    Column("at", f"at {FAULT}", "{:.1e}".format),
    Column("same", "same text", "{:.1e}".format),
    Column("largest", "all", "{:.1e}".format),
)


def _notes(margin: float) -> tuple[str, ...]:
    return (
        "a decoder of four layers with drawn weights and greedy tokens, in float32; the naive one computes all keys and "
        "values anew at every step, without a kernel of ours, and attention in float64",
        f"the last four columns are the largest distance before step {FAULT}, at it, while the text is the same, and of all "
        "steps. Distance: the largest difference of a logit from the naive decoder's at the same step. Logits have unit "
        f"variance; the naive decoder's best one never leads by less than {margin:.1e}",
        f"faults before step {FAULT}: in the first layer one key of the prompt becomes bytes of {_BYTE:#x}; or every "
        "further row is written one slot behind its own",
        "only f32 keeps keys and values as they were computed: in another format nothing promises the same tokens",
        "one thread; the CSV has every step",
    )


def _figure(every: pd.DataFrame, margin: float):
    shown = every.assign(distance=every["distance"].where(every["distance"] > 0))
    panels = [
        Panel(
            x="step",
            y="distance",
            x_label="step (token after the prompt)",
            y_label="distance from the naive logits",
            title=layout,
            by="run",
            where=("layout", layout),
            log="y",
            levels=((margin, "smallest lead of a best logit"),),
        )
        for layout in dict.fromkeys(every["layout"])
    ]
    about = "The largest difference of a logit from the naive decoder's, while each decodes its own tokens."
    return chart("corrupt", "A wrong cache", about, shown, panels)


def _sentence(table: pd.DataFrame, margin: float, dtype: str) -> str:
    healthy = table[table["run"] == _HEALTHY]
    told = [_healthy(healthy, margin, dtype)]
    told += [_fault(name, table[table["run"] == name], healthy) for name in _FAULTS]
    return f"{'; '.join(told)}."


def _healthy(runs: pd.DataFrame, margin: float, dtype: str) -> str:
    differ = runs.dropna(subset="first")
    if len(differ):
        where = ", ".join(f"{run.layout} at step {run.first:.0f}" for run in differ.itertuples())
        return (
            f"With a healthy {dtype} cache the greedy tokens are not those of the naive decoder: the first other one is "
            f"{where} of {STEPS}"
        )
    most = runs["same"].max()
    sure = f"logits differ by {most:.1e} at most, and the best one leads by {margin:.1e} or more"
    if 2 * most >= margin:
        sure = f"but logits differ by up to {most:.1e} where the best one leads by {margin:.1e}, so that this is luck"
    layouts = ", ".join(runs["layout"])
    return f"With a healthy {dtype} cache all {STEPS} greedy tokens are those of the naive decoder ({layouts}): {sure}"


def _fault(name: str, runs: pd.DataFrame, healthy: pd.DataFrame) -> str:
    told = (
        f"with {name} from step {FAULT} on, logits are up to {runs['at'].max():.1e} away at that step, after "
        f"{runs['before'].max():.1e} before"
    )
    seen = runs.dropna(subset="first")
    if not len(seen):
        return f"{told}, and no token differs in {STEPS - FAULT} steps"
    first, last = int(seen["first"].min()), int(seen["first"].max())
    when = f"of step {first}" if first == last else f"of step {first} to {last}, by layout"
    left = f", while {len(runs) - len(seen)} of {len(runs)} layouts have none" if len(seen) < len(runs) else ""
    late = seen.merge(healthy, on="layout", suffixes=("", "_healthy")).eval("first >= first_healthy").any()
    too = ", but by then a healthy one differs, too" if late else ""
    return f"{told}, and the first other token is that {when}{left}{too}"
