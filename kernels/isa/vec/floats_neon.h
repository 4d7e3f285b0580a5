/* Products of bf16, two in a lane: the operations that the templates of isa/floats/ use.
 * Instructions are encoded as numbers, as in dot_neon.h. They need BF16. */
#define V_DOT_FLOATS

/* Add two products to each lane of *acc. Subnormals count as zero. */
static inline void v_dot16_into(vf *acc, vi a, vi b)
{
    /* bfdot, four lanes */
    __asm__(".inst 0x6e40fc00 | .Lkvb_%2 << 16 | .Lkvb_%1 << 5 | .Lkvb_%0"
            : "+w"(*acc)
            : "w"(a), "w"(b));
}
/* Store VL floats, rounded to bf16. */
static inline void v_store_rounded(uint16_t *p, vf a)
{
    uint16x4_t words;
    /* bfcvtn */
    __asm__(".inst 0x0ea16800 | .Lkvb_%1 << 5 | .Lkvb_%0" : "=w"(words) : "w"(a));
    vst1_u16(p, words);
}
static inline void v_store_bytes(uint8_t *p, vi a) { vst1q_u8(p, vreinterpretq_u8_s32(a)); }

/* Interleave the bytes, or words, of the lower halves of a and b, or of the upper halves. */
static inline vi v_zip_bytes(vi a, vi b, const bool upper)
{
    uint8x16_t x = vreinterpretq_u8_s32(a), y = vreinterpretq_u8_s32(b);
    return vreinterpretq_s32_u8(upper ? vzip2q_u8(x, y) : vzip1q_u8(x, y));
}
static inline vi v_zip_words(vi a, vi b, const bool upper)
{
    uint16x8_t x = vreinterpretq_u16_s32(a), y = vreinterpretq_u16_s32(b);
    return vreinterpretq_s32_u16(upper ? vzip2q_u16(x, y) : vzip1q_u16(x, y));
}
static inline void v_as_zipped(vi *two) { (void)two; } /* words are in order */
enum { ZIPPED_EIGHT = 8 };
static inline int64_t v_zipped_at(int64_t d) { return d; }
static inline void v_unzip(vf *two) { (void)two; }
/* Return the sums of pairs of neighbours. */
static inline vf v_neighbours(vf a, vf b) { return vpaddq_f32(a, b); }
/* Repeat eight bytes in all of a vector. */
static inline vi v_set_eight(const void *p)
{
    return vreinterpretq_s32_u8(vcombine_u8(vld1_u8(p), vld1_u8(p)));
}
/* v_keep_bytes: keep the first n bytes, n in [0, VB), and zero the rest; then the bitwise AND. */
static inline vi v_keep_bytes(vi a, int n)
{
    const uint8x16_t at = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return vandq_s32(a, vreinterpretq_s32_u8(vcltq_u8(at, vdupq_n_u8((uint8_t)n))));
}
static inline vi v_int_and(vi a, vi b) { return vandq_s32(a, b); }

/* A table of the bf16 of each code without its sign: lower bytes, upper bytes. */
typedef struct vcodes {
    uint8x16x4_t lower[2], upper[2];
} vcodes;
static inline void v_load_entries(uint8x16x4_t *to, const uint8_t *bytes)
{
    for (int i = 0; i < 8; i++)
        to[i / 4].val[i % 4] = vld1q_u8(bytes + 16 * i);
}
static inline vcodes v_load_codes(const uint8_t (*bytes)[128])
{
    vcodes codes;
    v_load_entries(codes.lower, bytes[0]);
    v_load_entries(codes.upper, bytes[1]);
    return codes;
}
/* Look up each byte without its highest bit. */
static inline uint8x16_t v_entries(const uint8x16x4_t *of, vi x)
{
    uint8x16_t index = vandq_u8(vreinterpretq_u8_s32(x), vdupq_n_u8(0x7f));
    uint8x16_t found = vqtbl4q_u8(of[0], index); /* 0 from 64 on */
    return vqtbx4q_u8(found, of[1], veorq_u8(index, vdupq_n_u8(64)));
}
static inline vi v_lower_bytes(const vcodes *codes, vi x)
{
    return vreinterpretq_s32_u8(v_entries(codes->lower, x));
}
static inline vi v_upper_bytes(const vcodes *codes, vi x)
{
    uint8x16_t found = v_entries(codes->upper, x), sign = vdupq_n_u8(0x80);
    return vreinterpretq_s32_u8(vbslq_u8(sign, vreinterpretq_u8_s32(x), found));
}
