"""What it costs to store a token, and which layouts differ."""

from dataclasses import dataclass
from typing import Annotated

from kvbench.analysis.answers.answer import Answer, Reason
from kvbench.analysis.answers.factors import Choice
from kvbench.analysis.answers.tables import Tables
from kvbench.analysis.answers.workload import Workload
from kvbench.model.annotated import about


@dataclass(frozen=True, slots=True)
class Storing:
    token: Annotated[Answer, about("seconds: of one token in all layers")]
    share: Annotated[Answer, about("share of a decode step of the workload")]
    layouts: Annotated[tuple[Choice, ...], about("of append and bulk, side by side")]


def storing(tables: Tables, page: Workload, choices: tuple[Choice, ...]) -> Storing:
    none = Answer.untested("storing", Reason.NOT_MEASURED)
    return Storing(none, none, choices)
