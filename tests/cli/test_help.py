"""Help texts: an option's name means the same in all commands. The help of a long command has
groups of options, and examples at its end.
"""

import re
from collections import defaultdict

import click
import pytest

from kvbench.cli._program import kvbench as program
from kvbench.suite import AXES
from tests.cli.test_cli import output_of
from tests.cli.test_workflows import parsed

SAME = ("--threads", "--cpus", "--isa", "--pages", "--library", "--context", "--dtype")
# options with one name and several meanings
APART = {
    "--batch": "of peers and profile a shape's, of size and explain a fleet's",
    "--budget": "bytes, or time",
    "--build": "a library that is built, or what builds one",
    "--capacity": "of a model, or of one point",
    "--engine": "what is predicted, profiled or compared",
    "--gate": "of runs, or of a history",
    "--layers": "of a model, or of one point",
    "--lengths": "of what is kept, or of what is decoded",
    "--machine": "a run to take facts from, or a fingerprint",
    "--model": "one model, or several",
    "--out": "what is written",
    "--patience": "with a visit, or with a plug-in",
    "--plot": "what is drawn",
    "--quick": "what is left out",
    "--report": "a page beside the run, or in a folder",
    "--resume": "with more launches, or as it was begun",
    "--sample-time": "a suite's, or of one point",
    "--samples": "a suite's, or of one point",
    "--schedule": "a suite's, or of one point",
    "--seed": "of visits, or of sides",
    "--window": "of a model, or of one point",
}
LONG = (
    *("sweep", "profile", "score", "report", "size", "explain", "compare", "gate"),
    "history show",
)
EXAMPLES = {"gate": 3, "profile": 3, "report": 3, "history show": 1}  # of the others two


def commands(command=program, *words):
    context = click.Context(program)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from commands(command.get_command(context, name), *words, name)
    else:
        yield " ".join(words), command


def meant(option):
    """The type and the sentence of an option's help, without its default."""
    context = click.Context(program)
    option.get_help_record(context)  # some are written only then
    said = re.sub(r" \[default: [^]]*\]$", "", option.help or "")
    return repr(option.type), option.make_metavar(context), said


def test_options_of_one_name_mean_the_same():
    found = defaultdict(lambda: defaultdict(list))
    for words, command in commands():
        for option in command.params:
            for name in option.opts if isinstance(option, click.Option) else ():
                if name.startswith("--"):
                    found[name][meant(option)].append(words)
    apart = {name for name, meanings in found.items() if len(meanings) > 1}
    assert apart == set(APART), {name: dict(found[name]) for name in apart ^ set(APART)}
    assert all(sum(map(len, found[name].values())) > 1 for name in SAME)


def said(capsys, words):
    return output_of(capsys, *words.split(), "--help")


@pytest.mark.parametrize("words", LONG)
def test_a_long_help_is_in_groups(words, capsys):
    text = said(capsys, words)
    titles = re.findall(r"^(\w[^:\n]*):$", text, re.MULTILINE)
    assert "Options" not in titles and titles.index("Other options") >= 1
    rest = text.split("Other options:\n")[1].partition("\n\n")[0]
    assert rest.split() == ["-h,", "--help", "Show", "this", "message", "and", "exit."]


@pytest.mark.parametrize("words", [*LONG, "history"])
def test_a_long_help_ends_with_examples_that_are_calls(words, capsys):
    last = said(capsys, words).split("\n\n")[-1]
    examples = re.findall(r"^  (kvbench .*?)(?:  +.*)?$", last, re.MULTILINE)
    assert last.startswith("Examples:\n") and len(examples) == EXAMPLES.get(words, 2)
    for line in examples:
        assert line.split()[1] == words.split()[0] and parsed(line) is not None


def test_help_of_sweep_names_the_axes(capsys):
    axes = said(capsys, "sweep").split("Axes:\n")[1].partition("\n\n")[0]
    assert re.findall(r"^  (\w+)", axes, re.MULTILINE) == list(AXES)
    assert all(AXES[name].about for name in AXES)
