"""How a field of a point is declared: its values, and how suites, tables and names write it."""

import dataclasses
from dataclasses import dataclass
from typing import Any, get_type_hints


@dataclass(frozen=True, slots=True)
class Field:
    """The declaration of one field. Axes of suites, options, columns of tables and short names
    follow from it.

    kind: of its values; suite/axes.py has a reader for each. words: the allowed words, if they are
    not the library's. default: of the axis. about: help of the option; without it there is no
    option. short: how a short name writes the value. within: the field that this one depends on,
    such as "layout". If that field makes it meaningless, it has its default; and only points with
    equal values of that field are compared in it.
    """

    name: str
    kind: str
    meaning: str = ""  # for the schemas; from the annotation of the dataclass's field
    default: Any = None
    short: str = ""
    about: str = ""
    words: tuple[str, ...] = ()
    within: str = ""
    axis: bool = True  # whether suites may name it
    column: str | None = ""  # of tables; "": the name; None: it has no column
    usual: bool = False  # whether a short name leaves out the value that most points have
    sized: bool = False  # whether the size of a slice depends on it
    walked: bool = False  # whether kvb_decode has a field of that name
    # whether runs of format 6 may lack it: then it has the default. A point's name leaves out the
    # default.
    later: bool = False
    of_model: bool = False  # whether the model gives the value if the suite does not


def of(kind: str, default: Any = None, short: str = "", about: str = "", **more: Any) -> Any:
    """Declare a dataclass field of a point or a shape: see Field."""
    metadata = {"kind": kind, "default": default, "short": short, "about": about, **more}
    own = {"default": default} if more.get("later") else {}
    return dataclasses.field(metadata=metadata, **own)


def nested() -> Any:
    """Declare a dataclass field that has fields of its own."""
    return dataclasses.field()


def declared(kind: type) -> tuple[Field, ...]:
    """The declared fields of a dataclass, in its order."""
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
