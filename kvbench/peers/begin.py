"""Begins the process of a peer: a file that this Python runs, or another one. It reads a line of
JSON from standard input: `cpus`, on which it is before anything that may begin threads is imported;
`packages`, where those lie that the other Python does not have, ours among them; `parent`, with
which it ends, stopped or not; and `pipe`.
"""

import importlib.util
import json
import os
import sys


def main() -> None:
    asked = json.loads(sys.stdin.readline())
    os.sched_setaffinity(0, asked["cpus"])
    for package in asked["packages"]:
        _bring(*package)
    from kvbench.apart import adopt, end_with

    end_with(asked["parent"])
    adopt()
    from kvbench.peers.child import serve

    serve(asked["pipe"])


def _bring(name: str, file: str, folders: list[str] | None) -> None:
    """Makes a package known by where it lies, and nothing that lies beside it."""
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=folders)
    assert spec and spec.loader
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


if __name__ == "__main__":
    main()
