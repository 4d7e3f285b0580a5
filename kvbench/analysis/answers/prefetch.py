"""What prefetches give: the best schedule over none, in the same rounds, from memory and in L3."""

from kvbench.analysis.answers.answer import Answer
from kvbench.analysis.answers.tables import Tables
from kvbench.analysis.answers.workload import Workload


def prefetch(tables: Tables, page: Workload) -> tuple[Answer, ...]:
    """One for each level at most, of the page's threads and the dtype that was tuned. `of` is the
    level; facts: the `schedule`, the `dtype`.
    """
    return ()
