"""The example notebook runs, cell by cell, and is kept without outputs."""

import json
from pathlib import Path

NOTEBOOK = Path(__file__).resolve().parents[1] / "suites" / "notebook.ipynb"


def test_it_runs(monkeypatch):
    monkeypatch.chdir(NOTEBOOK.parent)
    cells = [
        cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"
    ]
    scope = {}
    for cell in cells:
        assert not cell["outputs"] and cell["execution_count"] is None
        exec(compile("".join(cell["source"]), NOTEBOOK.name, "exec"), scope)  # noqa: S102
    assert len(cells) >= 5 and set(scope["best"]["dtype"]) >= {"f16", "f32"}
    assert len(scope["reads"]) and len(scope["pairs"]) and len(scope["decodes"])
