"""A pragma for one compiler has its counterpart for the other."""

import re
from pathlib import Path

KERNELS = Path(__file__).parents[2] / "kernels"


def test_loops_are_unrolled_by_one_macro():
    """Clang accepts gcc's pragma silently and ignores it: decodes then took up to five times as
    long.
    """
    pragma = re.compile(r"(_Pragma|#pragma|KVB_PRAGMA).*unroll")
    assert {path.name for path in KERNELS.rglob("*.[ch]") if pragma.search(path.read_text())} == {
        "words.h"
    }
