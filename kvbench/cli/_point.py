"""Options that describe one point, and the point that they describe."""

import re
from collections.abc import Callable
from typing import Any

import click

from kvbench.cli._options import cpus_option, isa_option, threads_option
from kvbench.errors import BadArgument, unknown_word
from kvbench.model import Point, Shape

HEADS = (
    click.option("--q-heads", type=int, help="Query heads."),
    click.option("--kv-heads", type=int, help="KV heads."),
    click.option("--head-dim", type=int, help="Elements of a row."),
)
BATCH = click.option("--batch", type=int, default=1, show_default=True, help="Sequences.")
FORM = (
    click.option("--dtype", default="f16", show_default=True),
    click.option("--scale", default="f32", show_default=True, help="Dtype of the scales, where there are any."),
    click.option("--layout", default="head", show_default=True),
    click.option("--inner", default="head", show_default=True, help="Order inside a block of a paged cache."),
    click.option("--block-tokens", type=int, default=16, show_default=True, help="Tokens of a block, paged."),
    click.option("--pad", type=int, help="Bytes behind each head's plane. [default: an odd number of lines]"),
)
_OPTIONS = (
    click.option("--model", help="Geometry of a model of suites/models.toml; the options below override it."),
    click.option("--context", type=int, default=4096, show_default=True, help="Tokens that every sequence holds."),
    *HEADS,
    BATCH,
    click.option("--window", type=int, default=0, help="Attend to the last so many tokens. [default: all]"),
    click.option("--capacity", type=int, help="Tokens that there is room for. [default: the context]"),
    click.option(
        "--layers", type=int, help="Slices to rotate over. [default: more than caches hold; 1 if hot or evicted]"
    ),
    *FORM,
    click.option("--sequential", is_flag=True, help="Blocks in order, paged. [default: shuffled]"),
    click.option("--variant", help="A way of doing the op; see kvbench kernels. [default: the first]"),
    isa_option,
    threads_option,
    cpus_option,
    click.option("--pages", default="thp", show_default=True),
    click.option("--residency", default="rotate", show_default=True, help="hot, rotate or evicted."),
    click.option("--prefetch", help="A scheme, or the bytes ahead for near. [default: the one that suits this CPU]"),
    click.option("--deterministic", is_flag=True, help="Split by shape only."),
)


def point_options(command: Callable[..., Any]) -> Callable[..., Any]:
    return with_options(*_OPTIONS)(command)


def with_options(*options: Callable[..., Any]) -> Callable[..., Any]:
    """As decorators that stand below each other in this order."""

    def of(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return of


def point_of(op: str, library: Any, model: str | None, **asked: Any) -> tuple[Point, str]:
    """The point, of one of the library's kernels, and what to call its geometry."""
    from kvbench.machine import describe
    from kvbench.machine.placement import place
    from kvbench.native import Cache
    from kvbench.suite.axes import words

    if op not in words("op"):
        raise unknown_word("OP", op, words("op"))
    if asked["residency"] not in words("residency"):
        raise unknown_word("--residency", asked["residency"], words("residency"))
    for kind in ("dtype", "layout", "pages", "inner", "scale"):
        library.number(kind, asked[kind])
    prefetch, distance = _prefetch(asked["prefetch"] or library.prefetch, library.words("prefetch"))
    layout = asked["layout"]
    paged = Cache.is_paged(layout)
    variant, isa = _variant(op, asked["variant"], library), library.isa(asked["isa"])
    if variant in library.foreign_variants:
        library.plugin.refuse_lacking(variant, layout, asked["dtype"], isa)
    elif op == "decode":
        library.way(variant, layout, asked["dtype"], isa)  # it refuses what a variant lacks
    point = Point(
        op=op,
        variant=variant,
        layout=layout,
        dtype=asked["dtype"],
        isa=isa,
        shape=_shape(model, asked),
        cpus=place(describe(), asked["cpus"], asked["threads"]),
        pages=asked["pages"],
        residency=asked["residency"],
        prefetch=prefetch,
        distance=distance,
        scale=asked["scale"],
        inner=asked["inner"],
        block_tokens=asked["block_tokens"],
        shuffle=1 if paged and not asked["sequential"] else None,
        pad=asked["pad"],
        deterministic=asked["deterministic"],
    )
    return point, model or ""


def _variant(op: str, variant: str | None, library: Any) -> str:
    """The registry knows which variants an op has; its first is the default."""
    known = list(dict.fromkeys(kernel.variant for kernel in library.kernels() if kernel.op == op))
    if variant is not None and variant not in known:
        raise unknown_word("--variant", variant, known)
    return variant or known[0]


def _prefetch(text: str, schemes: tuple[str, ...]) -> tuple[str, int]:
    if re.fullmatch("[0-9]{1,18}", text):
        return "near", int(text)
    if text not in schemes:
        raise unknown_word("--prefetch", text[:60], (*schemes, "a number of bytes"))
    return text, 0


def _shape(model: str | None, asked: dict[str, Any]) -> Shape:
    from kvbench.suite import model as geometry

    known = geometry(model) if model else None
    heads = {}
    for name in ("q_heads", "kv_heads", "head_dim"):
        heads[name] = asked[name] if asked[name] is not None else getattr(known, name, None)
    refuse_missing(heads, "give them, or a --model")
    if asked["context"] < 1:
        raise BadArgument(f"--context is {asked['context']}", "at least 1 token")
    return Shape(
        layers=asked["layers"] or 0,
        batch=asked["batch"],
        context=asked["context"],
        capacity=asked["capacity"] or asked["context"],
        window=asked["window"],
        **heads,
    )


def refuse_missing(geometry: dict[str, Any], hint: str) -> None:
    """What neither an option nor a model gave."""
    missing = [f"--{name.replace('_', '-')}" for name, value in geometry.items() if value is None]
    if missing:
        raise BadArgument(f"the geometry lacks {', '.join(missing)}", hint)
