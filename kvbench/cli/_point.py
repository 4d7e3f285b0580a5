"""Options that describe one point, and the point made from them. Both follow from the fields in
model/point.py.
"""

from collections.abc import Callable, Mapping
from typing import Any

import click

from kvbench.cli._options import cpus_option, isa_option, same, threads_option, with_options
from kvbench.cli._types import Count
from kvbench.errors import BadArgument, unknown_word
from kvbench.model import DEFAULTS, FIELDS, HEADS, MODEL_SAYS, Point
from kvbench.model.field import Field
from kvbench.model.planes import together
from kvbench.peers.builds import Build

_MODEL = (
    "Model: a name such as llama-3-8b (see suites/models.toml), a config.json or its folder, or a"
    " .gguf file. Options such as --kv-heads override it."
)
_SAME = ("context", "q_len", "dtype", "pages")
_OWN = {  # options that other commands have too, or whose name is not the field's
    "model": click.option("--model", help=_MODEL),
    "isa": isa_option,
    "threads": threads_option,
    "cpus": cpus_option,
    **{name: same(name, DEFAULTS[name], default=DEFAULTS[name]) for name in _SAME},
    "order": click.option(
        "--sequential",
        "order",
        flag_value="sequential",
        help="Keep the blocks of a paged cache in order of address. [default: shuffled]",
    ),
}
# click's type for a kind of field; suite/axes.py parses all others from text
_TYPES = {"count": Count(), "count from 0": Count()}


def options(*names: str) -> list[Callable[..., Any]]:
    """An option for each of these fields, in the order of the fields of a point."""
    return [_OWN.get(field.name) or _option(field) for field in FIELDS if field.name in names]


def _option(field: Field) -> Callable[..., Any]:
    default = None if field.default == "best" or field.of_model else field.default
    value = {
        "type": _TYPES.get(field.kind, str),
        "default": default,
        "show_default": "[default" not in field.about,
    }
    how = {"is_flag": True} if field.kind == "flag" else value
    return click.option(option_name(field.name), help=field.about, **how)


def option_name(name: str) -> str:
    """The option of a field: "--head-dim" of "head_dim"."""
    return f"--{name.replace('_', '-')}"


_POINT = (field.name for field in FIELDS if field.axis and field.name not in ("op", "engine"))
point_options = with_options(*options(*_POINT))


def point_of(
    op: str, library: Any, peers: Mapping[str, Build] | None = None, **asked: Any
) -> Point:
    """The one point that a suite with exactly these values would have: of a kernel of the library,
    or of one of these peers.
    """
    from kvbench.machine import available_memory, describe
    from kvbench.machine.placement import place
    from kvbench.plan import Site, only_point
    from kvbench.plan.site import threads_of
    from kvbench.suite.axes import words

    if op not in words("op"):
        raise unknown_word("OP", op, words("op"))
    machine = describe()
    where = {name: asked.pop(name) for name in ("cpus", "threads")}
    cpus = place(machine, where["cpus"], threads_of(op, where["threads"]))
    own, asked = _of_model(asked)
    given = own | {
        name: _value(name, value, library) for name, value in asked.items() if value is not None
    }
    refuse_missing({name: given.get(name) for name in HEADS}, "give these options, or --model")
    site = Site(machine, available_memory(), given.get("isa"), library=library, peers=peers)
    return only_point(DEFAULTS | given | where | {"op": op, "isa": site.isa}, cpus, site)


def _of_model(asked: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values that follow from --model, and all other values asked for. If --model is a file,
    the point gets the file's numbers instead of a model's name.
    """
    from kvbench.checkpoint import is_file, walked

    name, other = asked.get("model"), {key: value for key, value in asked.items() if key != "model"}
    if name is None:
        return {}, other
    found = walked(name, "--model")
    own = {key: getattr(found, key) for key in (*HEADS, *MODEL_SAYS)}
    if other.get("head_dim") not in (None, found.head_dim):
        own["v_dim"] = DEFAULTS["v_dim"]  # the model's goes with its own heads
    if not is_file(name):
        return own | {"model": name}, other
    if other.get("layers") == "model":
        raise BadArgument(
            "--layers model needs a model of suites/models.toml", f"--layers {found.layers}"
        )
    if other.get("window") == "model":
        other["window"] = str(found.window)
    return own, other


def _value(name: str, value: Any, library: Any) -> Any:
    """The one value that an option gives, parsed as a value of a suite."""
    from kvbench.suite import read_axis
    from kvbench.suite.values import ALL

    if name == "dtype":
        return together(*library.halves(value, option_name(name)))
    first, *others = read_axis(option_name(name), name, value, library)
    if others or first == ALL:
        raise BadArgument(
            f"{option_name(name)}: {str(value)[:60]!r} means several values", "give one value"
        )
    return first


def refuse_missing(geometry: dict[str, Any], hint: str) -> None:
    """Refuse a geometry of which neither an option nor a model gave all values."""
    missing = [option_name(name) for name, value in geometry.items() if value is None]
    if missing:
        raise BadArgument(f"the shape is incomplete without {', '.join(missing)}", hint)
