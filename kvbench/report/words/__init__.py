"""Sentences as templates that read as text: a file for each topic, a macro for each text."""

import math
from functools import cache
from importlib.resources import files
from statistics import median
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FunctionLoader, StrictUndefined

from kvbench.report.words.phrases import (
    bare,
    between,
    enclosed,
    ends,
    figure,
    level,
    listed,
    longer,
    more,
    number,
)
from kvbench.texts import markdown
from kvbench.units import counted, cpu_text, duration, size


def said(topic: str, name: str, *facts: Any) -> str:
    """The text of a macro on these facts, in one line."""
    return " ".join(paragraphs(topic, name, *facts))


def paragraphs(topic: str, name: str, *facts: Any) -> list[str]:
    """The paragraphs of a macro, each in one line. An empty line in the template separates them."""
    found = template(topic, name, *facts).split("\n\n")
    lines = (" ".join(each.split()).replace(" ;", ";") for each in found)
    return [line for line in lines if line]


def template(topic: str, name: str, *facts: Any) -> str:
    """The text of a macro with its line breaks."""
    return getattr(_templates(topic), name)(*facts)


@cache
def _templates(topic: str) -> Any:
    """The module of a topic: its macros and variables."""
    words = Environment(
        loader=FunctionLoader(
            lambda name: files(__package__).joinpath(name).read_text(encoding="utf-8")
        ),
        extensions=["jinja2.ext.do"],
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    words.filters |= {
        each.__name__: each
        for each in (
            bare,
            between,
            counted,
            duration,
            enclosed,
            ends,
            figure,
            level,
            listed,
            longer,
            more,
            number,
            size,
        )
    }
    words.filters |= {
        "commas": "{:,}".format,
        "cpus": cpu_text,
        "plain": markdown,
        "link": quote,
        "median": median,
        "named": lambda name, names: names.get(name, name),
    }
    words.filters["share"] = lambda part, digits=0: f"{part:.{digits}%}"
    words.filters["capital"] = lambda text: text[:1].upper() + text[1:]
    words.filters["in"] = lambda name, names: names[name]
    # a change given as a logarithm
    words.filters["moved"] = lambda change: f"{math.expm1(float(change)):+.1%}"
    return words.get_template(f"{topic}.jinja").module
