"""Bad input, command by command: exit code 2, nothing written, and one line that names what is
wrong and what is right.
"""

import json
import os
import shlex

import pytest

from kvbench.cli.understand.list import names
from tests.checkpoint.made import config, shape
from tests.cli.test_cli import refused
from tests.report import made

POINT = "profile decode --q-heads 4 --kv-heads 2 --head-dim 32 --context 96 --threads 1"
ABSENT = "neon" if "avx2" in "".join(os.uname()) else "nonsense"
CASES = [  # what is called, and words of the line; {run} is a run directory
    ("kernel", "--help"),
    ("--colour", "--help"),
    ("list", "--help"),
    ("list kernls", "kernels"),
    ("list kernels --jsn", "--help"),
    ("list kernels all", "--help"),
    ("list kernels --plugin none.so", "none.so"),
    *((f"--version {more}",) for more in ("x", "suites", "--json")),
    ("list schemas nonsense", "nonsense", *names()),
    ("doctor --threads 99999999999", "--threads"),
    ("doctor --cpus nowhere", "--cpus"),
    ("machine --threads 0", "--threads"),
    ("machine --plot /nowhere/stairs.png", "/nowhere"),
    ("machine --quick --pages giant", "pages", "thp"),
    ("machine --quick --plot stairs.txt", "--plot", ".png", ".svg"),
    ("machine --quick --isa mmx", "isa", "scalar"),
    ("machine --quick --cpus near", "--cpus", "compact"),
    ("machine --quick --identify --threads 0", "--threads", "all"),
    ("machine --quick --identify --seed -1", "--seed"),
    ("verify --isa nonsense", "isa", "scalar"),
    # sweep
    ("sweep --dry-run nope", "nope"),
    ("sweep --dry-run nope.toml", "nope.toml"),
    ("sweep --dry-run ''",),
    ("sweep quick --dry-run --axis context", "--axis"),
    ("sweep quick --dry-run --launches 0", "launches"),
    (f"sweep quick --dry-run --axis context={'9' * 5000}", "context"),
    (
        "sweep quick --dry-run --axis 'batch=1..1000 x1.001' --axis 'context=1..1000000 x1.001'",
        "points",
    ),
    ("sweep nonsense", "nonsense"),
    ("sweep smoke --axis dtype=f17", "dtype", "f16"),
    ("sweep smoke --axis dtype=f16,f16+i9", "dtype", "'f16+i9'"),
    (
        "sweep smoke --only nothing",
        "no points",
        "kvbench sweep --dry-run",
        "--only",
        "nothing",
        "decode.flash.",
    ),
    ("sweep smoke --launches 0", "launches", "1000"),
    ("sweep smoke --sample-time 99", "sample_time"),
    ("sweep smoke --budget soon", "10m"),
    ("sweep smoke --target-ci 1%", "budget"),
    ("sweep smoke --target-ci much", "1%"),
    (f"sweep smoke --isa {ABSENT}", "isa"),
    ("sweep smoke --pages giant", "thp"),
    ("sweep smoke --cpus 9999", "not enough CPUs", "--cpus: CPU 9999 is not online", "cpus=9999"),
    ("sweep smoke --cpus 9999 --only nothing", "CPU 9999 is not online"),
    ("sweep smoke --library /nowhere.so", "/nowhere.so"),
    ("sweep smoke --axis schedule=off --schedule off", "also given as an axis"),
    ("sweep --resume", "--out"),
    ("sweep --resume --out none", "none"),
    ("sweep smoke --dry-run --tune-only", "--dry-run and --tune-only", "one of them"),
    ("sweep --dry-run --resume --out {run}", "--dry-run and --resume"),
    ("sweep --tune-only --resume --out {run}", "--tune-only and --resume"),
    ("sweep smoke --fresh", "--fresh", "--tune-only"),
    ("sweep smoke --tune-only --sample-time 1", "--tune-only", "--sample-time"),
    ("sweep smoke --tune-only --out new --report", "leave --out and --report out"),
    # score and fleet
    ("score {run} --pack --check", "--pack and --check", "one of them"),
    ("score --pack --out a.tar.gz", "--pack needs a RUN"),
    ("score --check", "--check needs a RUN"),
    ("score {run} --pack", "--pack needs --out", ".tar.gz"),
    ("score {run} --pack --out a.zip", "a.zip", ".tar.gz"),
    ("score {run} --pack --out a.tar.gz --pages base", "RUN is already measured"),
    ("score {run} --check --out a.tar.gz", "RUN is already measured"),
    ("score {run} --name mine", "--name", "--pack"),
    ("fleet", "--scheduler", "--from"),
    ("fleet --from", "FOLDER"),
    ("fleet --from ''", "the name is empty"),
    ("fleet --from {run} --scheduler tcp://a:1", "--from and --scheduler"),
    ("fleet --from {run} --folder there", "--from and --folder"),
    # words that are gone
    *(
        (old, "No such command", new)
        for old, new in (
            ("plan quick", "sweep --dry-run"),
            ("tune", "sweep --tune-only"),
            ("numa", "sweep numa"),
            ("submit run --out a.tar.gz", "score --pack"),
            ("gather shared", "fleet --from"),
            ("kernels", "list kernels"),
            ("lab quant", "suites/experiments.ipynb"),
            ("suites", "list suites"),
            ("schema sweep", "list schemas"),
        )
    ),
    # profile
    ("profile encode --model gpt-2", "encode"),
    ("profile decode", "--q-heads", "--model"),
    ("profile decode --model gpt-2 --residency hot --layers 2", "hot", "2 layers"),
    (f"{POINT} --dtype f17", "dtype", "bf16"),
    (f"{POINT} --dtype q8_0+", "--dtype", "'q8_0+' is not a pair", "one is missing", "q8_0+q4_0"),
    (f"{POINT} --dtype +f16", "--dtype", "'+f16' is not a pair", "one is missing"),
    (
        f"{POINT} --dtype f16+f99",
        "--dtype",
        "'f16+f99' is not a pair",
        "'f99' is not known",
        "bf16",
    ),
    (f"{POINT} --dtype q8_0+q4_0 --variant perhead", "perhead", "K of q8_0 with V of q4_0"),
    (f"{POINT} --dtype q8_0+f16 --layout blockt", "K of q8_0", "blockt", "f32, f16, bf16, i8"),
    (f"{POINT} --dtype q8_0+f16 --layout block16", "V of f16", "block16", "i8, e4m3, e5m2, q8_0"),
    (f"{POINT} --dtype f16+i8 --engine numpy", "numpy", "f16"),
    ("size llama-3-8b --dtype f16+i9", "dtype", "'i9'"),
    ("peers --dtype f16+i9", "dtype", "'f16+i9'"),
    (f"{POINT} --residency warm", "--residency", "rotate"),
    (f"{POINT} --schedule far", "--schedule", "cross"),
    (f"{POINT} --layout all", "--layout", "several"),
    (f"{POINT} --variant fast", "--variant", "flash"),
    (f"{POINT} --cpus one", "--cpus", "0-3"),
    (f"{POINT} --kv-heads 3", "query heads", "KV heads"),
    (f"{POINT} --samples 0", "--samples", "1 to 1000"),
    *(
        (f"{POINT} --sample-time {text}", "--sample-time", "0.0001 to 10")
        for text in ("nan", "inf", "-1", "1e9")
    ),
    ("peers --model gpt-9", "--model", "gpt-9", "gpt-2", "config.json", ".gguf"),
    ("peers --model {run}/config.json,gpt-2", "--model", "or one file"),
    ("peers --model deepseek-v3", "--model", "latent", "kvbench explain"),
    ("peers --ggml none.so", "--ggml", "none.so"),
    (
        "peers --ggml {run}/config.json --ggml {run}/config.json",
        "tells these builds apart",
        "ENGINE@LABEL=PATH",
    ),
    ("peers --build nosuch=x", "--build", "nosuch", "ggml"),
    ("peers --build ggml", "'ggml'", "ENGINE=PATH"),
    ("peers --python x", "--python", "'x'", "numpy"),
    ("peers --python numpy", "'numpy'", "interpreter", "ENGINE=PATH"),
    ("peers --peers numpy --python numpy=/nowhere/python", "give a Python that has numpy"),
    ("peers --peers numpy --build ggml=x", "ggml is left out"),
    ("peers --peers numpy --python ggml=x", "ggml is left out"),
    ("peers --peers numpy,ggml@old", "--peers", "ggml@old", "ggml"),
    ("profile decode --model gpt-9", "--model", "gpt-9", "gpt-2", "config.json", ".gguf"),
    ("profile decode --model deepseek-v3", "--model", "latent", "kvbench explain"),
    (
        "profile decode --model {run}/config.json --layers model",
        "--layers",
        "suites/models.toml",
        "--layers 2",
    ),
    ("size {run}/config.json --map", "--map", "config.json", "suites/models.toml"),
    ("size gpt-9", "MODEL", "gpt-2", "config.json", ".gguf"),
    # report, compare and gate
    ("report", "RUN"),
    ("report none", "none"),
    ("report {run}/folder", "not a run directory"),
    ("report {run}/manifest.json", "manifest.json"),
    ("report {run} {run}", "--out", "-o"),
    ("report {run} --format pdf", "pdf", "html"),
    ("report {run} --out /proc/kvbench/x.md --format md", "/proc/kvbench"),
    ("report {run} /nowhere -o /tmp", "/nowhere"),
    ("compare {run}", "HEAD"),
    ("gate --export pdf=x", "--export", "pdf", "junit"),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = made.directory(
        tmp_path_factory.mktemp("bad") / "run", made.whole(made.READS[:1], 1), made.READS[:1], 1
    )
    (path / "folder").mkdir()
    (path / "config.json").write_text(json.dumps(config(**shape(2, 4, 2, 32, 128, 256, 1000))))
    return path


@pytest.mark.parametrize("case", CASES, ids=[case[0][:80] for case in CASES])
def test_one_line(case, run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kvbench.runner.launch", lambda job: pytest.fail("it was measured"))
    line, *words = case
    refused(capsys, *shlex.split(line.format(run=run)), words=words)
    assert not list(tmp_path.iterdir())
