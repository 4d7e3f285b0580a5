"""kvbench kernels"""

from dataclasses import dataclass
from typing import Annotated

import click

from kvbench.cli._options import json_option, plugin_option
from kvbench.cli._streams import say, say_json
from kvbench.model import Kernel
from kvbench.model.annotated import Printed, about


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels(Printed):
    """The registry of a library."""

    kernels: Annotated[tuple[Kernel, ...], about("the registry of the library")]


@click.command("kernels")
@plugin_option
@json_option
def command(plugin: tuple[str, ...], as_json: bool) -> None:
    """List the kernels, and say which of them this CPU can run."""
    from kvbench.native import library_of

    library = library_of(None, plugin)
    kernels = library.kernels()
    if as_json:
        say_json(Kernels(kernels=tuple(kernels)))
        return
    width = max(len(kernel.id) for kernel in kernels)
    for kernel in kernels:
        say(f"{kernel.id:<{width}}  {'yes' if kernel.runnable else 'no':<3}  {kernel.about}")
    runs = sum(kernel.runnable for kernel in kernels)
    best = library.isa()
    say(f"{len(kernels)} kernels; this CPU runs {runs} of them, best with {best}", err=True)
