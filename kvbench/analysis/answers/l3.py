"""Does L3 help: decode of one layer that stays in L3 over the same decode from memory, in the same
rounds. And how many tokens fit there.
"""

from dataclasses import dataclass
from typing import Annotated

from kvbench.analysis.answers.answer import Answer, Reason
from kvbench.analysis.answers.tables import Tables
from kvbench.analysis.answers.workload import Workload
from kvbench.model.annotated import about


@dataclass(frozen=True, slots=True)
class Gain:
    """Of one dtype and number of query heads on a KV head, its middle layout."""

    dtype: Annotated[str, about("number format of the cache")]
    layout: Annotated[str, about("of the cache: the middle one by gain")]
    group: Annotated[int, about("query heads on a KV head")]
    model: Annotated[str, about("whose layer it is; empty where no model is known")]
    context: Annotated[int, about("tokens of the layer")]
    threads: Annotated[int, about("that decode")]
    gain: Annotated[Answer, about("times as fast as the same decode from memory")]
    limit: Annotated[Answer, about("what limits it in L3; `reason` is the word")]


@dataclass(frozen=True, slots=True)
class Fits:
    """Contexts that lie in L3, of one dtype."""

    model: Annotated[str, about("its name")]
    dtype: Annotated[str, about("number format of the cache")]
    threads: Annotated[int, about("that decode")]
    layer: Annotated[int | None, about("tokens: of one layer; null where none fits")]
    model_wide: Annotated[int | None, about("tokens: of all layers together; null: none fits")]


@dataclass(frozen=True, slots=True)
class L3:
    """`gains`: that of the page's model first, then by gain."""

    helps: Annotated[Answer, about("that of the page's model, or of what was tested")]
    gains: Annotated[tuple[Gain, ...], about("by dtype and query heads on a KV head")]
    fits: Annotated[tuple[Fits, ...], about("for every dtype that was measured")]


def l3(tables: Tables, page: Workload) -> L3:
    return L3(Answer.untested("L3 helps", Reason.NOT_MEASURED), (), ())
