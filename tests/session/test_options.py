"""Options of a session: valid and invalid combinations."""

import pytest

from kvbench.errors import BadArgument
from kvbench.session import Options


@pytest.mark.parametrize(
    ("facts", "on"),
    [
        ({}, True),
        ({"launches": 3}, False),
        ({"launches": 3, "until_decided": True}, True),
        ({"until_decided": False}, False),
    ]
    + [
        ({"target_ci": 0.1, "budget": 9.0}, False),
        ({"budget": 9.0}, True),
        ({"suite": "standard"}, False),
    ],
)
def test_who_asks_for_it(facts, on):
    asked = Options(**facts)
    assert asked.settled(asked.asked_suite).until_decided is on


IMPOSSIBLE = [
    dict(target_ci=0.01),
    dict(launches=0),
    dict(samples=0),
    dict(sample_time=0.0),
    dict(budget=-1.0),
]
IMPOSSIBLE += [dict(until_decided=True, target_ci=0.1, budget=9.0)]
IMPOSSIBLE += [
    dict(patience=0.0),
    dict(target_ci=2.0, budget=1.0),
    dict(sample_time=float("nan")),
    dict(seed=-1),
]
IMPOSSIBLE += [dict(axes=("pages=thp",), pages="base"), dict(samples=10**400)]


@pytest.mark.parametrize("facts", IMPOSSIBLE, ids=str)
def test_options_that_cannot_be(facts):
    with pytest.raises(BadArgument):
        Options(**facts)
