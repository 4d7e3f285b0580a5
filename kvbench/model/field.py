"""How a field of a point is declared: its values, and how suites, tables and names say it."""

import dataclasses
from dataclasses import dataclass
from typing import Any, get_type_hints


@dataclass(frozen=True, slots=True)
class Field:
    """From this follow the axes of suites, options, columns of tables and short names.

    kind: of its values; suite/axes.py has a reader for each. words: those that it may be, where
    they are not the library's. default: of the axis. about: help of the option; without it there is
    none. short: how a short name says it. within: the word that it depends on. Elsewhere it has its
    default, and only points with the same one are compared in it.
    """

    name: str
    kind: str
    meaning: str = ""  # for the schemas; of a dataclass's field it is that of its type
    default: Any = None
    short: str = ""
    about: str = ""
    words: tuple[str, ...] = ()
    within: str = ""
    axis: bool = True  # whether suites may name it
    column: str | None = ""  # of tables, where it is not the name; None: it has none
    usual: bool = False  # whether a short name is silent about what most points have
    sized: bool = False  # whether the size of a slice rests on it
    walked: bool = False  # whether kvb_decode has a field of that name
    # whether runs of format 6 may lack it: they have the default, and a point's name is silent
    # about that
    later: bool = False
    of_model: bool = False  # whether a model says it where nobody else does


def of(kind: str, default: Any = None, short: str = "", about: str = "", **more: Any) -> Any:
    """A dataclass field of a point or a shape: see Field."""
    metadata = {"kind": kind, "default": default, "short": short, "about": about, **more}
    own = {"default": default} if more.get("later") else {}
    return dataclasses.field(metadata=metadata, **own)


def nested() -> Any:
    """A dataclass field that has fields of its own."""
    return dataclasses.field()


def declared(kind: type) -> tuple[Field, ...]:
    """Those of a dataclass, in its order."""
    hints = get_type_hints(kind, include_extras=True)
    found = []
    for field in (field for field in dataclasses.fields(kind) if field.metadata):
        said = (
            meta.description
            for meta in getattr(hints[field.name], "__metadata__", ())
            if meta.description
        )
        found.append(Field(field.name, meaning=next(said, ""), **field.metadata))
    return tuple(found)
