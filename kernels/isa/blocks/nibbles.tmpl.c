/* dot over q4_0 in blocks of 16 tokens, if a tier has V_NIBBLES: sums of 16 bits. Codes are below
 * 16, so a 16-bit word holds several pairs of products. The words are added to 32-bit sums once for
 * a pack of K, and once for two blocks of V.
 *
 *   nibbles of a line   | t0: c0 c1 c2 c3 | t1 ... |       V: one element of four tokens
 *   q[h], or weights    |     b0 b1 b2 b3 | ...    |
 *   added to words      | c0 b0 + c1 b1 | c2 b2 + c3 b3 | ...
 *
 * These are the inner loops of packs_qk_t.tmpl.c and pv_quads.tmpl.c. */

enum { NIBBLE_CELLS = 4 /* lines of a pack */, NIBBLE_TOKENS = 2 * LANES };
/* Check that a word holds `pairs` pairs of products. A line of a pack of K has two pairs, of lower
 * and upper nibbles; four tokens of V have one. */
#define WORD_FITS(pairs, most) \
    _Static_assert((pairs) * 2 * 15 * (most) <= INT16_MAX, "products of nibbles fit a word")
WORD_FITS(2 * NIBBLE_CELLS, DOT_QUERY);
WORD_FITS(NIBBLE_TOKENS / 4, DOT_WEIGHT);

/* Do a pack of all tokens of some blocks. `scales`, `cells`: offsets of the pack in a block. */
INLINE void qkt_nibbles(vf *acc, const uint8_t *const *k, int64_t scales, int64_t cells,
                        prefetch *cursor, const dot_pack *q, const int q_rows, const int blocks,
                        const int order)
{
    enum { VECTORS = LANES / VL };
    const int vectors = blocks * VECTORS;
    vi words[PACK_SUMS];
    UNROLL_FOR (int i = 0; i < q_rows * vectors; i++)
        words[i] = v_none();
    UNROLL_NOTHING
    for (int c = 0; c < NIBBLE_CELLS; c++) {
        vi x[PACK_VECTORS][2];
        UNROLL_FOR (int b = 0; b < blocks; b++)
            prefetch_line(cursor, order);
        UNROLL_FOR (int v = 0; v < vectors; v++)
            v_nibbles(k[v / VECTORS] + cells + c * LINE + v % VECTORS * VB, x[v]);
        UNROLL_FOR (int i = 0; i < 2 * q_rows; i++) {
            const vi w = dot_four(q[i % q_rows].codes + i / q_rows * 16 + c * 4);
            UNROLL_FOR (int v = 0; v < vectors; v++)
                v_dot_nibbles_into(&words[INDEX(i % q_rows, q_rows) * vectors + v],
                                   x[v][i / q_rows], w);
        }
    }
    UNROLL_FOR (int v = 0; v < vectors; v++) {
        const vf scale = v_load_f16(k[v / VECTORS] + scales + v % VECTORS * VL * 2);
        UNROLL_FOR (int h = 0; h < q_rows; h++) {
            const int i = INDEX(h, q_rows) * vectors + v;
            const vi whole = v_int_add(v_widen(words[i]), v_set_int(q[h].begin));
            v_fma_into(&acc[i], v_mul(scale, v_set1(q[h].step)), v_floats(whole));
        }
    }
}

/* Multiply the parts of a slice, for one quad of tokens, by their weights. */
INLINE void pvq_nibbles_step(vi *words, const uint8_t *line, const int8_t *weights,
                             const int q_rows, const int parts)
{
    vi x[PV_ACC];
    UNROLL_FOR (int i = 0; i < parts; i++)
        v_nibbles(line + i * VL / SIDE * SQUARE + i * VL % SIDE * 4, x + 2 * i);
    UNROLL_FOR (int h = 0; h < q_rows; h++)
        UNROLL_FOR (int i = 0; i < 2 * parts; i++)
            v_dot_nibbles_into(&words[INDEX(h, q_rows) * 2 * parts + i], x[i],
                               dot_four(weights + h * WEIGHED_ROW + i / 2 * VL / SIDE * 4));
}

/* Compute the sums of a slice: sum[q_rows][parts][2]. `begins`: the slice is the start of its
 * lines. / */
INLINE void pvq_nibbles(const quad_run *run, prefetch *cursor, const bool begins, vi *sum,
                        const int q_rows, const int parts, const int order)
{
    const int lines = parts * VL < SIDE ? 1 : parts * VL / SIDE, sums = q_rows * parts * 2;
    const int8_t *weights = run->weights;
    UNROLL_FOR (int i = 0; i < sums; i++)
        sum[i] = v_none();
    for (int t = run->first; t < run->end;) {
        const int end = (int)at_most(t + NIBBLE_TOKENS, run->end);
        vi words[PV_ACC];
        UNROLL_FOR (int i = 0; i < sums; i++)
            words[i] = v_none();
        for (; t < end; t += LANES) {
            const uint8_t *line = row_of(&run->v, t, order);
            for (int i = 0; i < run->fronts && order != ORDER_PLAIN; i++)
                prefetch_line(cursor, order);
            UNROLL_NOTHING
            for (int quad = 0; quad < LANES / 4; quad++, line += LINE, weights += WEIGHED_QUAD) {
                if (begins)
                    UNROLL_FOR (int i = 0; i < lines; i++)
                        prefetch_with(cursor, line + i * SQUARE, quad, order);
                pvq_nibbles_step(words, line, weights, q_rows, parts);
            }
        }
        UNROLL_FOR (int i = 0; i < sums; i++)
            sum[i] = v_int_add(sum[i], v_widen(words[i]));
    }
}
