"""Help of long commands: options in groups, and examples at its end."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

Examples = Sequence[tuple[str, str]]  # what is called, and what it does


class Ending(click.Command):
    """Examples stand behind all else."""

    def __init__(self, *given: Any, examples: Examples, **more: Any) -> None:
        super().__init__(*given, **more)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        with formatter.section("Examples"):
            formatter.write_dl(self.examples)


class Long(Ending):
    """`groups`: by their title, options by their names. The rest, such as --help, comes last."""

    def __init__(self, *given: Any, groups: Mapping[str, str], **more: Any) -> None:
        super().__init__(*given, **more)
        self.groups = {title: names.split() for title, names in groups.items()}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = [each for each in self.get_params(ctx) if isinstance(each, click.Option)]
        named = {name.lstrip("-"): each for each in options for name in each.opts}
        groups = {title: [named[name] for name in names] for title, names in self.groups.items()}
        used = [each for own in groups.values() for each in own]
        groups["Other options"] = [each for each in options if each not in used]
        for title, own in groups.items():
            with formatter.section(title):
                formatter.write_dl([each.get_help_record(ctx) for each in own])
