"""The number formats of rows, restated in NumPy: what a value becomes when it is stored, and what
stored bytes mean.
"""

import ml_dtypes
import numpy as np

STORED = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8,
          "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}  # fmt: skip
SCALED = ("i8",)
PACKED = {"q8_0": 34, "q4_0": 18}  # bytes of a block
BLOCK = 32  # elements of one
WHOLE = (*SCALED, *PACKED)  # integer codes with scales
DTYPES = (*STORED, *PACKED)
LANES = 16  # tokens of a block whose rows lie transposed
# bytes of a row of K that blocks of blockt keep together
CELL = {"f32": 4, "f16": 2, "bf16": 4, "i8": 4}
CODES = ("i8", "e4m3", "e5m2", "q8_0", "q4_0")  # what block16 has, of K and of V
TRANSPOSED = {"blockt": tuple(CELL), "block16": CODES}  # dtypes of K
STRETCHES = ("head", *TRANSPOSED)  # layouts of which a head's rows are one stretch


def cells_of(layout: str, dtype: str) -> tuple[int, int]:
    """Bytes of a cell of K, and of V: 1 for quads of tokens, 0 for full rows."""
    if layout == "block16":
        return 4, 1
    return CELL.get(dtype, 0) if layout == "blockt" else 0, 0


# formats that store this for larger values; the others store Inf
MOST = {"e4m3": 448.0, "e5m2": 57344.0}


def quantise(values: np.ndarray, scale_dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """int8 rows and their scales, in float32 steps: scale = amax * (1 / 127) as stored, code =
    RNE(x * (1 / scale)).

    The scale saturates: float32 where 127 codes still fit, float16 at its largest. An infinite
    inverse counts as 0, and so does a NaN element.
    """
    values = np.asarray(values, dtype=np.float32)
    values = np.where(np.isnan(values), np.float32(0), values)
    part = np.float32(1) / np.float32(127)
    most = np.float32(65504) if scale_dtype == "f16" else np.finfo(np.float32).max * part
    with np.errstate(all="ignore"):
        scale = np.minimum(np.abs(values).max(axis=-1) * part, most).astype(STORED[scale_dtype])
        inverse = np.float32(1) / scale.astype(np.float32)
        inverse = np.where(np.isfinite(inverse), inverse, np.float32(0))
        codes = np.clip(np.rint(values * inverse[..., None]), -127, 127).astype(np.int8)
    return codes, scale


def by_channel(values: np.ndarray, channel: np.ndarray) -> np.ndarray:
    """int8 codes of values whose channels have factors, in float32 steps."""
    with np.errstate(all="ignore"):
        codes = np.rint(np.asarray(values, dtype=np.float32) / channel)
    return np.clip(np.where(np.isnan(codes), 0, codes), -127, 127).astype(np.int8)


def rounded(dtype: str, values: np.ndarray) -> np.ndarray:
    """float32 values rounded to a dtype without scales."""
    with np.errstate(all="ignore"):
        values = np.asarray(values, dtype=np.float32)
        most = MOST.get(dtype, np.inf)
        return np.clip(values, -most, most).astype(STORED[dtype])


# ---- packed rows ---------------------------------------------------------------------------------
#
# Restated from the definition of ggml's blocks: 32 elements after a float16 `d`. Our choices where
# ggml says nothing: a NaN counts as 0, a `d` beyond float16 becomes its largest value, and an
# infinite 1 / d counts as 0.


def to_blocks(dtype: str, values: np.ndarray) -> np.ndarray:
    """float32 [..., D] as uint8 [..., blocks, bytes]; zeros fill the last block."""
    x = np.asarray(values, dtype=np.float32)
    x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, -x.shape[-1] % BLOCK)])
    x = x.reshape(*x.shape[:-1], x.shape[-1] // BLOCK, BLOCK)
    x = np.where(np.isnan(x), np.float32(0), x)
    size = np.abs(x)
    with np.errstate(all="ignore"):
        if dtype == "q8_0":
            d, inverse = block_scale(size.max(axis=-1, keepdims=True) / np.float32(127))
            y = np.clip(x * inverse, -127, 127).astype(np.float64)
            # half way: away from zero
            codes = (np.sign(y) * np.floor(np.abs(y) + 0.5)).astype(np.int8)
        else:
            # of equals, too
            first = np.take_along_axis(x, size.argmax(axis=-1, keepdims=True), axis=-1)
            first = np.where(first == 0, np.float32(0), first)
            d, inverse = block_scale(first / np.float32(-8))
            y = np.clip(x * inverse, -8, 8) + np.float32(8.5)
            nibbles = np.minimum(y.astype(np.uint8), 15)  # cut
            codes = nibbles[..., : BLOCK // 2] | nibbles[..., BLOCK // 2 :] << 4
    return np.concatenate(
        [np.ascontiguousarray(part).view(np.uint8) for part in (d, codes)], axis=-1
    )


def block_scale(d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The scale as stored, and the factor of the elements, which is computed from the float32
    scale.
    """
    d = np.where(np.isinf(d.astype(np.float16)), np.copysign(np.float32(65504), d), d)
    inverse = np.float32(1) / d
    return d.astype(np.float16), np.where(np.isfinite(inverse), inverse, np.float32(0))


def from_blocks(dtype: str, raw: np.ndarray) -> np.ndarray:
    """uint8 [..., blocks, bytes] as float64 [..., D]."""
    d = np.ascontiguousarray(raw[..., :2]).view(np.float16).astype(np.float64)
    codes = raw[..., 2:]
    if dtype == "q8_0":
        codes = codes.view(np.int8)
    else:
        codes = np.concatenate((codes & 15, codes >> 4), axis=-1).astype(np.int8) - np.int8(8)
    with np.errstate(invalid="ignore"):  # a code times NaN
        values = codes * d
    return values.reshape(*raw.shape[:-2], raw.shape[-2] * BLOCK)
