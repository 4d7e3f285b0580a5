"""Why keep a cache: what does a token cost when the keys and values of all tokens before it are projected again?"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from kvbench.analysis.launches import interval
from kvbench.apart import apart
from kvbench.errors import BadArgument, Refused, WrongAnswer
from kvbench.lab.experiment import Asked, Outcome
from kvbench.lab.geometry import known
from kvbench.machine import available_memory
from kvbench.native import Cache, library_of
from kvbench.oracle import attention, whole
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.figures.figure import Figure
from kvbench.report.ruled import Column
from kvbench.suite import Model
from kvbench.units import counted, duration, size
from kvbench.worker.calls import timed
from kvbench.worker.owner import Owner

_FIRST = 32  # the least context
_FITTED = 256  # the least one that exponents are fitted to: below it, calls cost more than bytes and products
_LEAST = 4 * _FITTED
_ROUNDS = 15
_STEPS = 16  # tokens of a timed call, one after another as in an answer
_AGAIN = 512  # of them at most, with all before them, in a call without the cache
_EQUAL = 1e-4
_SURE = 0.95  # with which intervals hold a median

_WAYS = {"naive": "projected again", "cached": "kept in a cache"}


def experiment(asked: Asked, model: str = "qwen3-0.6b", context: int = 4096) -> Outcome:
    geometry, contexts, cpu = known(model), _contexts(context), asked.cpus[0]
    how = _How(str(asked.library.path), asked.isa, asked.seed)
    samples = apart(measured, how, geometry, contexts, _ROUNDS, cpus=(cpu,))
    found, fits = _table(samples), _fits(samples)
    return Outcome(found, _COLUMNS, _figure(found), _sentence(found, fits), _notes(cpu, model, geometry))


def _contexts(most: int) -> list[int]:
    if most < _LEAST:
        raise BadArgument(f"--context is {most}", f"{_LEAST} or more: exponents are fitted from {_FITTED} tokens on")
    powers = [_FIRST << step for step in range((most // _FIRST).bit_length())]
    return list(dict.fromkeys((*powers, most)))


@dataclass(frozen=True, slots=True)
class _How:
    """What a process is told. `library`: its path."""

    library: str
    isa: str
    seed: int


def measured(how: _How, model: Model, contexts: Sequence[int], rounds: int) -> pd.DataFrame:
    """Seconds of a token, by way, context and round."""
    with _Layer(how, model, contexts[-1]) as layer:
        for each in contexts:
            layer.refuse_wrong(each)
        return _samples(layer, contexts, rounds, how.seed)


class _Layer(Owner):
    """What attention of one layer needs: the states of all tokens, three projections, and two caches, of which one is
    kept from step to step and one is stored anew in each."""

    def __init__(self, how: _How, model: Model, tokens: int) -> None:
        self._how, self._model, self._tokens = how, model, tokens
        super().__init__()

    def _prepare(self) -> None:
        model, tokens, draw = self._model, self._tokens, np.random.default_rng(self._how.seed)
        heads = {"q": model.q_heads, "k": model.kv_heads, "v": model.kv_heads}
        self._refuse_too_much(sum(heads.values()))
        self._states = draw.standard_normal((tokens, model.hidden), dtype=np.float32)
        self._weights = {
            name: draw.standard_normal((model.hidden, count * model.head_dim), dtype=np.float32)
            / np.float32(np.sqrt(model.hidden))
            for name, count in heads.items()
        }
        shape, library = (model.kv_heads, model.head_dim, tokens), library_of(self._how.library)
        self._kept, self._anew = (self._owned.enter_context(Cache(*shape, library=library)) for _ in range(2))
        self._rows = self._projected("k", 0, tokens), self._projected("v", 0, tokens)
        self._kept.bulk(*self._rows, isa=self._how.isa)

    def _refuse_too_much(self, heads: int) -> None:
        row = self._model.hidden + 8 * self._model.kv_heads * self._model.head_dim  # states; K and V four times
        wanted = 4 * (self._tokens * row + self._model.hidden * heads * self._model.head_dim)
        if wanted > (free := available_memory()):
            raise Refused(
                f"the experiment needs {size(wanted)} of memory, {size(free)} are free", "a smaller --context"
            )

    def _projected(self, name: str, first: int, count: int) -> np.ndarray:
        """Of some tokens, [1, count, heads, head_dim]."""
        rows = self._states[first : first + count] @ self._weights[name]
        return rows.reshape(1, count, -1, self._model.head_dim)

    def naive(self, context: int, steps: int) -> np.ndarray:
        """The last `steps` of so many tokens, without anything known of those before them."""
        for tokens in range(context - steps + 1, context + 1):
            self._anew.reset()
            self._anew.bulk(self._projected("k", 0, tokens), self._projected("v", 0, tokens), isa=self._how.isa)
            out = self._anew.decode(self._projected("q", tokens - 1, 1)[:, 0], isa=self._how.isa)
        return out

    def cached(self, context: int, steps: int) -> np.ndarray:
        """The same ones, with those before them in the cache."""
        self._kept.lengths[:] = context - steps
        for token in range(context - steps, context):
            self._kept.append(
                self._projected("k", token, 1)[:, 0], self._projected("v", token, 1)[:, 0], isa=self._how.isa
            )
            out = self._kept.decode(self._projected("q", token, 1)[:, 0], isa=self._how.isa)
        return out

    def refuse_wrong(self, context: int) -> None:
        """Both ways against float64, and so against each other."""
        right = attention(self._projected("q", context - 1, 1)[:, 0], whole(*self._rows), [context])
        for way in _WAYS:
            error = float(np.abs(getattr(self, way)(context, _steps(way, context)) - right).max())
            if not error <= _EQUAL / 2:
                raise WrongAnswer(f"{way}: off by {error:.3g} at {context} tokens", "run kvbench verify")


def _steps(way: str, context: int) -> int:
    """Tokens of a timed call: one alone is short."""
    return _STEPS if way == "cached" else max(1, min(_STEPS, _AGAIN // context))


def _samples(layer: _Layer, contexts: Sequence[int], rounds: int, seed: int) -> pd.DataFrame:
    asked = {f"{way} {context}": (way, context, _steps(way, context)) for context in contexts for way in _WAYS}
    calls = {name: partial(getattr(layer, way), context, steps) for name, (way, context, steps) in asked.items()}
    return pd.DataFrame(
        [
            {"way": asked[name][0], "context": asked[name][1], "round": number, "seconds": each / asked[name][2]}
            for name, seconds in timed(calls, rounds, seed).items()
            for number, each in enumerate(seconds)
        ]
    )


# ---- what follows from it --------------------------------------------------------------------------------------------


def _table(samples: pd.DataFrame) -> pd.DataFrame:
    """A row for each context. Seconds of a token, and how many times as fast it is with the cache: medians."""
    times = samples.pivot(index="round", columns=["way", "context"], values="seconds")
    rows: dict[int, dict[str, Any]] = {}
    for context in sorted(set(samples["context"])):
        of = {way: times[way, context] for way in _WAYS}
        values = of | {"speedup": of["naive"] / of["cached"]}
        row = {f"{name}{end}": one for name, each in values.items() for end, one in _spread(each).items()}
        rows[context] = {"context": context, **row, "tokens_per_second": 1 / row["cached"]}
    found = pd.DataFrame(list(rows.values()))
    for way in _WAYS:
        found[f"{way}_answer"] = _answer(found["context"].to_numpy(), found[way].to_numpy())
    return found


def _answer(contexts: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Seconds of all tokens up to each context: between two that were measured there is a straight line."""
    tokens = np.arange(1, contexts[-1] + 1)
    return np.cumsum(np.interp(tokens, contexts, times))[contexts - 1]


def _exponent(contexts: np.ndarray, times: np.ndarray) -> float:
    """n of time ~ context^n, by least squares on logarithms."""
    return float(np.polyfit(np.log(contexts), np.log(times), 1)[0])


def _fits(samples: pd.DataFrame) -> pd.DataFrame:
    """By way: exponents of a token's time and of a whole answer's, fitted in every round; medians and intervals."""
    rows = {}
    for way, own in samples.groupby("way"):
        times = own.pivot(index="round", columns="context", values="seconds")
        contexts = times.columns.to_numpy()
        fitted = contexts >= _FITTED
        each = times.to_numpy()
        tokens = [_exponent(contexts[fitted], row[fitted]) for row in each]
        answers = [_exponent(contexts[fitted], _answer(contexts, row)[fitted]) for row in each]
        spreads = {"token": _spread(tokens), "answer": _spread(answers)}
        rows[way] = {f"{name}{end}": one for name, spread in spreads.items() for end, one in spread.items()}
    return pd.DataFrame.from_dict(rows, orient="index")


def _spread(values: Sequence[float]) -> dict[str, float]:
    low, high = interval(values, _SURE)
    return {"": float(np.median(values)), "_low": low, "_high": high}


# ---- what is said of it ----------------------------------------------------------------------------------------------

_COLUMNS = (
    Column("context", "context"),
    Column("naive", "projected again", duration),
    Column("cached", "with the cache", duration),
    Column("speedup", "times as fast", "{:.3g}".format),
    Column("speedup_low", "from", "{:.3g}".format),
    Column("speedup_high", "to", "{:.3g}".format),
    Column("tokens_per_second", "tokens/s with it", "{:.4g}".format),
    Column("naive_answer", "all tokens, again", duration),
    Column("cached_answer", "all tokens, cached", duration),
)


def _notes(cpu: int, model: str, geometry: Model) -> tuple[str, ...]:
    heads = f"{counted(geometry.kv_heads, 'KV head')} of {geometry.head_dim} numbers"
    return (
        f"one layer's attention with the shape of {model} ({geometry.source}): hidden size {geometry.hidden}, {heads}, "
        "weights and states drawn, float32; a model without a cache would have to redo all else of its layers, too",
        f"both ways: NumPy projects, the kernels store and decode, by one thread on CPU {cpu}, the first of those "
        f"asked for; answers agree with float64, and so with each other to {_EQUAL:g}",
        f"a time is the mean of up to {_STEPS} tokens that end at the context; all tokens: the sum over an answer that "
        "begins with nothing, by straight lines between contexts",
        f"from, to: {_SURE:.0%} intervals over {_ROUNDS} rounds",
    )


def _figure(found: pd.DataFrame) -> Figure:
    ways = [
        pd.DataFrame(
            {
                "context": found["context"],
                "way": text,
                "ms": found[way] * 1e3,
                "ms_low": found[f"{way}_low"] * 1e3,
                "ms_high": found[f"{way}_high"] * 1e3,
            }
        )
        for way, text in _WAYS.items()
    ]
    ways[1] = ways[1].assign(**{name: found[name] for name in ("speedup", "speedup_low", "speedup_high")})
    shared = {"x": "context", "x_label": "tokens of context", "log": "xy", "by": "way"}
    time = Panel(y="ms", y_label="ms for a token in one layer", low="ms_low", high="ms_high", title="Time", **shared)
    gain = {"y": "speedup", "low": "speedup_low", "high": "speedup_high", "where": ("way", _WAYS["cached"])}
    speedup = Panel(
        y_label="times as fast as projecting again",
        title="What the cache gains",
        levels=((1.0, "no gain"),),
        **gain,
        **shared,
    )
    about = (
        "A token's projections and attention in one layer, keys and values of all tokens before it projected again or kept."
        " Thin lines are intervals."
    )
    return chart("naive", "Why keep a cache", about, pd.concat(ways, ignore_index=True), (time, speedup))


def _sentence(found: pd.DataFrame, fits: pd.DataFrame) -> str:
    last = found.iloc[-1]
    grows = {
        way: "T^{:z.2f} ({:z.2f}..{:z.2f})".format(*fits.loc[way, ["token", "token_low", "token_high"]])
        for way in _WAYS
    }
    answers = {
        way: "T^{:z.2f} ({:z.2f}..{:z.2f})".format(*fits.loc[way, ["answer", "answer_low", "answer_high"]])
        for way in _WAYS
    }
    return (
        f"At {last['context']:.0f} tokens of context {_gain(last)}; {_growth(found)}; from {_FITTED} tokens on the time "
        f"of a token grows as {grows['naive']} without the cache and as {grows['cached']} with it, that of a whole answer "
        f"as {answers['naive']} and as {answers['cached']}."
    )


def _gain(row: pd.Series) -> str:
    times = f"{duration(row['cached'])} with the cache and {duration(row['naive'])} without it"
    factor = f"{row['speedup']:.3g} times as fast ({row['speedup_low']:.3g}..{row['speedup_high']:.3g})"
    if row["speedup_low"] > 1:
        return f"a token takes {times}, {factor}"
    if row["speedup_high"] < 1:
        return f"the cache does not pay: a token takes {times}, {factor}"
    return f"the cache makes no difference beyond noise: a token takes {times}, {factor}"


def _growth(found: pd.DataFrame) -> str:
    """Whether the speed-up grows from each context to the next, and beyond noise."""
    first, last, falls, doubts = found.iloc[0], found.iloc[-1], [], []
    for (_, before), (_, row) in zip(found.iloc[:-1].iterrows(), found.iloc[1:].iterrows(), strict=True):
        noise = row["speedup_high"] >= before["speedup_low"] and row["speedup_low"] <= before["speedup_high"]
        step = f"{before['speedup']:.3g} to {row['speedup']:.3g} at {row['context']:.0f}"
        if row["speedup"] <= before["speedup"]:
            falls.append(f"{step}, within noise" if noise else step)
        elif noise:
            doubts.append(step)
    ends = f"from {first['speedup']:.3g} times at {first['context']:.0f} to {last['speedup']:.3g}"
    doubt = f"within noise: {', '.join(doubts)}" if doubts else ""
    if falls:
        told = "; ".join(filter(None, (*falls, f"growth {doubt}" if doubt else "")))
        return f"the gain goes {ends}, but does not grow at every step of the context ({told})"
    if doubts:
        return f"the gain grows with the context, {ends}, though not at every step beyond noise ({doubt})"
    return f"the gain grows at every step of the context, {ends}"
