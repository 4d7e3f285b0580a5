"""kvbench numa"""

from pathlib import Path
from typing import Any

import click

from kvbench.cli._measuring import command_line, concluded, given
from kvbench.cli._options import out_option, suite_options, tuning_option
from kvbench.cli._streams import say
from kvbench.errors import Exit


@click.command("numa")
@suite_options
@tuning_option
@out_option
def command(out: Path | None, **asked: Any) -> int:
    """Measure what memory of another NUMA node costs.

    Decode and plain reads: the threads of each node with memory of each, and of all in turn; then
    all threads with each KV head's rows where they are read. It is the suite numa: kvbench report
    draws its heatmap.
    """
    from kvbench.machine import describe
    from kvbench.machine.placement import memory_nodes
    from kvbench.report.words import numa as words
    from kvbench.session import Options, Session

    options = Options("numa", **given(asked))
    if options.asked_suite and len(memory_nodes(describe())) < 2:
        say(words.ONE_NODE)
        return Exit.FINE

    def tell(run: Any) -> None:
        say("\n".join([*words.lines(run.findings().placed), "", f"  run  {run.path}"]))

    with Session.begin(options, out, command_line()) as session:
        return concluded(session, "sweep", tell)
