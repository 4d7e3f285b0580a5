"""The process of one launch. Standard input: a job as a line of JSON, then a line for every
go-ahead. Standard output: for each point a line that names it when its visit begins, and a line
with its record when it ends.

It waits for a go-ahead after each record, so that whoever keeps them is asleep again while samples
are taken.
"""

import json
import os
import sys
from typing import TextIO

from kvbench.apart import end_with, own_output
from kvbench.model import Job, Record
from kvbench.native import library_of
from kvbench.store import read
from kvbench.store.values import line
from kvbench.worker.launch import launch


def serve(asked: TextIO, answers: TextIO) -> None:
    if not (job := asked.readline()):
        return  # the parent was interrupted before it could ask
    facts = json.loads(job)
    end_with(facts.pop("parent"))
    todo = read(Job, facts)
    duel = bool(todo.plan.against)
    for found in launch(
        library_of("" if duel else todo.plan.library, () if duel else todo.plan.plugin), todo
    ):
        said = {"record": found} if isinstance(found, Record) else {"visiting": found.name}
        answers.write(line(said) + "\n")
        answers.flush()
        if isinstance(found, Record) and not asked.readline():
            return  # nobody asks for more


if __name__ == "__main__":
    serve(sys.stdin, os.fdopen(own_output(), "w"))
