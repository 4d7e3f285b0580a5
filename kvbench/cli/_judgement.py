"""What compare and gate have in common: how they print a verdict, and its exit code."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from kvbench.cli._streams import say, say_json
from kvbench.errors import BadArgument, Exit, unknown_word
from kvbench.model.verdict import EQUIVALENT, IMPROVEMENT, NOT_COMPARABLE, REGRESSION


class _Export(click.Option):
    """The option --export. Kinds are imported only when this help is shown, because kvbench --help
    must be fast.
    """

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from kvbench.exports import kinds

        self.help = (
            "Also write the result to FILE, such as junit=gate.xml; - is stdout. May be repeated."
            f" KIND: {', '.join(kinds())}."
        )
        return super().get_help_record(ctx)


export_option = click.option("--export", "exports", cls=_Export, multiple=True, metavar="KIND=FILE")
Wanted = tuple[str, Path | None]  # a kind of export and its file, None for standard output


def tell(
    found: Any,
    names: Mapping[str, str],
    exports: Sequence[Wanted],
    as_json: bool,
    sides: Callable[[], Sequence[str]] = tuple,
) -> None:
    """Print a Comparison and write its exports. `names`: short names of points, by full name.
    `sides`: returns lines on what each run measured.
    """
    from kvbench.exports import write
    from kvbench.exports.printed import compared, text

    shown = ""
    for kind, path in exports:
        own = write(found, kind, path)
        if path:
            say(f"{kind}: {path}", err=True)
        else:
            shown += own
    if as_json:
        say_json(compared(found))
    elif None in (path for _, path in exports):
        say(shown, nl=False)
    else:
        say("\n".join(text(found, names, sides())))


def exit_code(verdict: str) -> Exit:
    """The exit code that a verdict of a comparison ends in."""
    fine = dict.fromkeys((EQUIVALENT, IMPROVEMENT), Exit.FINE)
    return (fine | {REGRESSION: Exit.FAILED, NOT_COMPARABLE: Exit.NOTHING}).get(
        verdict, Exit.UNCLEAR
    )


def wanted(word: str, as_json: bool) -> Wanted:
    """Parse one --export KIND=FILE, and refuse a file that cannot be written."""
    from kvbench.exports import kinds
    from kvbench.store.files import refuse_output

    kind, given, path = word.partition("=")
    if kind not in kinds():
        raise unknown_word("--export", kind, kinds())
    if not given or not path:
        raise BadArgument(
            f"--export {word} names no file", f"write --export {kind}=FILE, or {kind}=- for stdout"
        )
    if path == "-" and as_json:
        raise BadArgument(
            f"--export {word}: --json already writes to standard output", "name a file"
        )
    if path == "-":
        return kind, None
    refuse_output(Path(path), "then compare again")
    return kind, Path(path)
