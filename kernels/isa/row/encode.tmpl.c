/* Encode float32 rows: any dtype that is not packed, any tier. Reads no float after the end of a
 * source; zeros pad a row to a line. */

#if SCALED

/* Store the scale of a row, by the rule in scalar/rows.c. Returns the scale as it was stored. */
INLINE float CAT(encode_scale_, DTYPE)(const float *from, int dim, int32_t scale_dtype, uint8_t *to)
{
    vf most = v_zero();
    int at = 0;
    for (; at + VL <= dim; at += VL)
        most = v_max(most, v_abs(v_number(v_load(from + at))));
    if (at < dim)
        most = v_max(most, v_abs(v_number(v_load_n(from + at, dim - at))));
    float limit = scale_dtype == SCALE_F16 ? 65504.0f : FLT_MAX * (1.0f / 127.0f);
    float scale = v_hmax(most) * (1.0f / 127.0f);
    scale = scale < limit ? scale : limit;
    if (scale_dtype == SCALE_F16) {
        uint8_t halves[2 * VL];
        float lanes[VL];
        v_store_f16(halves, v_set1(scale));
        v_store(lanes, v_load_f16(halves));
        memcpy(to, halves, 2);
        return lanes[0];
    }
    memcpy(to, &scale, 4);
    return scale;
}

/* Return a vector in units of the row's scale. */
INLINE vf CAT(encoded_, DTYPE)(vf x, vf inverse)
{
    return v_max(v_min(v_mul(v_number(x), inverse), v_set1(127.0f)), v_set1(-127.0f));
}

#else

INLINE vf CAT(encoded_, DTYPE)(vf x, vf inverse)
{
    (void)inverse;
    return x;
}

#endif

INLINE void CAT(encode_row_, DTYPE)(const float *from, int dim, float scale, uint8_t *to,
                                    int64_t row_bytes)
{
    const float exact = 1.0f / scale;
    const vf inverse = v_set1(exact <= FLT_MAX ? exact : 0.0f);
    int64_t at = 0;
    for (; at + VL <= dim; at += VL)
        CAT(v_store_, DTYPE)(to + at * ELEMENT, CAT(encoded_, DTYPE)(v_load(from + at), inverse));
    if (at < dim) {
        CAT(v_store_, DTYPE)(to + at * ELEMENT,
                             CAT(encoded_, DTYPE)(v_load_n(from + at, dim - (int)at), inverse));
        at += VL;
    }
    for (; at * ELEMENT < row_bytes; at += VL)
        CAT(v_store_, DTYPE)(to + at * ELEMENT, v_zero());
}

static void CAT(encode_, DTYPE)(const kvb_encode *rows)
{
    _Alignas(LINE) uint8_t line[DIM_MAX * 4];
    for (int64_t r = 0; r < rows->count; r++) {
        const float *from = rows->from + r * rows->from_stride;
        uint8_t *to = rows->to + r * rows->to_stride;
        float scale = 1.0f;
#if SCALED
        if (rows->scale)
            scale = CAT(encode_scale_, DTYPE)(from, (int)rows->dim, rows->scale_dtype,
                                              rows->scale + r * rows->scale_stride);
#endif
        CAT(encode_row_, DTYPE)(from, (int)rows->dim, scale, rows->nt ? line : to, rows->row_bytes);
        for (int64_t at = 0; rows->nt && at < rows->row_bytes; at += LINE)
            v_stream(to + at, line + at);
    }
    if (rows->nt)
        v_stream_end();
}
