"""What does a conversation save that rolls its cache back to what the next request has in common with it?"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from kvbench.errors import WrongAnswer
from kvbench.lab.experiment import Asked, Outcome
from kvbench.native import Cache, Task, Team, decode_task, store_task
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.ruled import Column
from kvbench.suite import model as geometry
from kvbench.units import duration, size
from kvbench.worker.calls import timed
from kvbench.worker.owner import Owner

_ROUNDS = 5
_SYSTEM, _USER, _REPLY = 800, (20, 200), (100, 400)  # tokens of the prompt that all share, of a message, of an answer
_TURNS = 8
_ROLLBACK, _RESET = "rollback", "reset"


def experiment(asked: Asked, model: str = "qwen3-0.6b", dtype: str = "f16", layout: str = "head") -> Outcome:
    known, traces = geometry(model), _traces(asked.seed)
    with _Bench(traces, known.kv_heads, known.head_dim, asked, dtype=dtype, layout=layout) as bench:
        bench.verify(known.q_heads)
        rows, taken = bench.row_bytes(), timed(bench.calls(), _ROUNDS, asked.seed, bench.ready)
    table = pd.DataFrame(
        _row(name, way, requests, taken, known.layers, rows) for name, requests in traces.items() for way in _WAYS
    )
    return Outcome(table, _COLUMNS, _figure(table), _sentence(table), _notes(model, known.layers, dtype, layout))


# ---- the traces ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Request:
    """What the cache holds when it comes, and what it asks. Every token ever said has a number of its own."""

    before: np.ndarray
    prompt: np.ndarray

    @property
    def common(self) -> int:
        """Tokens that need not be filled in again. The last one always is: what follows it is to be told."""
        count = min(len(self.before), len(self.prompt) - 1)
        return int(np.append(self.before[:count] != self.prompt[:count], True).argmax())


class Words:
    """Tokens that nobody said before."""

    def __init__(self, *seed: int) -> None:
        self._draw, self._said = np.random.default_rng(seed), 0

    def some(self, count: int) -> np.ndarray:
        self._said += count
        return np.arange(self._said - count, self._said)

    def message(self) -> np.ndarray:
        return self.some(int(self._draw.integers(*_USER)))

    def reply(self) -> np.ndarray:
        return self.some(int(self._draw.integers(*_REPLY)))


Trace = Callable[[Words], Iterator[tuple[np.ndarray, np.ndarray]]]  # prompts, each with its reply


def _chat(words: Words) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Turn follows turn."""
    said = words.some(_SYSTEM)
    for _ in range(_TURNS):
        prompt, reply = np.append(said, words.message()), words.reply()
        yield prompt, reply
        said = np.append(prompt, reply)


def _edited(words: Words) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Every message is sent, and then sent again with another second half."""
    said = words.some(_SYSTEM)
    for _ in range(_TURNS // 2):
        message = words.message()
        yield np.append(said, message), words.reply()
        prompt, reply = np.concatenate((said, message[: len(message) // 2], words.message())), words.reply()
        yield prompt, reply
        said = np.append(prompt, reply)


def _branches(words: Words) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Half of a chat, and then other ways on from each of its turns, the latest first."""
    turns = list(_chat(words))[: _TURNS // 2]
    yield from turns
    for prompt, reply in reversed(turns):
        yield np.concatenate((prompt, reply, words.message())), words.reply()


def _strangers(words: Words) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Each asks once, behind the same system prompt."""
    system = words.some(_SYSTEM)
    for _ in range(_TURNS):
        yield np.append(system, words.message()), words.reply()


_TRACES: dict[str, Trace] = {"chat": _chat, "edited": _edited, "branches": _branches, "strangers": _strangers}


def _traces(seed: int) -> dict[str, list[Request]]:
    return {name: list(_requests(trace(Words(seed, n)))) for n, (name, trace) in enumerate(_TRACES.items())}


def _requests(trace: Iterator[tuple[np.ndarray, np.ndarray]]) -> Iterator[Request]:
    before = np.arange(0)
    for prompt, reply in trace:
        yield Request(before, prompt)
        before = np.append(prompt, reply)


# ---- the bench -------------------------------------------------------------------------------------------------------


class _Bench(Owner):
    """A cache of one layer, a row of K and one of V for every token, and the threads that store them."""

    def __init__(
        self, traces: dict[str, list[Request]], kv_heads: int, head_dim: int, asked: Asked, **facts: str
    ) -> None:
        self._requests = {f"{name} {n}": each for name, own in traces.items() for n, each in enumerate(own)}
        every = self._requests.values()
        self._rows = np.random.default_rng(asked.seed).standard_normal(
            (2, 1 + max(int(each.prompt.max()) for each in every), kv_heads, head_dim), dtype=np.float32
        )
        capacity = max(max(len(each.before), len(each.prompt)) for each in every)
        self._shape, self._facts, self._asked = (kv_heads, head_dim, capacity), facts, asked
        super().__init__()

    def _prepare(self) -> None:
        asked, own = self._asked, self._owned.enter_context
        self._cache = own(Cache(*self._shape, library=asked.library, **self._facts))
        self._team = own(Team(len(asked.cpus), asked.cpus, asked.library))

    def row_bytes(self) -> float:
        """Bytes that a token writes."""
        k, v = self._rows[:, :1]
        with store_task("append", self._cache, k, v, 1, isa=self._asked.isa) as task:
            traffic = task.traffic()
        return traffic.kv + traffic.scales

    def calls(self) -> dict[str, Callable[[], None]]:
        return {f"{name} {way}": partial(play, self) for name in self._requests for way, play in _WAYS.items()}

    def ready(self, call: str) -> None:
        """As the last request has left it."""
        self._request = self._requests[call.rpartition(" ")[0]]
        self._k, self._v = self._said(self._request.prompt)
        self._cache.reset()
        if len(self._request.before):
            self._store(*self._said(self._request.before))

    def rollback(self) -> None:
        common = self._request.common
        self._cache.rollback(to=common)
        self._store(self._k[:, common:], self._v[:, common:])

    def reset(self) -> None:
        self._cache.reset()
        self._store(self._k, self._v)

    def verify(self, q_heads: int) -> None:
        """Both ways must answer with the same bits."""
        q = np.random.default_rng(self._asked.seed).standard_normal(
            (1, q_heads, self._rows.shape[-1]), dtype=np.float32
        )
        answers: dict[str, np.ndarray] = {}
        for name, play in self.calls().items():
            self.ready(name)
            play()
            request = name.rpartition(" ")[0]
            answer = self._decoded(q)
            if not np.array_equal(answers.setdefault(request, answer), answer):
                raise WrongAnswer(f"{request}: rollback and reset answer differently", "run kvbench verify")

    def _store(self, k: np.ndarray, v: np.ndarray) -> None:
        """Rows of one sequence, one behind the other; the threads are those that were asked for, as Cache.bulk's are not."""
        self._cache.reserve(k.shape[1])
        self._run(store_task("bulk", self._cache, k, v, self._team.threads, isa=self._asked.isa, advance=True))

    def _decoded(self, q: np.ndarray) -> np.ndarray:
        out = np.zeros_like(q)
        self._run(decode_task("decode", self._cache, q, out, self._team.threads, isa=self._asked.isa))
        return out

    def _run(self, task: Task) -> None:
        with task:
            self._team.run(task)

    def _said(self, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        k, v = np.take(self._rows, tokens, axis=1)  # without gaps, as tasks read it
        return k[None], v[None]


_WAYS = {_ROLLBACK: _Bench.rollback, _RESET: _Bench.reset}


# ---- what is told ----------------------------------------------------------------------------------------------------


def _row(
    name: str, way: str, requests: list[Request], taken: dict[str, list[float]], layers: int, row_bytes: float
) -> dict[str, object]:
    asked = sum(len(each.prompt) for each in requests)
    filled = asked - sum(each.common for each in requests) if way == _ROLLBACK else asked
    seconds = layers * np.sum([taken[f"{name} {n} {way}"] for n in range(len(requests))], axis=0)  # of every round
    low, middle, high = np.quantile(seconds, (0.25, 0.5, 0.75))
    return {
        "trace": name,
        "way": way,
        "requests": len(requests),
        "tokens_asked": asked,
        "tokens_filled": filled,
        "saved": 1 - filled / asked,
        "bytes": layers * filled * row_bytes,
        "seconds": middle,
        "seconds_low": low,
        "seconds_high": high,
    }


_COLUMNS = (
    Column("trace", "trace"),
    Column("way", "way"),
    Column("requests", "requests"),
    Column("tokens_asked", "tokens asked", "{:,}".format),
    Column("tokens_filled", "filled", "{:,}".format),
    Column("saved", "saved", "{:.0%}".format),
    Column("bytes", "written", size),
    Column("seconds", "time of stores", duration),
)


def _notes(model: str, layers: int, dtype: str, layout: str) -> tuple[str, ...]:
    return (
        "chat: turn follows turn; edited: each message is sent again with another second half; branches: half a chat, then "
        "another way on from each of its turns; strangers: each asks once, behind the same system prompt. All are made up",
        "saved: share of the tokens asked that need not be filled in again. Replies stay in the cache as they were made",
        f"time: of rollback or reset and the bulk store of {layout} {dtype}, one layer of {model} times {layers}; the middle "
        f"of {_ROUNDS} rounds. What computes K and V comes on top, and is saved with every token",
        "both ways gave the same bits at every request",
    )


def _figure(table: pd.DataFrame):
    shown = table.assign(**{f"ms{end}": table[f"seconds{end}"] * 1e3 for end in ("", "_low", "_high")})
    shared = {"x": "trace", "x_label": "", "by": "way", "bars": True}
    panels = (
        Panel(y="tokens_filled", y_label="tokens filled in", title="Tokens", **shared),
        Panel(y="ms", y_label="ms of stores, all layers", low="ms_low", high="ms_high", title="Time", **shared),
    )
    about = "Whole traces. Bars with the middle half of the rounds."
    return chart("prefix", "Shared prefixes", about, shown, panels)


def _sentence(table: pd.DataFrame) -> str:
    ways = {way: table[table["way"] == way].set_index("trace") for way in _WAYS}
    ours, naive = ways[_ROLLBACK], ways[_RESET]
    most, least = ours["saved"].idxmax(), ours["saved"].idxmin()
    saved = 1 - ours["tokens_filled"].sum() / naive["tokens_filled"].sum()
    return (
        f"Rolling back to the common prefix leaves {ours['tokens_filled'].sum():,} of {naive['tokens_filled'].sum():,} tokens "
        f"to be filled in, {saved:.0%} fewer ({most} {ours.loc[most, 'saved']:.0%}, {least} {ours.loc[least, 'saved']:.0%}), "
        f"and {size(ours['bytes'].sum())} of {size(naive['bytes'].sum())} to be written; {_time(ours, naive)}."
    )


def _time(ours: pd.DataFrame, naive: pd.DataFrame) -> str:
    """Noise may be larger than what is saved."""
    took = f"the stores take {duration(ours['seconds'].sum())} in place of {duration(naive['seconds'].sum())}"
    less, more = ours["seconds_high"] < naive["seconds_low"], ours["seconds_low"] > naive["seconds_high"]
    if not (less | more).any():
        return f"{took}, which is no difference that the noise would let through"
    told = [_where(less, "less"), _where(more, "more")]
    rest = "" if (less | more).all() else ", and elsewhere no difference that the noise would let through"
    return f"{took}, beyond noise {' and '.join(filter(None, told))}{rest}"


def _where(so: pd.Series, word: str) -> str:
    return f"{word} in {'every trace' if so.all() else ', '.join(so.index[so])}" if so.any() else ""
