"""What prefetches gain: the best schedule over none, in the same rounds, from memory and in L3."""

from dataclasses import replace

from kvbench.analysis.answers import pairs
from kvbench.analysis.answers.answer import Answer
from kvbench.analysis.answers.tables import Tables
from kvbench.analysis.answers.workload import Workload


def prefetch(tables: Tables, page: Workload) -> tuple[Answer, ...]:
    """At most one answer for each level, with the page's threads and the dtype that was tuned: for
    the chosen schedule, or for the best one if `off` was chosen.

    `of` is the level; facts: the `schedule`, the `dtype`, the `layout`, the `rounds`.
    """
    found = tables.contrasts
    found = found[found["factor"] == pairs.SCHEDULE]
    return tuple(
        replace(
            pairs.answer(row, "prefetch", row["regime"]),
            facts={"schedule": row["other"], "dtype": row["dtype"]}
            | {name: row[name] for name in ("layout", "rounds")},
        )
        for row in found.drop_duplicates("regime").to_dict("records")
    )
