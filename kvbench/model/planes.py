"""K and V of one dtype or of two, as one word: q8_0+q4_0 is K + V, f16 is both."""

PLANES = ("k", "v")  # of a cache, in the order of their numbers in C
_AND = "+"


def is_pair(dtype: str) -> bool:
    return _AND in dtype


def apart(dtype: str) -> tuple[str, str]:
    """The dtypes of K and of V."""
    k, _, v = dtype.partition(_AND)
    return k, v if is_pair(dtype) else k


def together(k: str, v: str) -> str:
    """One word for the dtypes of K and V."""
    return k if k == v else f"{k}{_AND}{v}"
