"""Help of long commands: options in groups, and examples at its end."""

from collections.abc import Mapping
from typing import Any

import click


class Ending(click.Command):
    """A command whose help ends with examples. `examples`: what each call does, by the call."""

    def __init__(self, *given: Any, examples: Mapping[str, str], **more: Any) -> None:
        super().__init__(*given, **more)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        with formatter.section("Examples"):
            formatter.write_dl(list(self.examples.items()))


class Long(Ending):
    """A command whose help lists its options in groups. `groups`: names of options by a group's
    title. Options without a group, such as --help, come last.
    """

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
                records = (each.get_help_record(ctx) for each in own)
                formatter.write_dl(list(filter(None, records)))
