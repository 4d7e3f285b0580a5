/* The emulation of products of bytes and of bf16; avx512.h has the rest. */
#include <float.h>

/* Interleave half 0 or 1 of each 128-bit lane of a and b, in elements of `bytes` bytes. */
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

static inline zmm _mm512_maskz_loadu_epi8(uint64_t k, const uint8_t *p)
{
    zmm r;
    for (int i = 0; i < 64; i++)
        r.b[i] = ON(k) ? p[i] : 0;
    return r;
}
static inline zmm _mm512_maskz_cvtps_epi32(uint16_t k, zmm a)
{
    return _mm512_maskz_mov_ps(k, _mm512_cvtps_epi32(a));
}
/* Pack 128 bits at a time: lanes of a, then of b, saturated to half their width. */
static inline int32_t lanes_within(int32_t x, int32_t most)
{
    return x > most ? most : x < -most - 1 ? -most - 1 : x;
}
static inline zmm _mm512_packs_epi32(zmm a, zmm b)
{
    SHORTS(r.w[i] = (int16_t)lanes_within((i / 4 % 2 ? b : a).i[i / 8 * 4 + i % 4], INT16_MAX));
}
static inline zmm _mm512_packs_epi16(zmm a, zmm b)
{
    LANES_OF(64, r.b[i] = (uint8_t)lanes_within((i / 8 % 2 ? b : a).w[i / 16 * 8 + i % 8], 127));
}
static inline zmm _mm512_inserti32x4(zmm a, __m128i b, int part)
{
    memcpy(a.b + 16 * part, &b, sizeof b);
    return a;
}
#define _mm512_shuffle_epi32(a, from) _mm512_shuffle_ps(a, a, from)
#define _mm512_shuffle_i32x4 _mm512_shuffle_f32x4
#define _mm512_unpackhi_epi32 _mm512_unpackhi_ps
#define _mm512_unpackhi_epi64 _mm512_unpackhi_pd
#define _mm512_unpacklo_epi32 _mm512_unpacklo_ps
#define _mm512_unpacklo_epi64 _mm512_unpacklo_pd
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
CALLED zmm _mm512_permutexvar_epi16(zmm index, zmm a) { SHORTS(r.h[i] = a.h[index.h[i] & 31]); }
CALLED zmm _mm512_permutex2var_epi16(zmm a, zmm index, zmm b)
{
    SHORTS(r.h[i] = (index.h[i] & 32 ? b : a).h[index.h[i] & 31]);
}
/* vpermi2b: for each byte of `index`, a byte of two vectors. */
CALLED zmm lanes_permi2b(zmm index, zmm a, zmm b)
{
    zmm r;
    for (int i = 0; i < 64; i++)
        r.b[i] = (index.b[i] & 64 ? b : a).b[index.b[i] & 63];
    return r;
}

/* ---- bf16: subnormals are zero, read or written ---------------------------------------------- */

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
