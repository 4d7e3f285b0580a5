"""Which formats of K and V to choose at which error of the output: tokens per second of each, what
a pair of formats gains over either, and which ones lead. Also what sinks, a cap of the scores,
slopes and kept tokens cost.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import product
from typing import Annotated

import pandas as pd

from kvbench.analysis.answers import pairs
from kvbench.analysis.answers.answer import Answer, Figure, State, Unit
from kvbench.analysis.answers.decodes import limited
from kvbench.analysis.answers.l3 import model_of
from kvbench.analysis.answers.tables import Tables
from kvbench.analysis.answers.workload import Workload
from kvbench.analysis.differs.contrasts import Row
from kvbench.analysis.means.formats import KEYS, format_errors
from kvbench.analysis.means.outputs import is_ours, output_errors
from kvbench.analysis.measured.estimates import enough
from kvbench.model.annotated import about
from kvbench.model.planes import apart, is_pair
from kvbench.model.point import CHANNEL, TOKEN

ALLOWED = (0.001, 0.01, 0.1)  # errors that a user may allow, as shares of the output
_TOLD = 0.01  # the error of the title
_ALIKE = 1.05  # errors within this ratio count as equal
_SAME = ("dtype", "k_scale", "variant", "layout", "isa")


class Place(StrEnum):
    """The place of a format among all others, by speed and error."""

    LEADS = "leads"  # surely faster than all formats with less error
    LEVEL = "level"  # neither behind, nor surely faster than all formats with less error
    BEHIND = "behind"  # a format with no more error is surely faster


class Other(StrEnum):
    """The format that a format is compared with."""

    K = "K's format for both"
    V = "V's format for both"
    BY_TOKEN = "K by token"


@dataclass(frozen=True, slots=True)
class Against:
    """A format compared with another one."""

    other: Annotated[Other, about("which format the other is")]
    dtype: Annotated[str, about("number format of the other")]
    speed: Annotated[Answer, about("tokens per second of the other")]
    times: Annotated[Answer, about("times as fast as the other, side by side")]


@dataclass(frozen=True, slots=True)
class Placed:
    """The place of a format among all others, for one kind of keys."""

    keys: Annotated[str, about("kind of keys: normal or heavy-tailed")]
    error: Annotated[
        float,
        about("share: root mean square error of the output, from format and kernel together"),
    ]
    format_error: Annotated[float, about("share: error from the stored rows alone")]
    place: Annotated[Place, about("leads, level or behind")]
    by: Annotated[str, about("the point that it is behind or level with; else empty")]


@dataclass(frozen=True, slots=True)
class Format:
    """A number format of K and V with the variant that reads it."""

    dtype: Annotated[str, about("number format of the cache; K + V for a pair")]
    k_scale: Annotated[str, about("what shares a scale of K: token or channel")]
    variant: Annotated[str, about("variant of the kernel")]
    layout: Annotated[str, about("layout of the cache")]
    isa: Annotated[str, about("instruction set")]
    point: Annotated[str, about("its name")]
    bytes: Annotated[float, about("bytes: one token in all layers of the model")]
    speed: Annotated[Answer, about("tokens per second of the workload, attention alone")]
    limit: Annotated[Answer, about("what limits it; `reason` is the word")]
    placed: Annotated[
        tuple[Placed, ...], about("place among all others, by keys; empty for a plug-in's format")
    ]
    against: Annotated[
        tuple[Against, ...], about("compared with K's format, V's format, or K by token")
    ]
    drawn: Annotated[
        bool, about("whether no other variant is surely faster, or as fast with less error")
    ]

    @property
    def pair(self) -> bool:
        return is_pair(self.dtype)

    @property
    def by_channel(self) -> bool:
        return self.k_scale == CHANNEL

    @property
    def kind(self) -> tuple[str, str]:
        return self.dtype, self.k_scale

    def with_(self, keys: str) -> Placed | None:
        """The format's place for these keys."""
        return next((each for each in self.placed if each.keys == keys), None)

    def over(self, other: Other) -> Against | None:
        return next((each for each in self.against if each.other == other), None)


@dataclass(frozen=True, slots=True)
class Choice:
    """The format to choose at an allowed error: the one with the least error among the fastest
    format and all that may be as fast.
    """

    allowed: Annotated[float, about("share: the largest allowed error of the output")]
    keys: Annotated[str, about("normal or heavy-tailed")]
    point: Annotated[str, about("its name; empty if no format is that exact")]
    level: Annotated[tuple[str, ...], about("other points that may be as fast")]


@dataclass(frozen=True, slots=True)
class Cost:
    """What an operation on scores costs, compared with plain scores."""

    what: Annotated[str, about("the operations: sinks, cap, alibi, kept, with their values")]
    dtype: Annotated[str, about("number format of the cache")]
    variant: Annotated[str, about("variant of the kernel")]
    layout: Annotated[str, about("layout of the cache")]
    group: Annotated[int, about("query heads per KV head")]
    head_dim: Annotated[int, about("elements of a row of K")]
    context: Annotated[int, about("tokens that every sequence holds")]
    window: Annotated[int, about("tokens attended to; 0: all")]
    threads: Annotated[int, about("threads that decode")]
    batch: Annotated[int, about("sequences")]
    model: Annotated[str, about("model with these heads; empty if unknown")]
    level: Annotated[str, about("level that feeds it")]
    point: Annotated[str, about("its name")]
    times: Annotated[Answer, about("times as long as with plain scores")]


@dataclass(frozen=True, slots=True)
class Mixed:
    """The answers about formats and scores.

    formats: the fastest first; empty if K and V always have the same format with scales by token.
    choices: by keys, from small errors to large ones.
    """

    formats: Annotated[tuple[Format, ...], about("for the page's workload, the fastest first")] = ()
    choices: Annotated[tuple[Choice, ...], about("the format to choose at each allowed error")] = ()
    costs: Annotated[tuple[Cost, ...], about("costs of operations on scores")] = ()

    def of(self, point: str) -> Format | None:
        return next((each for each in self.formats if each.point == point), None)

    def at(self, keys: str, allowed: float) -> Choice:
        own = (each for each in self.choices if (each.keys, each.allowed) == (keys, allowed))
        return next(own)

    def told(self, keys: str) -> Choice:
        """The choice that the title names."""
        return self.at(keys, _TOLD)


def mixture(tables: Tables, page: Workload) -> Mixed:
    """The answers, without suspect points."""
    suspect = tables.points["suspect"].fillna(False).astype(bool)
    known = tables.points[tables.points["seconds"].notna() & ~suspect]
    rows = {row["name"]: row for row in known.to_dict("records")}
    faster = _Faster(tables.contrasts)
    found = _Said(tables, rows, page, faster).formats()
    return Mixed(found, tuple(_choices(found, faster)), tuple(_costs(tables, rows, page)))


class _Said:
    """Builds the answers on formats. `rows`: of the table of points, by name."""

    def __init__(
        self, tables: Tables, rows: Mapping[str, Row], page: Workload, faster: "_Faster"
    ) -> None:
        self._tables, self._rows, self._page = tables, rows, page
        self._faster = faster

    def formats(self) -> tuple[Format, ...]:
        tokens = self._tokens()
        if not any(is_pair(row["dtype"]) or row["k_scale"] != TOKEN for row in tokens):
            return ()
        plain = [self._format(row) for row in tokens]
        beside = [replace(each, against=tuple(self._against(each, plain))) for each in plain]
        errors = {each.point: self._errors(each) for each in beside}
        placed = [
            replace(each, placed=tuple(self._placed(each, beside, errors))) for each in beside
        ]
        return tuple(replace(each, drawn=self._drawn(each, placed)) for each in placed)

    def _tokens(self) -> list[Row]:
        """The fastest row of each format and variant for the page's workload."""
        rows, page = self._tables.tokens, self._page
        rows = rows[rows["tokens_per_second"].notna() & rows["name"].isin(list(self._rows))]
        rows = rows.loc[[page.model in names.split(", ") for names in rows["model"]]]
        for name in ("context", "batch", "threads"):
            rows = rows[rows[name] == getattr(page, name)]
        rows = rows.sort_values("tokens_per_second", ascending=False, kind="stable")
        found: list[Row] = rows.drop_duplicates(["dtype", "k_scale", "variant"]).to_dict("records")
        return found

    def _format(self, token: Row) -> Format:
        row = self._rows[token["name"]]
        value, low, high = (token[f"tokens_per_second{end}"] for end in ("", "_low", "_high"))
        attended = min(row["window"] or row["context"], row["context"])
        return Format(
            **{name: row[name] for name in _SAME},
            point=row["name"],
            bytes=float(row["kv_bytes"] / row["batch"] / attended * self._page.layers),
            speed=Answer(
                "speed",
                row["dtype"],
                (row["name"],),
                Figure(value, low, high, Unit.TOKENS),
                launches=int(row["launches"]),
            ),
            limit=limited(row),
            placed=(),
            against=(),
            drawn=True,
        )

    def _against(self, own: Format, every: Sequence[Format]) -> Iterator[Against]:
        """Compare a format with each `Other` of its variant that was timed."""
        alike = {each.kind: each for each in every if each.variant == own.variant}
        k, v = apart(own.dtype)
        asked = {Other.K: (k, own.k_scale), Other.V: (v, TOKEN)} if own.pair else {}
        if own.by_channel:
            asked |= {Other.BY_TOKEN: (own.dtype, TOKEN)}
        for other, kind in asked.items():
            if found := alike.get(kind):
                times = pairs.lead(
                    self._tables.contrasts, own.point, found.point, "pair", own.dtype
                )
                yield Against(other, found.dtype, found.speed, times)

    def _placed(
        self, own: Format, every: Sequence[Format], errors: Mapping[str, Mapping[str, float]]
    ) -> Iterator[Placed]:
        """The places of a format. `errors`: by point and kind of keys."""
        for keys, error in errors[own.point].items():
            others = [each for each in every if keys in errors[each.point] and each is not own]
            no_more = [e for e in others if errors[e.point][keys] <= _ALIKE * error]
            less = [e for e in others if _ALIKE * errors[e.point][keys] < error]
            ahead = next((e for e in no_more if self._faster(e, own)), None)
            beside = next((e for e in less if not self._faster(own, e)), None)
            place = Place.BEHIND if ahead else Place.LEVEL if beside else Place.LEADS
            other = ahead or beside
            own_format = self._format_errors(own)[keys]
            yield Placed(keys, error, own_format, place, other.point if other else "")

    def _errors(self, own: Format) -> dict[str, float]:
        if not is_ours(own.dtype, own.variant):
            return {}
        return output_errors(*self._stored(own), own.variant)

    def _format_errors(self, own: Format) -> dict[str, float]:
        return format_errors(*self._stored(own))

    def _stored(self, own: Format) -> tuple[str, str, str]:
        return own.dtype, self._rows[own.point]["scale"], own.k_scale

    def _drawn(self, own: Format, every: Sequence[Format]) -> bool:
        """Whether to draw the format beside other variants of it; of variants that are level only
        the first.
        """
        place = every.index(own)
        alike = [(n, each) for n, each in enumerate(every) if each.kind == own.kind and n != place]
        return not any(
            _no_worse(each, own)
            and (
                self._faster(each, own)
                or not self._faster(own, each)
                and (n < place or not _no_worse(own, each))
            )
            for n, each in alike
        )


def _no_worse(one: Format, other: Format) -> bool:
    """Whether one format's error is no larger than the other's, for every kind of keys."""
    both = ((each, other.with_(each.keys)) for each in one.placed)
    return all(own.error <= _ALIKE * theirs.error for own, theirs in both if theirs)


class _Faster:
    """Whether one format surely is faster than another: from shared rounds; without these, if their
    intervals do not overlap and there are enough launches.
    """

    def __init__(self, contrasts: pd.DataFrame) -> None:
        own = contrasts.to_dict("records")
        self._judged = {frozenset((row["base_name"], row["other_name"])): row for row in own}

    def __call__(self, one: Format, other: Format) -> bool:
        row = self._judged.get(frozenset((one.point, other.point)))
        if row:
            times = pairs.answer(row, "lead", turned=one.point == row["base_name"])
            return bool(times.state is State.DECIDED and times.figure and times.figure.value > 1)
        own, others = one.speed.figure, other.speed.figure
        sure = enough(min(one.speed.launches, other.speed.launches))
        return bool(sure and own and others and own.low > others.high)


def _choices(formats: Sequence[Format], faster: _Faster) -> Iterator[Choice]:
    """The choices at all allowed errors. `formats`: the fastest first."""
    for keys, allowed in product(KEYS, ALLOWED) if formats else ():
        errors = {each.point: found.error for each in formats if (found := each.with_(keys))}
        own = [each for each in formats if errors.get(each.point, math.inf) <= allowed]
        level = [each for each in own if each is own[0] or not faster(own[0], each)]
        least = _ALIKE * min((errors[each.point] for each in level), default=0.0)
        # of formats that are level and equally exact, the one with scales by token
        level.sort(key=lambda each: (errors[each.point] > least, each.by_channel))
        names = [each.point for each in level]
        yield Choice(allowed, keys, names[0] if names else "", tuple(names[1:]))


def _costs(tables: Tables, rows: Mapping[str, Row], page: Workload) -> Iterator[Cost]:
    """The costs, those of the page's model first, then those of other models, then the rest."""
    asked = tables.contrasts[tables.contrasts["factor"] == pairs.SCORES]
    names = {"base_name", "other_name"}
    own = [row for row in asked.to_dict("records") if {row[name] for name in names} <= {*rows}]
    found = [_cost(judged, rows[judged["other_name"]], tables, page) for judged in own]
    yield from sorted(found, key=lambda cost: (cost.model != page.model, not cost.model))


def _cost(judged: Row, row: Row, tables: Tables, page: Workload) -> Cost:
    same = ("dtype", "variant", "layout", "group", "head_dim", "context", "window", "threads")
    times = pairs.answer(judged, "scores", judged["other"], turned=True)
    return Cost(
        what=judged["other"],
        **{name: row[name] for name in (*same, "batch")},
        model=model_of(row, tables.models, page),
        level=row["regime"],
        point=row["name"],
        times=replace(
            times,
            subject=(row["name"],),
            against=judged["base_name"],
            figure=times.figure and replace(times.figure, unit=Unit.LENGTH),
        ),
    )
