"""The process of one launch: a job as JSON on standard input, a record a line on standard output."""

import json
import sys
from typing import TextIO

from kvbench.native import default_library
from kvbench.store import plain, point
from kvbench.worker.launch import launch


def serve(job: TextIO, records: TextIO) -> None:
    asked = json.load(job)
    points = [point(facts) for facts in asked["points"]]
    for record in launch(default_library(), asked["launch"], points, asked["samples"], asked["seconds"], asked["seed"]):
        records.write(json.dumps(plain(record)) + "\n")
        records.flush()


if __name__ == "__main__":
    serve(sys.stdin, sys.stdout)
