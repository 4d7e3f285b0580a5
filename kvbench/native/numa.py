"""Bind memory to NUMA nodes and look up where pages lie, by the kernel's own calls."""

import os
import random
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

from cffi import FFI

from kvbench.errors import Unsupported
from kvbench.native.arena import Arena

_NUMBERS = {
    "x86_64": {"mbind": 237, "move_pages": 279},
    "aarch64": {"mbind": 235, "move_pages": 239},
}
_BIND, _INTERLEAVE = 2, 3  # from linux/mempolicy.h
_BITS = 64  # in a word of a mask
_SAMPLES, _PAGE = 512, 4096  # pages that are looked up, and bytes of the smallest page


def bind(arena: Arena, nodes: Sequence[int]) -> None:
    """Bind an arena before its first touch: to one node, or page by page to each node in turn."""
    mask = _c()[0].new("unsigned long[]", max(nodes) // _BITS + 2)
    for node in nodes:
        mask[node // _BITS] |= 1 << node % _BITS
    mode = _BIND if len(nodes) == 1 else _INTERLEAVE
    _call("mbind", arena.base, arena.size, mode, mask, len(mask) * _BITS, 0)


def placed(arena: Arena, size: int) -> Counter[int]:
    """Count pages by node, in a random sample of the first `size` bytes. A regular step could match
    the interleaving.
    """
    ffi, every = _c()[0], range(0, size, _PAGE)
    at = random.Random(1).sample(every, min(_SAMPLES, len(every)))
    pages, status = (
        ffi.new("void *[]", [arena.base + offset for offset in at]),
        ffi.new("int[]", len(at)),
    )
    _call("move_pages", 0, len(at), pages, ffi.NULL, status, 0)
    return Counter(node for node in status if node >= 0)


def _call(
    name: str, first: Any, count: int, third: Any, fourth: Any, fifth: Any, flags: int
) -> None:
    (ffi, libc), number = _c(), _NUMBERS.get(os.uname().machine, {}).get(name)
    if number is None:
        raise Unsupported(f"{name} is not known for {os.uname().machine}", "use memory = local")
    words = (ffi.cast("long", value) for value in (first, count, third, fourth, fifth, flags))
    if libc.syscall(number, *words) < 0:
        why = os.strerror(ffi.errno)
        raise Unsupported(
            f"the system refused {name}: {why}",
            "a container may need --cap-add SYS_NICE; or use memory = local",
        )


@cache
def _c() -> tuple[FFI, Any]:
    ffi = FFI()
    ffi.cdef("long syscall(long number, long, long, long, long, long, long);")
    return ffi, ffi.dlopen(None)
