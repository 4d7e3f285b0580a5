"""A table as lines of a terminal."""

import pandas as pd

from kvbench.report.ruled import Column, ruled

TABLE = pd.DataFrame({"name": ["a", "longer"], "gbps": [1.25, 123.0], "share": [0.5, None], "hidden": [1, 2]})


def test_numbers_to_the_right_and_words_to_the_left():
    columns = [
        Column("name", "what"),
        Column("gbps", "GB/s", "{:.1f}".format),
        Column("share", "of it", "{:.0%}".format),
    ]
    assert ruled(TABLE, columns) == [
        "what     GB/s  of it",
        "a         1.2    50%",
        "longer  123.0",
    ]
