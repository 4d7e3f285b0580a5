/* What dot takes beyond avx512.h, which includes it. */

/* ---- whole numbers --------------------------------------------------------------------------- */

/* Not inline, where the templates unroll: a compiler takes minutes over so many copies. */
#define CALLED static __attribute__((noinline))

static inline zmm _mm512_set1_epi16(int x) { SHORTS(r.w[i] = (int16_t)x); }
static inline zmm _mm512_add_epi16(zmm a, zmm b) { SHORTS(r.w[i] = (int16_t)(a.w[i] + b.w[i])); }
static inline zmm _mm512_slli_epi16(zmm a, unsigned n)
{
    SHORTS(r.w[i] = (int16_t)((uint16_t)a.w[i] << n));
}
CALLED zmm _mm512_ternarylogic_epi32(zmm a, zmm b, zmm c, int table)
{
    zmm r = _mm512_setzero_ps();
    for (int i = 0; i < 16; i++)
        for (int bit = 0; bit < 32; bit++) {
            unsigned row =
                (a.u[i] >> bit & 1) << 2 | (b.u[i] >> bit & 1) << 1 | (c.u[i] >> bit & 1);
            r.u[i] |= ((unsigned)table >> row & 1) << bit;
        }
    return r;
}
static inline __m256i _mm512_extracti64x4_epi64(zmm a, int half)
{
    return _mm256_castps_si256(_mm512_extractf32x8_ps(a, half));
}
static inline zmm _mm512_inserti64x4(zmm a, __m256i b, int half)
{
    _mm256_storeu_ps(a.f + 8 * half, _mm256_castsi256_ps(b));
    return a;
}
static inline zmm _mm512_srlv_epi64(zmm a, zmm n)
{
    PAIRS(r.q[i] = n.q[i] < 64 ? a.q[i] >> n.q[i] : 0);
}
static inline zmm _mm512_xor_si512(zmm a, zmm b) { EACH(r.u[i] = a.u[i] ^ b.u[i]); }
CALLED zmm _mm512_cvtepi8_epi16(__m256i a)
{
    int8_t bytes[32];
    memcpy(bytes, &a, sizeof bytes);
    SHORTS(r.w[i] = bytes[i]);
}
/* Half a 128-bit lane of a and of b, which take turns: half 0 or 1, in elements of `bytes`. */
CALLED zmm lanes_unpack(zmm a, zmm b, int half, int bytes)
{
    zmm r;
    for (int i = 0; i < 64; i++) {
        int element = i % 16 / bytes,
            from = i / 16 * 16 + 8 * half + element / 2 * bytes + i % bytes;
        r.b[i] = (element & 1 ? b : a).b[from];
    }
    return r;
}
CALLED void lanes_dpbusd(zmm *acc, zmm a, zmm b)
{
    for (int i = 0; i < 64; i++)
        acc->u[i / 4] += (uint32_t)(a.b[i] * (int8_t)b.b[i]);
}

CALLED zmm _mm512_maskz_mov_epi8(uint64_t k, zmm a)
{
    zmm r;
    for (int i = 0; i < 64; i++)
        r.b[i] = ON(k) ? a.b[i] : 0;
    return r;
}
CALLED zmm _mm512_permutex2var_ps(zmm a, zmm index, zmm b)
{
    EACH(r.f[i] = (index.u[i] & 16 ? b : a).f[index.u[i] & 15]);
}
/* vpermi2b: a byte of two vectors for each one of `index`. */
CALLED zmm lanes_permi2b(zmm index, zmm a, zmm b)
{
    zmm r;
    for (int i = 0; i < 64; i++)
        r.b[i] = (index.b[i] & 64 ? b : a).b[index.b[i] & 63];
    return r;
}

/* ---- pairs of bf16: subnormals are zero, read or written ------------------------------------- */

static inline float normal(float x) { return fabsf(x) < FLT_MIN ? copysignf(0.0f, x) : x; }
static inline float of_bf16(uint16_t word)
{
    uint32_t bits = (uint32_t)word << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return normal(x);
}
/* vdpbf16ps: the upper word of each lane is added first. */
CALLED void lanes_dpbf16(zmm *acc, zmm a, zmm b)
{
    for (int i = 0; i < 32; i++) {
        float *sum = acc->f + i / 2;
        *sum = normal(fmaf(of_bf16(a.h[i ^ 1]), of_bf16(b.h[i ^ 1]), normal(*sum)));
    }
}
/* vcvtneps2bf16, to nearest even */
CALLED void lanes_rounded(uint16_t *to, zmm a)
{
    for (int i = 0; i < 16; i++) {
        uint32_t near = a.u[i] + 0x7fff + (a.u[i] >> 16 & 1);
        if (a.f[i] != a.f[i])
            near = a.u[i] | 0x00400000;
        to[i] = (uint16_t)((fabsf(a.f[i]) < FLT_MIN ? a.u[i] & 0x80000000 : near) >> 16);
    }
}
