"""K that lies transposed in blocks of tokens, as abi.h tells at kvb_cache."""

import numpy as np

from kvbench.native.cache import Cache

LANES = 16  # tokens of a block


def key_bytes(cache: Cache, token: int, head: int, sequence: int = 0) -> np.ndarray:
    """Where each byte of a token's row of K lies in the plane: side by side, or transposed."""
    c, row = cache.struct, cache.place(token, head, sequence)[0]
    byte, cell = np.arange(c.k.row_bytes), cache.library.cell(cache.layout, cache.dtype)
    if not cell:
        return row + byte
    lane = token % c.capacity % LANES
    return row - lane * c.k.row_bytes + (byte // cell * LANES + lane) * cell + byte % cell
