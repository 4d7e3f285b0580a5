"""kvbench size"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from kvbench.cli._options import json_option, with_options
from kvbench.cli._point import options, refuse_missing
from kvbench.cli._streams import say, say_json
from kvbench.cli._types import Bytes, Named, Plot, Tokens
from kvbench.errors import BadArgument
from kvbench.model.size import Decoder

_GEOMETRY = ("layers", "q_heads", "kv_heads", "head_dim", "context")
_FREE = {"pad": None, "capacity": None}  # what they are where nothing was asked
_OF_MODEL = {"context": "max_context"}  # what the option is called there, where that is not the same


@click.command("size")
@click.argument("model", metavar="[MODEL]", required=False)
@with_options(
    click.option("--layers", type=int, help="Layers."),
    *options("q_heads", "kv_heads", "head_dim"),
    click.option("--context", type=Tokens(), help="Tokens that every sequence holds. [default: the model's longest]"),
    *options("batch", "dtype", "scale", "layout", "inner", "block_tokens", "pad"),
    click.option(
        "--window", type=int, help="Tokens that a sliding layer attends to, 0 for all. [default: the model's]"
    ),
    click.option("--window-every", type=int, help="Every Nth layer uses full attention. [default: the model's]"),
    click.option("--ephemeral", type=int, default=0, help="Layers of an encoder, of whose K and V nothing stays."),
    click.option("--capacity", type=int, help="Tokens with room in every layer. [default: what each attends to]"),
)
@click.option("--users", type=click.IntRange(1), help="Sequences of a replica. [default: the batch]")
@click.option("--replicas", type=click.IntRange(1), default=1, show_default=True, help="Copies of the model.")
@click.option("--weights", type=Bytes(), help="Bytes of weights that each step reads, such as 16GB.")
@click.option("--budget", type=Bytes(), help="Memory for caches, such as 40GiB: how much fits?")
@click.option("--lengths", metavar="KIND", help="How long sequences are: uniform:A-B, fixed:N, or a file of numbers.")
@click.option(
    "--machine",
    type=Named(),
    help="Where it is to run: a run directory, or what kvbench machine --json has printed. [default: this machine]",
)
@click.option("--map", "mapped", is_flag=True, help="Also lay out all buffers of a decoder of MODEL, byte by byte.")
@click.option("--canaries", is_flag=True, help="With --map: a known pattern behind every buffer.")
@click.option("--align", type=int, help="With --map: every buffer begins at a multiple of it. [default: 64 bytes]")
@click.option("--plot", type=Plot(), help="Draw size against context, as .png or .svg.")
@json_option
def command(model: str | None, mapped: bool, plot: Path | None, as_json: bool, **asked: Any) -> None:
    """What the KV cache of MODEL, or of a geometry that you give, costs: the formula with the numbers in it, what is
    allocated beside what is streamed, many users, what fits a memory and which cache, and tokens per second at most.

    MODEL is one of suites/models.toml; options override what it says. Nothing is measured: rates are those that a
    machine's own reads reached in an earlier run, named with --machine.

    Three figures that circulate are wrong. Gemma-3-4B (34 layers, 4 KV heads, head_dim 256) takes 544 MiB at 4,096
    tokens of f16 when no layer is capped at its window, not 896. A model of 4 layers with 4 heads of 16 takes 64 KiB at
    32 tokens of f32, not 16. And 0.031 FLOP per byte is no arithmetic intensity of decode: that is 2 FLOP for a line of
    64 bytes. It is 2G/b, with G query heads on each KV head and b bytes per element: 0.5 and more in f32.
    """
    from kvbench.report.arena_map import map_text
    from kvbench.report.sizes import size_text, sized
    from kvbench.sizing.known import here, known
    from kvbench.sizing.lengths import read_lengths
    from kvbench.sizing.sized import Wanted, size_of
    from kvbench.suite import model as geometry

    laid = {name: asked.pop(name) for name in ("canaries", "align")}
    laid = {name: value for name, value in laid.items() if value is not None and value is not False}
    if laid and not mapped:
        raise BadArgument(f"--{min(laid)} is of the map of a decoder's buffers", "give --map with it")
    path, names = asked.pop("machine"), ("users", "replicas", "weights", "budget")
    lengths = read_lengths(text) if (text := asked.pop("lengths")) is not None else None
    wanted = Wanted(**{name: asked.pop(name) for name in names}, lengths=lengths)
    shape = geometry(model) if model else None
    longest, decoder = shape.max_context if shape else 0, _decoder(model, shape, asked)
    place = known(path) if path else here()
    found = size_of(decoder, place, wanted, longest)
    plan = _map(model, decoder, **laid) if mapped else None
    if plot:
        _draw(found, place, max(decoder.context, longest), plot)
    if as_json:
        say_json(sized(found, plan))
        return
    lines = ["", *(f"  {line}".rstrip() for line in map_text(plan))] if plan else []
    say("\n".join([*size_text(found), *lines]))


def _decoder(name: str | None, model: Any, asked: dict[str, Any]) -> Decoder:
    """`model`: what is known of it; what was asked goes before."""
    for key in (*_GEOMETRY, "window", "window_every"):
        if asked[key] is None:
            asked[key] = getattr(model, _OF_MODEL.get(key, key), None if key in _GEOMETRY else 0)
    refuse_missing({key: asked[key] for key in _GEOMETRY}, "give them, or a MODEL")
    return Decoder(model=name or "", **asked)


def _map(model: str | None, decoder: Any, **laid: Any) -> Any:
    """The map of the model as it is: it knows no other shape than its own, and no other cache."""
    from kvbench.sizing.map import arena_map, mapped

    if not model:
        raise BadArgument("--map lays out a model's decoder, and there is no MODEL", "name one of suites/models.toml")
    plan = arena_map(model, decoder.context, decoder.dtype, **laid)
    for name, planned in asdict(mapped(model, decoder.context, decoder.dtype)).items():
        if (asked := getattr(decoder, name)) not in (planned, _FREE.get(name, planned)):
            option = f"--{name.replace('_', '-')}"
            raise BadArgument(f"--map lays out {model} with {option} {planned}, not {asked}", f"leave out {option}")
    return plan


def _draw(found: Any, place: Any, longest: int, path: Path) -> None:
    from kvbench.report.figures.look import save
    from kvbench.report.figures.sizes import sizes
    from kvbench.sizing.sized import sweep

    memory = place.machine.facts.get("memory")
    table = sweep(found.decoder, longest)
    save(sizes(table, found.decoder, found.fit, memory.value if memory else None).canvas(), path)
    say(f"plot: {path}", err=True)
