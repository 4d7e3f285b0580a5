"""The command line as a user meets it: output, exit codes, one line per error, quick help."""

import json
import os
import shlex
import subprocess
import sys
from unittest.mock import Mock

import pytest

import kvbench
from kvbench.cli import main
from kvbench.errors import BadArgument
from kvbench.native import default_library
from tests.processes import succeeds

CPU = str(min(os.sched_getaffinity(0)))
TINY = shlex.split(
    "smoke --axis context=64 --axis threads=1 --axis model=gpt-2 --axis residency=hot"
)


def call(*arguments):
    """Call kvbench in this process, and return its exit code."""
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    return caught.value.code


def told(capture, *arguments):
    """Call kvbench, and return its exit code and what it printed."""
    return call(*arguments), *capture.readouterr()


def output_of(capture, *arguments, code=0):
    """The standard output of a call that must end in this code."""
    assert call(*arguments) == code
    return capture.readouterr().out


def errors_of(capture, *arguments, code=2):
    """The standard error of a call that must end in this code."""
    assert call(*arguments) == code
    return capture.readouterr().err


def refused(capsys, *arguments, words=(), code=2):
    """Check that a call prints nothing, and complains in one line with these words."""
    capsys.readouterr()
    ended, out, err = told(capsys, *arguments)
    assert ended == code and not out and err.startswith("kvbench: ") and err.count("\n") == 1, err
    assert all(word in err for word in words), err


def test_version(capsys):
    assert output_of(capsys, "--version") == f"kvbench {kvbench.__version__}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], []])
def test_help(capsys, arguments):
    assert "kernels" in output_of(capsys, *arguments)


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("swep", "sweep"),
        ("sweep --laucnhes 3", "--launches"),
        ("sweep --axis contxt=8k", "context"),
        ("profile decod --model gpt-2", "decode"),
        ("size lama-3-8b", "llama-3-8b"),
        ("list schemas swep", "sweep"),
        ("list kernls", "kernels"),
    ],
)
def test_near_misses_get_a_suggestion(asked, meant, capsys):
    refused(capsys, *asked.split(), words=("id you mean", meant))


@pytest.mark.parametrize("asked", ["--help", "sweep --help"])
def test_help_imports_nothing_heavy(asked):
    code = f"""
import sys
from kvbench.cli import main
try:
    main({asked.split()})
finally:
    slow = "numpy pandas matplotlib scipy pyperf cffi rich psutil cpuinfo".split()
    heavy = set(slow) & set(sys.modules)
    assert not heavy, heavy
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams(closed):
    code = "from kvbench.cli import main; main(['list', 'kernels'])"
    done = subprocess.run(
        f'{shlex.quote(sys.executable)} -c "{code}" {closed}',
        shell=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0 and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (BadArgument("it is\nwrong", "mend it"), "it is wrong (mend it)"),
        (
            OSError(28, "No space left on device", "x.svg"),
            "x.svg: No space left on device (check that",
        ),
    ],
    ids=["argument", "file"],
)
def test_errors_take_one_line(capsys, monkeypatch, error, said):
    monkeypatch.setattr("kvbench.native.library_of", Mock(side_effect=error))
    assert call("list", "kernels") == 2
    out, err = capsys.readouterr()
    assert not out and err.startswith(f"kvbench: {said}") and err.count("\n") == 1


def test_an_error_that_nobody_foresaw(capsys, monkeypatch):
    """An internal error takes one line, and its code is not a verdict's. The traceback is printed
    only if asked for.
    """
    monkeypatch.setattr("kvbench.native.library_of", Mock(side_effect=TypeError("it is\nodd")))
    (line,) = errors_of(capsys, "list", "kernels").splitlines()
    assert (
        line.startswith("kvbench: internal error: TypeError: it is odd (")
        and "KVBENCH_TRACEBACK=1" in line
    )
    monkeypatch.setenv("KVBENCH_TRACEBACK", "1")
    *shown, last = errors_of(capsys, "list", "kernels").splitlines()
    assert shown[0].startswith("Traceback") and last == line


def test_every_tier_has_the_whole_matrix(capsys):
    """Each tier of the build decodes every variant and layout, with every dtype that the variant
    has there; but AVX2 multiplies no bf16.
    """
    call("list", "kernels", "--json")
    kernels = json.loads(capsys.readouterr().out)["kernels"]
    have = {(k["op"], k["variant"], k["layout"], k["dtype"], k["isa"]) for k in kernels}
    library = default_library()
    for isa in {kernel["isa"] for kernel in kernels}:
        for variant in library.words("variant"):
            for layout in library.words("layout"):
                for dtype in library.words("dtype"):
                    there = library.reads(variant, layout, dtype, "k") is not None
                    rounds = library.levels(variant, dtype)
                    if isa == "avx2" and rounds and rounds[0].bits:
                        there = False
                    assert (("decode", variant, layout, dtype, isa) in have) == there


def test_kernels_text(capsys):
    assert call("list", "kernels") == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    kernels = default_library().kernels()
    assert [line.split()[0] for line in lines] == [kernel.id for kernel in kernels]
    assert [line.split()[1] == "yes" for line in lines] == [kernel.runnable for kernel in kernels]
    assert default_library().isa() in err and err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [["gate"], ["list", "kernels", "--plugin", "my.so"], ["sweep", "mine.toml"]]
)
def test_a_current_folder_that_is_gone(tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    assert (
        errors_of(capsys, *arguments)
        == "kvbench: the current folder is gone (run kvbench in another folder)\n"
    )


def test_a_reader_that_leaves():
    program = f"{shlex.quote(sys.executable)} -c 'from kvbench.cli import main; main()'"
    shell = f"{program} list kernels | head -n 1"
    ended = succeeds(["bash", "-o", "pipefail", "-c", shell], timeout=60)
    assert ended.stdout.count("\n") == 1
    assert "Traceback" not in ended.stderr and "Exception" not in ended.stderr


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_interrupted_while_it_is_imported(name):
    code = f"""
import os, signal, sys

class Interrupt:
    def find_spec(self, module, *_):
        if module == "click":
            os.kill(os.getpid(), signal.{name})

sys.meta_path.insert(0, Interrupt())
from kvbench.cli import main
main()
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")
