"""What is said, as templates that read as text: a file for each topic, in it a macro for each thing to say."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from statistics import median
from typing import Annotated, Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

from kvbench.analysis.means.diagnosis import Choice, Fact
from kvbench.model.annotated import about
from kvbench.report.words.phrases import between, listed, number, times
from kvbench.texts import markdown
from kvbench.units import counted, cpu_text, duration, size


@dataclass(frozen=True, slots=True)
class Sentence:
    """topic: a word to find it by; two sentences may share one."""

    topic: Annotated[str, about("a word to find it by")]
    text: Annotated[str, about("it")]


def sentences(facts: Iterable[Fact]) -> tuple[Sentence, ...]:
    """A choice is known by what is chosen."""
    topics = _templates("diagnosis").topics
    return tuple(
        Sentence(fact.factor if isinstance(fact, Choice) else topics[kind], said("diagnosis", kind, fact))
        for fact in facts
        for kind in [type(fact).__name__]
    )


def said(topic: str, name: str, *facts: Any) -> str:
    """Of these facts, in one line."""
    return " ".join(paragraphs(topic, name, *facts))


def paragraphs(topic: str, name: str, *facts: Any) -> list[str]:
    """A line for each; between two of them the template has an empty one."""
    found = template(topic, name, *facts).split("\n\n")
    return [line for each in found if (line := " ".join(each.split()))]


def template(topic: str, name: str, *facts: Any) -> str:
    """As it stands, with its lines."""
    return getattr(_templates(topic), name)(*facts)


@cache
def _templates(topic: str) -> Any:
    """Its macros, and what else it sets."""
    words = Environment(
        loader=FunctionLoader(lambda name: files(__package__).joinpath(name).read_text(encoding="utf-8")),
        extensions=["jinja2.ext.do"],
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    words.filters |= {each.__name__: each for each in (between, counted, duration, listed, number, size, times)}
    words.filters |= {"commas": "{:,}".format, "cpus": cpu_text, "plain": markdown, "share": _share, "moved": _moved}
    words.filters["median"] = median
    return words.get_template(f"{topic}.jinja").module


def _share(part: float, digits: int = 0) -> str:
    return f"{part:.{digits}%}"


def _moved(change: float) -> str:
    """A change on a scale of logarithms."""
    return f"{math.expm1(float(change)):+.1%}"
