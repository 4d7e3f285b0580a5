/* Packs of q8_0 and q4_0, 32 elements each, by the rules in scalar/blocks.c. */

/* Load VL codes from element `in` of a pack on. */
INLINE vf v_load_q8_0(const uint8_t *pack, int in) { return v_load_i8(pack + 2 + in); }
INLINE vf v_load_q4_0(const uint8_t *pack, int in)
{
    return v_load_nibbles(pack + 2 + in % 16, in >= 16);
}

/* Store a scale as f16. Return the factor for elements, made of the scale before rounding. */
INLINE float pack_inverse(float scale, uint8_t *to)
{
    uint8_t halves[2 * VL];
    scale = scale < 65520.0f ? scale : 65504.0f;
    scale = scale > -65520.0f ? scale : -65504.0f;
    v_store_f16(halves, v_set1(scale));
    memcpy(to, halves, 2);
    float inverse = 1.0f / scale;
    return __builtin_fabsf(inverse) <= FLT_MAX ? inverse : 0.0f;
}

/* Return x * inverse, within [-most, most]; 0 for a NaN. */
INLINE vf pack_quotients(const float *x, float inverse, float most)
{
    return v_max(v_min(v_mul(v_number(v_load(x)), v_set1(inverse)), v_set1(most)), v_set1(-most));
}

INLINE void encode_pack_q8_0(const float *from, uint8_t *to)
{
    vf most = v_zero();
    UNROLL_FOR (int i = 0; i < 32; i += VL)
        most = v_max(most, v_abs(v_number(v_load(from + i))));
    float inverse = pack_inverse(v_hmax(most) / 127.0f, to);
    UNROLL_FOR (int i = 0; i < 32; i += VL)
        v_store_i8(to + 2 + i, v_away(pack_quotients(from + i, inverse, 127.0f)));
}

/* Return the first element of a pack that has the largest magnitude. */
INLINE float pack_extreme(const float *from)
{
    vf above = v_zero(), below = v_zero();
    UNROLL_FOR (int i = 0; i < 32; i += VL) {
        vf x = v_number(v_load(from + i));
        above = v_max(above, x);
        below = v_max(below, v_sub(v_zero(), x));
    }
    float high = v_hmax(above), low = v_hmax(below);
    if (high != low)
        return high > low ? high : -low;
    for (int i = 0; i < 32 && high > 0.0f; i++)
        if (__builtin_fabsf(from[i]) == high)
            return from[i];
    return 0.0f;
}

INLINE void encode_pack_q4_0(const float *from, uint8_t *to)
{
    uint8_t codes[32];
    float inverse = pack_inverse(pack_extreme(from) / -8.0f, to);
    UNROLL_FOR (int i = 0; i < 32; i += VL) {
        vf above = v_add(pack_quotients(from + i, inverse, 8.0f), v_set1(8.5f));
        /* round down; `above` is at least 0.5 */
        vf cut = v_away(v_sub(above, v_set1(0.5f)));
        v_store_i8(codes + i, v_min(cut, v_set1(15.0f)));
    }
    for (int i = 0; i < 16; i += 8) { /* 8 bytes at once, without carries between bytes */
        uint64_t lower, upper;
        memcpy(&lower, codes + i, sizeof lower);
        memcpy(&upper, codes + 16 + i, sizeof upper);
        lower |= upper << 4;
        memcpy(to + 2 + i, &lower, sizeof lower);
    }
}
