"""What compare and gate have in common: how a judgement is told, and the exit code that it ends
in.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from kvbench.cli._streams import say, say_json
from kvbench.errors import BadArgument, Exit, unknown_word
from kvbench.model.verdict import EQUIVALENT, IMPROVEMENT, NOT_COMPARABLE, REGRESSION


class _Export(click.Option):
    """The kinds are asked for when the help is shown: to import them takes longer than kvbench
    --help may.
    """

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from kvbench.exports import kinds

        self.help = (
            "Also write the result in this form; - is stdout. May be repeated. KIND:"
            f" {', '.join(kinds())}."
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
    """`found`: a Comparison. `names`: short ones of points, by their own. `sides`: what each run
    measured, in lines.
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
    fine = dict.fromkeys((EQUIVALENT, IMPROVEMENT), Exit.FINE)
    return (fine | {REGRESSION: Exit.FAILED, NOT_COMPARABLE: Exit.NOTHING}).get(
        verdict, Exit.UNCLEAR
    )


def wanted(word: str, as_json: bool) -> Wanted:
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
