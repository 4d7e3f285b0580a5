"""What one compiler is told in its own words, the other is told, too."""

import re
from pathlib import Path

KERNELS = Path(__file__).parents[2] / "kernels"


def test_loops_are_unrolled_by_one_macro():
    """Clang takes gcc's pragma without a word and does not heed it: decodes then took up to five
    times as long.
    """
    pragma = re.compile(r"(_Pragma|#pragma|KVB_PRAGMA).*unroll")
    assert {path.name for path in KERNELS.rglob("*.[ch]") if pragma.search(path.read_text())} == {
        "words.h"
    }
