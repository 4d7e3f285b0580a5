/* QK by products of bf16, of bf16 rows whose K is transposed. A lane has two elements of a token:
 *
 *   cells of a block   | t0: x0 x1 | t1: x0 x1 | ...     16 tokens, a line
 *   q[h]               |     q0 q1 |     q0 q1 | ...     the same in all lanes
 *
 * The products of both are added to acc[h], then those of the next cells: nothing is added across
 * lanes. */

/* Do the cell at element `at` of all tokens of one block or two. `half`: it has one element,
 * because it is the last cell of an odd dim. */
INLINE void qkt_cell_floats(vf *acc, const uint8_t *const *k, int64_t at, const uint16_t *q,
                            const int q_rows, const int part, const int blocks, const bool half)
{
    const int vectors = blocks * (LANES / VL);
    vi x[2 * (LANES / VL)];
    UNROLL_FOR (int v = 0; v < vectors; v++) {
        x[v] = v_load_bytes((const int8_t *)k[v / (LANES / VL)] + at * 2 * LANES +
                            v % (LANES / VL) * VB);
        if (half)
            x[v] = v_int_and(x[v], v_set_int(0xffff));
    }
    UNROLL_FOR (int h = 0; h < q_rows; h++) {
        const vi w = dot_four(q + h * part);
        UNROLL_FOR (int v = 0; v < vectors; v++)
            v_dot16_into(&acc[INDEX(h, q_rows) * vectors + INDEX(v, vectors)], x[v], w);
    }
}

/* Return the words of q for the cell at element `at`. */
INLINE const uint16_t *qkt_words(const kvb_group *group, int q_row, int slots, int at)
{
    return (const uint16_t *)(const void *)group->prepared->codes + floats_word(at, q_row, slots);
}

/* Do the LANES tokens of one block or two. With few query rows, a score has several sums, which
 * hide the latency of an addition. */
INLINE void qkt_blocks_floats(const kvb_group *group, const uint8_t *const *k, prefetch *cursor,
                              int q_row, float *scores, const int q_rows, const int slots,
                              const int blocks, const int order)
{
    const int vectors = blocks * (LANES / VL), sums = q_rows * vectors;
    const int chains = QK_ACC / sums < 4 ? QK_ACC / sums : 4, dim = group->k_dim;
    vf acc[QK_ACC];
    UNROLL_FOR (int i = 0; i < chains * sums; i++)
        acc[i] = v_zero();
    int at = 0;
    for (; at + 2 * chains <= dim; at += 2 * chains)
        UNROLL_FOR (int c = 0; c < chains; c++) {
            UNROLL_FOR (int b = 0; b < blocks; b++)
                prefetch_with(cursor, k[b] + (at + 2 * c) * 2 * LANES, c, order);
            qkt_cell_floats(acc + c * sums, k, at + 2 * c,
                            qkt_words(group, q_row, slots, at + 2 * c), q_rows, PART_WORDS(slots),
                            blocks, false);
        }
    for (; at < dim; at += 2) {
        UNROLL_FOR (int b = 0; b < blocks; b++)
            prefetch_with(cursor, k[b] + at * 2 * LANES, 0, order);
        qkt_cell_floats(acc, k, at, qkt_words(group, q_row, slots, at), q_rows, PART_WORDS(slots),
                        blocks, at + 1 == dim);
    }
    UNROLL_FOR (int i = 0; i < sums; i++) {
        vf sum = acc[i];
        UNROLL_FOR (int c = 1; c < chains; c++)
            sum = v_add(sum, acc[c * sums + i]);
        v_store(scores + i / vectors * QUERY_SCORES + i % vectors * VL, sum);
    }
}

#define QKT_BLOCKS qkt_blocks_floats
#define QKT_TILE qkt_floats_tile_bf16
#define QKT_SUMS BLOCK_SUMS
#define QKT_CURSOR prefetch_from(&tile->k, 2 * (int64_t)group->k_dim)
#include "isa/dot/qk_t_tile.tmpl.c"

enum { floats_sums_bf16 = BLOCK_SUMS };
