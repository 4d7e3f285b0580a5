/* 8-bit floats, by their lines in base/dtypes.h. They are converted through f16, whose exponent has
 * another bias: as f16 they are FOLD times too small.
 *
 *   code | s | e ... | f ... |
 *   f16  | s | 0 ... | e ... | f ... | 0 ... |
 *
 * OVERFLOW, added to the f16, carries out of the exponent only for Inf and NaN. The upper bits of
 * f16's exponent take the carry, so that Inf and NaN stay Inf and NaN. */

#define FORMAT (&kvb_formats[CAT(dtype_, DTYPE)])
#define FOLD ((float)(1 << (15 - kvb_bias(FORMAT))))
#define OVERFLOW (FORMAT->infinities ? 1 << 10 : 1 << (3 + FORMAT->exponent))

INLINE vf CAT(v_load_, DTYPE)(const uint8_t *p)
{
    return v_load_float8(p, FORMAT->exponent, OVERFLOW);
}
#if PAIRED
INLINE void CAT(v_pair_, DTYPE)(const uint8_t *p, vf *to)
{
    v_pair_float8(p, FORMAT->exponent, OVERFLOW, to);
}
#endif
INLINE void CAT(v_store_, DTYPE)(uint8_t *p, vf a)
{
    const float steps = (float)(1 << (7 - FORMAT->exponent)),
                least = 2.0f / (float)(1 << kvb_bias(FORMAT));
    const vf near = v_round_within(a, steps, least, kvb_largest(FORMAT));
    v_store_float8(p, FOLD == 1.0f ? near : v_mul(near, v_set1(1.0f / FOLD)), FORMAT->exponent);
}

#undef OVERFLOW
