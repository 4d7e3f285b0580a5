"""An output file with the name of a run's own file, in a run directory, is refused in one line.
Nothing is written."""

import shlex

import pytest

from tests.cli.test_cli import refused
from tests.report import made

POINTS = [*made.decodes()[:1], *made.READS[:2]]
CASES = [
    ("report {run} --format md -o {run}/manifest.json", "manifest.json"),
    ("report {run} --format csv -o {link}/summary.json", "summary.json"),
    ("report . --format json -o journal.jsonl", "journal.jsonl"),
    ("history export --root {root} -o {run}/manifest.json", "manifest.json"),
    ("history export --root {root} -o {root}/accepted.json", "accepted.json", "history"),
    (
        "compare {run} {other} --export junit={run}/x.xml --export csv={run}/run.json.gz",
        "run.json.gz",
    ),
    ("gate --export markdown={run}/manifest.json", "manifest.json"),
    ("machine --quick --out {run}/machine.json", "machine.json"),
    ("sweep smoke --tuning {run}/journal.jsonl --out {root}/new", "journal.jsonl"),
    ("sweep smoke --tune-only --tuning machine.json", "machine.json"),
    (
        "profile decode --model gpt-2 --context 64 --threads 1 --tuning {run}/score.json",
        "score.json",
    ),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    for name in ("run", "other"):
        made.directory(root / name, made.whole(POINTS, 2), POINTS, run=name)
    (root / "link").symlink_to(root / "run")
    (root / "accepted.json").write_text('{"format": 1, "accepted": []}')
    return root


def held(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("case", CASES, ids=[case[0][:60] for case in CASES])
def test_it_is_refused(case, root, monkeypatch, capsys):
    monkeypatch.chdir(root / "run")
    monkeypatch.setattr("kvbench.runner.launch", lambda job: pytest.fail("it was measured"))
    monkeypatch.setattr("kvbench.gate.sides", lambda *_, **__: pytest.fail("it was built"))
    before = held(root)
    line, *words = case
    places = {name: root / name for name in ("run", "other", "link")} | {"root": root}
    refused(capsys, *shlex.split(line.format(**places)), words=[*words, "would be lost"])
    assert held(root) == before
