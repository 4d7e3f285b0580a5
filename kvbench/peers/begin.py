"""Start the process of a peer; this or another Python runs this file. It reads a line of JSON from
standard input. `cpus`: the CPUs to run on, set before an import can start threads. `packages`:
where packages lie that the other Python lacks, ours among them. `parent`: the process to end with,
even while stopped. `pipe`: the pipe to answer through.
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
    """Make one package importable from its folder, without its neighbours there."""
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=folders)
    assert spec and spec.loader
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


if __name__ == "__main__":
    main()
