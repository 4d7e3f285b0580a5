/* Decode one row to float32, times its scale (if any). For any dtype and tier. */
static void CAT(decode_, DTYPE)(const uint8_t *row, float scale, int64_t dim, float *to)
{
    const vf factor = v_set1(scale);
    int at = 0;
    for (; at + VL <= dim; at += VL)
        v_store(to + at, SCALED ? v_mul(VALUES(row, at), factor) : VALUES(row, at));
    if (at < dim)
        v_store_n(to + at, SCALED ? v_mul(VALUES(row, at), factor) : VALUES(row, at),
                  (int)dim - at);
}
