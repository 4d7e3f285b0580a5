/* Encode float32 rows to packed rows. Reads no float after the end of a source; zeros fill a row's
 * last pack. */

INLINE void CAT(encode_row_, DTYPE)(const float *from, int64_t dim, uint8_t *to)
{
    for (; dim >= PACK; dim -= PACK, from += PACK, to += ELEMENT)
        CAT(encode_pack_, DTYPE)(from, to);
    if (dim > 0) {
        float last[PACK] = {0};
        memcpy(last, from, (size_t)dim * sizeof *from);
        CAT(encode_pack_, DTYPE)(last, to);
    }
}

static void CAT(encode_, DTYPE)(const kvb_encode *rows)
{
    gather lines;
    gather_begin(&lines);
    for (int64_t r = 0; r < rows->count; r++) {
        const float *from = rows->from + r * rows->from_stride;
        uint8_t *to = rows->to + r * rows->to_stride;
        CAT(encode_row_, DTYPE)(from, rows->dim, rows->nt ? gather_room(&lines, to) : to);
        if (rows->nt)
            gather_row(&lines, rows->row_bytes);
    }
    gather_end(&lines);
    if (rows->nt)
        v_stream_end();
}
