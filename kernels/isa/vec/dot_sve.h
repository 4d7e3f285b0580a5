/* Whole numbers: the operations that dot.tmpl.c is written with. Every SVE has these dot products. */
#define DOT_BYTES      /* dot8 and dot16 by products of bytes, */
#define DOT_SPLIT
#define DOT_K_BIAS 0   /* which both have a sign or both have none, as weights do */
#define DOT_V_BIAS 128

typedef svuint8_t vb FIXED;
typedef svuint16_t vh FIXED;
static inline vi v_none(void) { return svdup_n_s32(0); }
static inline vi v_set_int(int32_t x) { return svdup_n_s32(x); }
/* Its value is another one from here on, for all that the compiler knows. */
static inline void v_hide(vi *a)
{
    svint32_t own = *a; /* Clang 14 has no register for a vector of fixed length */
    __asm__ volatile("" : "+w"(own));
    *a = own;
}
static inline vi v_int_add(vi a, vi b) { return svadd_s32_x(v_all(), a, b); }
static inline vf v_floats(vi a) { return svcvt_f32_s32_x(v_all(), a); }
/* VB codes, or bytes, as they are */
static inline vi v_codes(const uint8_t *p) { return svreinterpret_s32_u8(svld1_u8(svptrue_b8(), p)); }
static inline vi v_load_bytes(const int8_t *p) { return svreinterpret_s32_s8(svld1_s8(svptrue_b8(), p)); }
/* Each lane of *acc grows by four products of bytes. */
static inline void v_dot_query_into(vi *acc, vi codes, vi query)
{
    *acc = svdot_s32(*acc, svreinterpret_s8_s32(codes), svreinterpret_s8_s32(query));
}
static inline void v_dot_weights_into(vi *acc, vi weights, vi codes)
{
    vu sum = svdot_u32(svreinterpret_u32_s32(*acc), svreinterpret_u8_s32(weights), svreinterpret_u8_s32(codes));
    *acc = svreinterpret_s32_u32(sum);
}
/* VB codes with 128 added, of four rows from byte `at` on, the four of an element side by side. */
static inline vb v_biased(const uint8_t *p) { return sveor_n_u8_x(svptrue_b8(), svld1_u8(svptrue_b8(), p), 0x80); }
static inline void v_quads(const uint8_t *const *rows, int at, vi *to)
{
    vb a = v_biased(rows[0] + at), b = v_biased(rows[1] + at), c = v_biased(rows[2] + at), d = v_biased(rows[3] + at);
    vh ab = svreinterpret_u16_u8(svzip1_u8(a, b)), cd = svreinterpret_u16_u8(svzip1_u8(c, d));
    to[0] = svreinterpret_s32_u16(svzip1_u16(ab, cd));
    to[1] = svreinterpret_s32_u16(svzip2_u16(ab, cd));
    ab = svreinterpret_u16_u8(svzip2_u8(a, b)), cd = svreinterpret_u16_u8(svzip2_u8(c, d));
    to[2] = svreinterpret_s32_u16(svzip1_u16(ab, cd));
    to[3] = svreinterpret_s32_u16(svzip2_u16(ab, cd));
}
static inline void v_unquad(vf *a) { (void)a; } /* they are in order */
