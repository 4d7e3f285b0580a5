/* Whole numbers: the operations that dot/dot.tmpl.c uses. */
#define DOT_BIAS 0 /* both bytes are signed */

typedef int32x4_t vi;
static inline vi v_none(void) { return vdupq_n_s32(0); }
static inline vi v_set_int(int32_t x) { return vdupq_n_s32(x); }
/* Make the compiler assume that the value changes here. */
static inline void v_hide(vi *a) { __asm__ volatile("" : "+w"(*a)); }
static inline vi v_int_add(vi a, vi b) { return vaddq_s32(a, b); }
static inline vi v_int_sub(vi a, vi b) { return vsubq_s32(a, b); }
static inline vf v_floats(vi a) { return vcvtq_f32_s32(a); }
/* VB codes, unchanged */
#define v_biased(codes) (codes)
static inline vi v_codes(const uint8_t *p) { return vreinterpretq_s32_u8(vld1q_u8(p)); }
static inline vi v_load_bytes(const int8_t *p) { return vreinterpretq_s32_s8(vld1q_s8(p)); }
/* Register numbers for operands that are printed as v7, to encode instructions that the compiler
 * may not know. So this tier compiles without them, and uses them in functions that run only if the
 * CPU has them. gcc and Clang have no common assembly directive to enable such instructions. */
__asm__(".irp n, "
        "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
        "\t.equ .Lkvb_v\\n, \\n\n\t.endr");
/* Add four products of bytes to each lane of *acc. */
#ifdef __ARM_FEATURE_DOTPROD
static inline void v_dot_weights_into(vi *acc, vi weights, vi codes)
{
    *acc = vdotq_s32(*acc, vreinterpretq_s8_s32(weights), vreinterpretq_s8_s32(codes));
}
#else
static inline void v_dot_weights_into(vi *acc, vi weights, vi codes)
{
    /* sdot, four lanes */
    __asm__(".inst 0x4e809400 | .Lkvb_%2 << 16 | .Lkvb_%1 << 5 | .Lkvb_%0"
            : "+w"(*acc)
            : "w"(weights), "w"(codes));
}
#endif
#define v_dot_codes_into(acc, codes, other, plain) v_dot_weights_into(acc, codes, other)
static inline vi v_load_ints(const int32_t *p) { return vld1q_s32(p); }
static inline void v_store_ints(int32_t *p, vi a) { vst1q_s32(p, a); }
/* Load the codes of a pack, bytes or nibbles, into two vectors; and its scale. A vector has no room
 * for a second pack. */
static inline void v_pack_bytes(const uint8_t *pack, const uint8_t *then, vi *to)
{
    (void)then;
    to[0] = v_codes(pack + 2);
    to[1] = v_codes(pack + 18);
}
static inline void v_pack_nibbles(const uint8_t *pack, const uint8_t *then, vi *to)
{
    (void)then;
    uint8x16_t both = vld1q_u8(pack + 2);
    to[0] = vreinterpretq_s32_u8(vandq_u8(both, vdupq_n_u8(15)));
    to[1] = vreinterpretq_s32_u8(vshrq_n_u8(both, 4));
}
/* Unpack the nibbles of VB bytes: lower ones to to[0], upper ones to to[1]. */
static inline void v_nibbles(const uint8_t *p, vi *to)
{
    const uint8x16_t both = vld1q_u8(p);
    to[0] = vreinterpretq_s32_u8(vandq_u8(both, vdupq_n_u8(15)));
    to[1] = vreinterpretq_s32_u8(vshrq_n_u8(both, 4));
}
static inline vf v_pack_scales(const uint8_t *pack, const uint8_t *then)
{
    return (void)then, v_half(pack);
}
/* Interleave four rows: the four codes of an element side by side. */
static inline void v_quads(const vi *rows, vi *to)
{
    uint8x16_t a = vreinterpretq_u8_s32(rows[0]), b = vreinterpretq_u8_s32(rows[1]);
    uint8x16_t c = vreinterpretq_u8_s32(rows[2]), d = vreinterpretq_u8_s32(rows[3]);
    uint16x8_t ab = vreinterpretq_u16_u8(vzip1q_u8(a, b)),
               cd = vreinterpretq_u16_u8(vzip1q_u8(c, d));
    to[0] = vreinterpretq_s32_u16(vzip1q_u16(ab, cd));
    to[1] = vreinterpretq_s32_u16(vzip2q_u16(ab, cd));
    ab = vreinterpretq_u16_u8(vzip2q_u8(a, b)), cd = vreinterpretq_u16_u8(vzip2q_u8(c, d));
    to[2] = vreinterpretq_s32_u16(vzip1q_u16(ab, cd));
    to[3] = vreinterpretq_s32_u16(vzip2q_u16(ab, cd));
}
static inline void v_unquad(vf *a) { (void)a; } /* they are in order */
/* Round lanes to bytes: those of a[0], then of a[1], a[2] and a[3]. A NaN counts as 0. */
static inline int16x4_t v_whole(vf a) { return vmovn_s32(vcvtnq_s32_f32(a)); }
static inline void v_store_quads(int8_t *to, const vf *a)
{
    vst1_s8(to, vmovn_s16(vcombine_s16(v_whole(a[0]), v_whole(a[1]))));
    vst1_s8(to + 8, vmovn_s16(vcombine_s16(v_whole(a[2]), v_whole(a[3]))));
}
/* Return the larger value of each lane; `most` if a is a NaN. */
static inline vf v_larger(vf a, vf most) { return vmaxnmq_f32(a, most); }
/* Four weights in all lanes; a vector has no room for a second pack. */
#define v_weights(first, second, j) dot_four(first)
