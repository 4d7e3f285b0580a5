/* dot over i8 rows and packed ones: what all ways of multiplying have in common. The rules stand in
 * tier/dot.h. Elements of q behind dim are zero as whole numbers, and those of rows are numbers
 * whatever they hold, so no row is cut to its dim. */

enum { VB = 4 * VL };                       /* bytes of a vector */
enum { DOT_PACKS = VB > 32 ? VB / 32 : 1 }; /* packs of 32 codes in a vector */
enum { DOT_VECS = VB < 32 ? 32 / VB : 1 };  /* vectors of codes in a pack */

/* Steps to one, or 0 where that is not finite: then all of it counts as zero. */
INLINE float dot_steps(float levels, float most)
{
    float inverse = levels / most;
    return inverse <= 3.0e38f ? inverse : 0.0f;
}

/* Of pieces of query rows, [slots][pieces]: what a whole number is worth, NaN where an element is
 * not finite; and what elements are multiplied by, 0 where that is not finite. */
typedef struct dot_pieces {
    float step[Q_ROWS * DIM_MAX / 32];
    float inverse[Q_ROWS * DIM_MAX / 32];
} dot_pieces;

/* VL elements of a query row from d on; zero behind those that there are. */
INLINE vf dot_floats(const kvb_group *group, int q_row, int64_t d)
{
    return d < group->k_pad ? v_load(group->q + q_row * group->k_pad + d) : v_zero();
}

/* Pieces of `each` elements; `dim` is a multiple of it. */
INLINE void dot_query_steps(const kvb_group *group, int64_t dim, int64_t each, dot_pieces *to)
{
    int count = 0;
    for (int h = 0; h < group->slots; h++)
        for (int64_t from = 0; from < dim; from += each) {
            vf most = v_zero(), check = v_zero();
            for (int64_t d = from; d < from + each; d += VL) {
                vf x = dot_floats(group, h, d);
                most = v_max(most, v_abs(x));
                check = v_fma(x, v_zero(), check); /* NaN where one is not finite */
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

/* VL elements of a query row from d on, as whole numbers. */
INLINE vf dot_query_at(const kvb_group *group, int q_row, int64_t d, float inverse)
{
    return v_round(v_number(v_mul(dot_floats(group, q_row, d), v_set1(inverse))));
}

/* Four bytes, in all lanes. */
INLINE vi dot_four(const void *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return v_set_int(four);
}

/* A sum out of the `chains` that it was made in, `stride` vectors from each other. */
INLINE vi dot_chained(const vi *sums, const int chains, const int stride)
{
    vi sum = sums[0];
    UNROLL_FOR (int c = 1; c < chains; c++)
        sum = v_int_add(sum, sums[c * stride]);
    return sum;
}

/* Lane i is `first` and the sum of a[i], rounded once where a tier adds up whole numbers. On others
 * `first` is 0. */
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

/* The steps of all query rows for as many tokens of each, as their sums lie. */
INLINE void dot_steps_of(const float *step, float *each, const int q_rows, const int tokens)
{
    for (int h = 0; h < q_rows; h++)
        for (int t = 0; t < tokens; t++)
            each[h * tokens + t] = step[h];
}

/* Sums of `q_rows` query rows and QK_ACC / q_rows tokens, VL to a vector, as scores. */
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

/* A tile's weights of each query row as bytes; of packs those that one vector of codes meets, each
 * with weights of its own. */
typedef struct dot_weights {
    int8_t bytes[DOT_PACKS][Q_ROWS][TILE];
    /* what one is worth; what their sums begin with */
    float step[DOT_PACKS][Q_ROWS], first[DOT_PACKS][Q_ROWS];
} dot_weights;

enum { SLICE_SUMS = PV_ACC / 4 }; /* most query rows of a slice of VB elements */

/* Of blocks of LANES tokens: what one has of a pack's scales; 16 code bytes, four lines. */
enum { PACK_SCALES = LANES * 2, SIDE = 16, SQUARE = SIDE * LANES };
/* Sums of cells of packs, of which each is a vector of whole numbers beside one of floats; the
 * query rows of a block that have so many; and vectors of a cell at most. */
enum {
    PACK_SUMS = QK_ACC / 2,
    PACK_ROWS = PACK_SUMS / (LANES / VL),
    PACK_VECTORS = 4 * LANES / VL
};
/* Query rows whose weights of four packs are made at a time. */
enum { WEIGHED_ROWS = PV_ACC / 4 };

#include "isa/blocks/quad_weights.tmpl.c"
#include "isa/dot/rows.tmpl.c"
#include "isa/dot/packs.tmpl.c"
#ifdef V_DOT_FLOATS
#include "isa/floats/floats.tmpl.c"
#endif
