"""Programs and their names in files."""

import pytest

from kvbench.model import BESIDE, PLAIN, Role


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("point", ("point", PLAIN)),
        ("twin_ahead", ("twin", "ahead")),
        ("copy_nt", ("copy", "nt")),
        ("ceiling_two_pages", ("ceiling", "two_pages")),
    ],
)
def test_names_come_back(name, role):
    assert Role.of(name) == role and Role.of(name).name == name


def test_each_side_has_its_own_beside_it():
    assert BESIDE == {"base": "beside_base", "head": "beside_head"}
