"""kvbench numa"""

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from kvbench.cli._options import out_option, suite_options, tuning_option
from kvbench.cli._streams import say
from kvbench.errors import Exit


@click.command("numa")
@suite_options
@tuning_option
@out_option
def command(out: Path | None, **asked: Any) -> int:
    """Measure what memory of another NUMA node costs.

    Decode and plain reads: the threads of each node with memory of each, and of all in turn; then all threads with
    each KV head's rows where they are read. It is the suite numa: kvbench report draws its heatmap.
    """
    from kvbench.cli.measure.sweep import measured
    from kvbench.machine import describe
    from kvbench.machine.placement import memory_nodes
    from kvbench.report.words import numa as words
    from kvbench.session import Options, Session

    options = Options("numa", **{name: value for name, value in asked.items() if value not in (None, ())})
    if options.asked_suite and len(memory_nodes(describe())) < 2:
        say(words.ONE_NODE)
        return Exit.FINE
    with Session.begin(options, out, shlex.join(["kvbench", *sys.argv[1:]])) as session:
        whole = measured(session)
        run = session.run()
        say("\n".join([*words.lines(run.findings().placed), "", f"  run  {run.path}"]))
        failed = any(record.error for record in session.directory.records)
    return Exit.INTERRUPTED if not whole else Exit.ERRORS if failed else Exit.FINE
