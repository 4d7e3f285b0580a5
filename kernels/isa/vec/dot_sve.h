/* Whole numbers: the operations that dot/dot.tmpl.c uses. Every SVE has these dot products.
 */
#define DOT_BIAS 0 /* both bytes are signed */

typedef svuint8_t vb FIXED;
typedef svuint16_t vh FIXED;
static inline vi v_none(void) { return svdup_n_s32(0); }
static inline vi v_set_int(int32_t x) { return svdup_n_s32(x); }
/* Make the compiler assume that the value changes here. */
static inline void v_hide(vi *a)
{
    svint32_t own = *a; /* Clang 14 cannot put a vector of fixed length in a register */
    __asm__ volatile("" : "+w"(own));
    *a = own;
}
static inline vi v_int_add(vi a, vi b) { return svadd_s32_x(v_all(), a, b); }
static inline vi v_int_sub(vi a, vi b) { return svsub_s32_x(v_all(), a, b); }
static inline vf v_floats(vi a) { return svcvt_f32_s32_x(v_all(), a); }
/* VB codes, unchanged */
#define v_biased(codes) (codes)
static inline vi v_codes(const uint8_t *p)
{
    return svreinterpret_s32_u8(svld1_u8(svptrue_b8(), p));
}
static inline vi v_load_bytes(const int8_t *p)
{
    return svreinterpret_s32_s8(svld1_s8(svptrue_b8(), p));
}
/* Add four products of bytes to each lane of *acc. */
static inline void v_dot_weights_into(vi *acc, vi weights, vi codes)
{
    *acc = svdot_s32(*acc, svreinterpret_s8_s32(weights), svreinterpret_s8_s32(codes));
}
#define v_dot_codes_into(acc, codes, other, plain) v_dot_weights_into(acc, codes, other)
static inline vi v_load_ints(const int32_t *p) { return svld1_s32(v_all(), p); }
static inline void v_store_ints(int32_t *p, vi a) { svst1_s32(v_all(), p, a); }
/* Load the codes of one or two packs, as many as fit in a vector, bytes or nibbles; and the scale
 * of each, in all lanes of its pack. */
static inline void v_pack_bytes(const uint8_t *pack, const uint8_t *then, vi *to)
{
    const svbool_t first = svptrue_pat_b8(SV_VL32);
    vb codes = svld1_u8(first, pack + 2);
    if (SVE_BITS > 256)
        codes = svorr_u8_x(svptrue_b8(), codes,
                           svld1_u8(svnot_b_z(svptrue_b8(), first), then + 2 - 32));
    to[0] = svreinterpret_s32_u8(codes);
}
static inline void v_pack_nibbles(const uint8_t *pack, const uint8_t *then, vi *to)
{
    const svbool_t all = svptrue_b8();
    vb both =
        svsel_u8(svptrue_pat_b8(SV_VL32), svld1rq_u8(all, pack + 2), svld1rq_u8(all, then + 2));
    /* sixteen bytes of 0, sixteen of 4, and so on */
    vb shifts = svlsr_n_u8_x(all, svand_n_u8_x(all, svindex_u8(0, 1), 16), 2);
    to[0] = svreinterpret_s32_u8(svand_n_u8_x(all, svlsr_u8_x(all, both, shifts), 15));
}
/* Unpack the nibbles of VB bytes: lower ones to to[0], upper ones to to[1]. */
static inline void v_nibbles(const uint8_t *p, vi *to)
{
    const svbool_t all = svptrue_b8();
    const vb both = svld1_u8(all, p);
    to[0] = svreinterpret_s32_u8(svand_n_u8_x(all, both, 15));
    to[1] = svreinterpret_s32_u8(svlsr_n_u8_x(all, both, 4));
}
static inline vf v_pack_scales(const uint8_t *pack, const uint8_t *then)
{
    return svsel_f32(svptrue_pat_b32(SV_VL8), v_half(pack), v_half(then));
}
/* Interleave four rows: the four codes of an element side by side. */
static inline void v_quads(const vi *rows, vi *to)
{
    vb a = svreinterpret_u8_s32(rows[0]), b = svreinterpret_u8_s32(rows[1]);
    vb c = svreinterpret_u8_s32(rows[2]), d = svreinterpret_u8_s32(rows[3]);
    vh ab = svreinterpret_u16_u8(svzip1_u8(a, b)), cd = svreinterpret_u16_u8(svzip1_u8(c, d));
    to[0] = svreinterpret_s32_u16(svzip1_u16(ab, cd));
    to[1] = svreinterpret_s32_u16(svzip2_u16(ab, cd));
    ab = svreinterpret_u16_u8(svzip2_u8(a, b)), cd = svreinterpret_u16_u8(svzip2_u8(c, d));
    to[2] = svreinterpret_s32_u16(svzip1_u16(ab, cd));
    to[3] = svreinterpret_s32_u16(svzip2_u16(ab, cd));
}
static inline void v_unquad(vf *a) { (void)a; } /* they are in order */
/* Round lanes to bytes: four of a[0], four of a[1], of a[2] and a[3], and so on. A NaN counts as 0.
 */
static inline svint16_t v_whole(vf a, vf b)
{
    const svbool_t all = v_all();
    return svuzp1_s16(svreinterpret_s16_s32(svcvt_s32_f32_x(all, v_round(a))),
                      svreinterpret_s16_s32(svcvt_s32_f32_x(all, v_round(b))));
}
static inline void v_store_quads(int8_t *to, const vf *a)
{
    /* groups of four bytes: of a[0], of a[1], of a[2] and a[3] */
    const svint8_t low = svreinterpret_s8_s16(v_whole(a[0], a[1])),
                   high = svreinterpret_s8_s16(v_whole(a[2], a[3]));
    const svint32_t own = svreinterpret_s32_s8(svuzp1_s8(low, high));
    const svbool_t all = v_all();
    const svuint32_t lane = svindex_u32(0, 1);
    const svuint32_t from =
        svmla_n_u32_x(all, svlsr_n_u32_x(all, lane, 2), svand_n_u32_x(all, lane, 3), VL / 4);
    svst1_s32(all, (int32_t *)(void *)to, svtbl_s32(own, from));
}
/* Return the larger value of each lane; `most` if a is a NaN. */
static inline vf v_larger(vf a, vf most) { return svmaxnm_f32_x(v_all(), a, most); }
/* Four weights in all lanes. With two packs in a vector, to[0] and to[1] of v_quads have the first
 * pack, to[2] and to[3] the second. */
#define v_weights(first, second, j) dot_four(SVE_BITS > 256 && (j) >= 2 ? (second) : (first))
