"""kvbench size"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from msgspec import UNSET

from kvbench.cli._help import Long
from kvbench.cli._options import batch_option, json_option, same, weights_option, with_options
from kvbench.cli._point import option_name, options, refuse_missing
from kvbench.cli._streams import draw, tell
from kvbench.cli._types import BYTES, Count, Named, Plot
from kvbench.errors import BadArgument
from kvbench.model import DEFAULTS, MODEL_SAYS
from kvbench.model.size import Decoder

_GEOMETRY = ("layers", "q_heads", "kv_heads", "head_dim", "context")
# fields of a model whose name is not the option's
_OF_MODEL = {"context": "max_context"}


@click.command(
    "size",
    cls=Long,
    groups={
        "The model": (
            "layers q-heads kv-heads head-dim v-dim window window-every ephemeral weights replicas"
        ),
        "Its cache": (
            "context dtype scale k-scale layout inner block-tokens pad capacity batch lengths"
            " budget"
        ),
        "Output": "machine map canaries align plot json",
    },
    examples={
        "kvbench size llama-3-8b --context 32k --budget 40GiB": "Bytes of a cache; what fits?",
        "kvbench size qwen3-0.6b --context 1024 --map": "Where do its decoder's buffers lie?",
    },
)
@click.argument("model", metavar="[MODEL]", required=False)
@with_options(
    click.option("--layers", type=Count(), help="Number of layers. [default: the model's]"),
    *options("q_heads", "kv_heads", "head_dim", "v_dim"),
    same("context", "the model's longest"),
    *options("dtype", "scale", "k_scale", "layout", "inner", "block_tokens", "pad"),
    click.option(
        "--window",
        type=Count(),
        help="Tokens that a layer with a window attends to; 0: all. [default: the model's]",
    ),
    click.option(
        "--window-every",
        type=Count(),
        help="Every Nth layer attends to all tokens, the others to the window. [default: the"
        " model's]",
    ),
    click.option(
        "--ephemeral",
        type=Count(),
        default=0,
        show_default=True,
        help="Number of encoder layers, which keep no K and V.",
    ),
    click.option(
        "--capacity",
        type=Count(),
        help="Tokens that each layer has room for. [default: as many as it attends to]",
    ),
)
@batch_option
@click.option(
    "--replicas", type=Count(1), default=1, show_default=True, help="Number of copies of the model."
)
@weights_option
@click.option(
    "--budget", type=BYTES, help="Memory for caches, such as 40GiB: how many sequences fit?"
)
@click.option(
    "--lengths",
    metavar="KIND",
    help="Lengths of the sequences: uniform:A-B such as uniform:1-4096, fixed:N, or a file of"
    " numbers. What does reserving room waste?",
)
@click.option(
    "--machine",
    type=Named(),
    help=(
        "Take the machine and its rates from a run directory, or a file of kvbench machine --json."
        " [default: this machine, without tokens/s]"
    ),
)
@click.option(
    "--map",
    "mapped",
    is_flag=True,
    help="Also show where each buffer of MODEL's decoder would lie in memory.",
)
@click.option(
    "--canaries", is_flag=True, help="With --map: put a known pattern behind each buffer."
)
@click.option(
    "--align", type=Count(), help="With --map: align each buffer to this many bytes. [default: 64]"
)
@click.option("--plot", type=Plot(), help="Also draw size against context, as .png or .svg.")
@json_option
def command(
    model: str | None, mapped: bool, plot: Path | None, as_json: bool, **asked: Any
) -> None:
    """Compute the size of MODEL's KV cache, what fits in memory, and tokens per second at most.

    MODEL is a name such as llama-3-8b (see suites/models.toml), a config.json or its folder, or a
    .gguf file. Options override its shape; without MODEL, give the shape by options. Nothing is
    measured: tokens per second come from the run that --machine names.
    """
    from kvbench.checkpoint import find
    from kvbench.report.sizes import size_text
    from kvbench.sizing.fleet import read_lengths
    from kvbench.sizing.known import here, known
    from kvbench.sizing.map import arena_map
    from kvbench.sizing.sized import size_of

    laid = {"canaries": asked.pop("canaries") or None, "align": asked.pop("align")}
    laid = {name: value for name, value in laid.items() if value is not None}
    if laid and not mapped:
        raise BadArgument(f"--{min(laid)} only works with --map", "add --map")
    path, wanted = (
        asked.pop("machine"),
        {name: asked.pop(name) for name in ("replicas", "weights", "budget")},
    )
    lengths = read_lengths(text) if (text := asked.pop("lengths")) is not None else None
    if mapped:
        _refuse_own_shape(model, asked)
    model, shape, _ = find(model) if model else (None, None, "")
    longest, decoder = shape.max_context if shape else 0, _decoder(model, shape, asked)
    place = known(path) if path else here()
    found = size_of(decoder, place, longest, lengths=lengths, **wanted)
    plan = arena_map(model, decoder.context, decoder.dtype, **laid) if mapped and model else None
    if plot:
        _draw(decoder, max(decoder.context, longest), place, found, plot)
    tell(replace(found, map=plan or UNSET), as_json, lambda: size_text(found, plan))


def _draw(decoder: Decoder, longest: int, place: Any, found: Any, path: Path) -> None:
    from kvbench.report.figures.sizes import sizes
    from kvbench.sizing.sized import sweep

    memory = place.machine.facts.get("memory")
    table = sweep(decoder, longest)
    draw(sizes(table, decoder, found.fit, memory.value if memory else None), path)


def _decoder(name: str | None, model: Any, asked: dict[str, Any]) -> Decoder:
    """The decoder to size. Values that were asked for replace those of `model`."""
    if asked["context"] is not None:
        asked["context"] = _tokens(asked["context"])
    for key in (*_GEOMETRY, "window", "window_every"):
        if asked[key] is None:
            asked[key] = getattr(model, _OF_MODEL.get(key, key), None if key in _GEOMETRY else 0)
    refuse_missing({key: asked[key] for key in _GEOMETRY}, "give these options, or a MODEL")
    own = {key: getattr(model, key, DEFAULTS[key]) for key in MODEL_SAYS}
    if asked["head_dim"] != getattr(model, "head_dim", None):
        own["v_dim"] = DEFAULTS["v_dim"]  # the model's goes with its own heads
    own |= {key: asked.pop(key) for key in MODEL_SAYS if asked.get(key) is not None}
    return Decoder(model=name or "", latent=getattr(model, "latent", 0), **{**asked, **own})


def _tokens(text: str) -> int:
    here = click.get_current_context()
    return Count()(text, next(each for each in here.command.params if each.name == "context"), here)


def _refuse_own_shape(model: str | None, asked: dict[str, Any]) -> None:
    """Refuse options that change MODEL's shape: --map shows the model as it is."""
    from kvbench.checkpoint import find, is_file

    if not model:
        raise BadArgument("--map needs a MODEL", "name one of suites/models.toml")
    if is_file(model):
        find(model)  # raises if the file itself is bad
        raise BadArgument(
            f"--map does not work with a file such as {Path(model).name!r}",
            "name a MODEL of suites/models.toml",
        )
    source = click.get_current_context().get_parameter_source
    for name in asked.keys() - {"context", "dtype"}:
        if source(name) is ParameterSource.COMMANDLINE:
            raise BadArgument(
                "--map shows MODEL's own shape, and one sequence",
                f"leave out {option_name(name)}",
            )
