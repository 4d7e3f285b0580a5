/* dot over i8 rows and packed rows: what all ways of multiplying have in common. The rules are in
 * tier/dot.h. Codes of q after dim are zero, and any byte of a row is a number, so rows are not cut
 * to their dim. */

enum { VB = 4 * VL };                       /* bytes of a vector */
enum { DOT_PACKS = VB > 32 ? VB / 32 : 1 }; /* packs of 32 codes in a vector */
enum { DOT_VECS = VB < 32 ? 32 / VB : 1 };  /* vectors of codes in a pack */

/* Return levels / most, or 0 if that is not finite: then all elements count as zero. */
INLINE float dot_steps(float levels, float most)
{
    float inverse = levels / most;
    return inverse <= 3.0e38f ? inverse : 0.0f;
}

/* For pieces of query rows, [slots][pieces]: the value of code 1 (NaN if an element is not finite),
 * and the factor of elements (0 if it is not finite). */
typedef struct dot_pieces {
    float step[Q_ROWS * DIM_MAX / 32];
    float inverse[Q_ROWS * DIM_MAX / 32];
} dot_pieces;

/* Load VL elements of a query row from d on; zeros after its end. */
INLINE vf dot_floats(const kvb_group *group, int q_row, int64_t d)
{
    return d < group->k_pad ? v_load(group->q + q_row * group->k_pad + d) : v_zero();
}

/* Compute the steps of pieces of `each` elements. `dim` is a multiple of `each`. */
INLINE void dot_query_steps(const kvb_group *group, int64_t dim, int64_t each, dot_pieces *to)
{
    int count = 0;
    for (int h = 0; h < group->slots; h++)
        for (int64_t from = 0; from < dim; from += each) {
            vf most = v_zero(), check = v_zero();
            for (int64_t d = from; d < from + each; d += VL) {
                vf x = dot_floats(group, h, d);
                most = v_max(most, v_abs(x));
                check = v_fma(x, v_zero(), check); /* NaN if an element is not finite */
            }
            to->step[count++] = v_hmax(most) + v_hsum(check);
        }
    for (; count % VL; count++)
        to->step[count] = 0.0f;
    for (int i = 0; i < count; i += VL) {
        const vf levels = v_set1(DOT_QUERY), most = v_load(to->step + i);
        const vf inverse = v_number(v_div(levels, most));
        v_store(to->inverse + i,
                v_unless_below(inverse, v_sub(v_set1(3.0e38f), inverse), v_zero()));
        v_store(to->step + i, v_div(most, levels));
    }
}

/* Return VL elements of a query row from d on, as whole numbers. */
INLINE vf dot_query_at(const kvb_group *group, int q_row, int64_t d, float inverse)
{
    return v_round(v_number(v_mul(dot_floats(group, q_row, d), v_set1(inverse))));
}

/* Load four bytes into all lanes. */
INLINE vi dot_four(const void *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return v_set_int(four);
}

/* Add up the `chains` of a sum, which are `stride` vectors apart. */
INLINE vi dot_chained(const vi *sums, const int chains, const int stride)
{
    vi sum = sums[0];
    UNROLL_FOR (int c = 1; c < chains; c++)
        sum = v_int_add(sum, sums[c * stride]);
    return sum;
}

/* Lane i of the result is `first` plus the sum of a[i], rounded once if a tier adds whole numbers.
 * On other tiers `first` is 0. */
INLINE vf dot_sums(const vi *a, int32_t first)
{
#ifdef V_INT_SUMS
    return v_floats(v_int_add(v_int_sums(a), v_set_int(first)));
#else
    vf sums[VL];
    (void)first;
    UNROLL_FOR (int i = 0; i < VL; i++)
        sums[i] = v_floats(a[i]);
    return v_sums(sums);
#endif
}

/* Repeat the steps of query rows for `tokens` tokens each, in the order of the sums. */
INLINE void dot_steps_of(const float *step, float *each, const int q_rows, const int tokens)
{
    for (int h = 0; h < q_rows; h++)
        for (int t = 0; t < tokens; t++)
            each[h * tokens + t] = step[h];
}

/* Write the sums of `q_rows` query rows and QK_ACC / q_rows tokens, VL in a vector, as scores. */
INLINE void dot_scores(const vf *sums, const float *each, float *scores, const int q_rows,
                       const int tokens)
{
    float all[QK_ACC];
    UNROLL_FOR (int i = 0; i < q_rows * tokens; i += VL)
        v_store(all + i, v_mul(sums[i / VL], v_load(each + i)));
    KEEP_IN_MEMORY(all);
    UNROLL_FOR (int h = 0; h < q_rows; h++)
        memcpy(scores + h * QUERY_SCORES, all + h * tokens, (size_t)tokens * sizeof *all);
}

/* A tile's weights of each query row as bytes. For packed rows: weights for the packs in one vector
 * of codes; each pack has its own weights. */
typedef struct dot_weights {
    int8_t bytes[DOT_PACKS][Q_ROWS][TILE];
    /* the value of byte 1; the start value of sums */
    float step[DOT_PACKS][Q_ROWS], first[DOT_PACKS][Q_ROWS];
} dot_weights;

enum { SLICE_SUMS = PV_ACC / 4 }; /* most query rows in a slice of VB elements */

/* In blocks of LANES tokens: bytes of a pack's scales; a square is 16 code bytes of each, four
 * lines. */
enum { PACK_SCALES = LANES * 2, SIDE = 16, SQUARE = SIDE * LANES };
/* Most sums over cells of packs, each a vector of whole numbers and one of floats; the query rows
 * of a block with so many sums; most vectors of a cell. */
enum {
    PACK_SUMS = QK_ACC / 2,
    PACK_ROWS = PACK_SUMS / (LANES / VL),
    PACK_VECTORS = 4 * LANES / VL
};
/* Query rows whose weights for four packs are made at a time. */
enum { WEIGHED_ROWS = PV_ACC / 4 };

#include "isa/blocks/quad_weights.tmpl.c"
#include "isa/dot/rows.tmpl.c"
#include "isa/dot/packs.tmpl.c"
#ifdef V_DOT_FLOATS
#include "isa/floats/floats.tmpl.c"
#endif
