"""The process of one launch. Standard input: a job as a line of JSON, then a line for every
go-ahead. Standard output, for each point: a line that names it when its visit begins, and a line
with its record when it ends.

After each record the process waits for a go-ahead, so that the parent has stored the record and
sleeps while samples are taken.
"""

import os
import sys
from typing import TextIO

from kvbench.apart import end_with, own_output
from kvbench.model import Job, Record
from kvbench.native import library_of
from kvbench.store.values import line, parsed, read, record_line
from kvbench.worker.launch import launch


def serve(asked: TextIO, answers: TextIO) -> None:
    if not (job := asked.readline()):
        return  # the parent was interrupted before it could send a job
    facts = parsed(job)
    end_with(facts.pop("parent"))
    todo = read(Job, facts)
    duel = bool(todo.plan.against)
    for found in launch(
        library_of("" if duel else todo.plan.library, () if duel else todo.plan.plugin), todo
    ):
        ended = isinstance(found, Record)
        said = record_line(found) if isinstance(found, Record) else line(found.name)
        answers.write(f'{{"{"record" if ended else "visiting"}":{said}}}\n')
        answers.flush()
        if isinstance(found, Record) and not asked.readline():
            return  # the parent wants no more


if __name__ == "__main__":
    serve(sys.stdin, os.fdopen(own_output(), "w"))
