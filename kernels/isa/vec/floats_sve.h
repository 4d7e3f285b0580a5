/* Products of bf16, two in a lane: the operations that the templates of isa/floats/ use.
 * Instructions are encoded as numbers, as in dot_neon.h. They need SVE's BF16. */
#define V_DOT_FLOATS

__asm__(".irp n, "
        "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
        "\t.equ .Lkvb_z\\n, \\n\n\t.equ .Lkvb_p\\n, \\n\n\t.endr");
/* Add two products to each lane of *acc. Subnormals count as zero. */
static inline void v_dot16_into(vf *acc, vi a, vi b)
{
    svfloat32_t own = *acc; /* Clang cannot put a vector of fixed length in a register */
    const svint32_t x = a, y = b;
    /* bfdot */
    __asm__(".inst 0x64608000 | .Lkvb_%2 << 16 | .Lkvb_%1 << 5 | .Lkvb_%0"
            : "+w"(own)
            : "w"(x), "w"(y));
    *acc = own;
}
/* Store VL floats, rounded to bf16. */
static inline void v_store_rounded(uint16_t *p, vf a)
{
    const svfloat32_t own = a;
    svuint32_t words;
    /* bfcvt */
    __asm__(".inst 0x658aa000 | .Lkvb_%2 << 10 | .Lkvb_%1 << 5 | .Lkvb_%0"
            : "=w"(words)
            : "w"(own), "Upl"(v_all()));
    svst1h_u32(v_all(), p, words);
}
static inline void v_store_bytes(uint8_t *p, vi a)
{
    svst1_u8(svptrue_b8(), p, svreinterpret_u8_s32(a));
}

/* Interleave the bytes, or words, of the lower halves of a and b, or of the upper halves. */
static inline vi v_zip_bytes(vi a, vi b, const bool upper)
{
    const vb x = svreinterpret_u8_s32(a), y = svreinterpret_u8_s32(b);
    return svreinterpret_s32_u8(upper ? svzip2_u8(x, y) : svzip1_u8(x, y));
}
static inline vi v_zip_words(vi a, vi b, const bool upper)
{
    const vh x = svreinterpret_u16_s32(a), y = svreinterpret_u16_s32(b);
    return svreinterpret_s32_u16(upper ? svzip2_u16(x, y) : svzip1_u16(x, y));
}
static inline void v_as_zipped(vi *two) { (void)two; } /* words are in order */
enum { ZIPPED_EIGHT = 8 };
static inline int64_t v_zipped_at(int64_t d) { return d; }
static inline void v_unzip(vf *two) { (void)two; }
/* Return the sums of pairs of neighbours. */
static inline vf v_neighbours(vf a, vf b)
{
    return svadd_f32_x(v_all(), svuzp1_f32(a, b), svuzp2_f32(a, b));
}
/* Repeat eight bytes in all of a vector. */
static inline vi v_set_eight(const void *p)
{
    int64_t eight;
    memcpy(&eight, p, sizeof eight);
    return svreinterpret_s32_s64(svdup_n_s64(eight));
}
/* v_keep_bytes: keep the first n bytes, n in [0, VB), and zero the rest; then the bitwise AND. */
static inline vi v_keep_bytes(vi a, int n)
{
    const vb bytes = svreinterpret_u8_s32(a);
    return svreinterpret_s32_u8(svsel_u8(svwhilelt_b8_s32(0, n), bytes, svdup_n_u8(0)));
}
static inline vi v_int_and(vi a, vi b) { return svand_s32_x(v_all(), a, b); }

/* A table of the bf16 of each code without its sign: lower bytes, upper bytes. */
enum { TABLES = 128 * 8 / SVE_BITS }; /* vectors of a table */
typedef struct vcodes {
    vb lower[TABLES], upper[TABLES];
} vcodes;
static inline vcodes v_load_codes(const uint8_t (*bytes)[128])
{
    vcodes codes;
    for (int i = 0; i < TABLES; i++) {
        codes.lower[i] = svld1_u8(svptrue_b8(), bytes[0] + i * SVE_BITS / 8);
        codes.upper[i] = svld1_u8(svptrue_b8(), bytes[1] + i * SVE_BITS / 8);
    }
    return codes;
}
/* Look up each byte without its highest bit. A vector that does not have its entry gives 0. */
static inline vb v_entries(const vb *of, vi x)
{
    const vb index = svand_n_u8_x(svptrue_b8(), svreinterpret_u8_s32(x), 0x7f);
    vb found = svtbl_u8(of[0], index);
    for (int i = 1; i < TABLES; i++) {
        const vb own = svsub_n_u8_x(svptrue_b8(), index, (uint8_t)(i * SVE_BITS / 8));
        found = svorr_u8_x(svptrue_b8(), found, svtbl_u8(of[i], own));
    }
    return found;
}
static inline vi v_lower_bytes(const vcodes *codes, vi x)
{
    return svreinterpret_s32_u8(v_entries(codes->lower, x));
}
static inline vi v_upper_bytes(const vcodes *codes, vi x)
{
    const vb sign = svand_n_u8_x(svptrue_b8(), svreinterpret_u8_s32(x), 0x80);
    const vb found = v_entries(codes->upper, x);
    return svreinterpret_s32_u8(svorr_u8_x(svptrue_b8(), found, sign));
}
