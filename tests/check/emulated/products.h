/* Products of bytes and of bf16, as avx512.h has the rest. */
#include <float.h>

CALLED void lanes_dpbusd(zmm *acc, zmm a, zmm b)
{
    for (int i = 0; i < 64; i++)
        acc->u[i / 4] += (uint32_t)(a.b[i] * (int8_t)b.b[i]);
}
/* Each lane grows by the product of the upper halves, then by that of the lower ones, each rounded
 * once. What is subnormal counts as 0, and becomes 0. */
static inline float lanes_flushed(float a) { return fabsf(a) < FLT_MIN ? copysignf(0.0f, a) : a; }
static inline float lanes_grown(float sum, uint32_t a, uint32_t b)
{
    float one, other;
    memcpy(&one, &a, sizeof one);
    memcpy(&other, &b, sizeof other);
    return lanes_flushed(fmaf(lanes_flushed(one), lanes_flushed(other), lanes_flushed(sum)));
}
CALLED void lanes_dpbf16ps(zmm *acc, zmm a, zmm b)
{
    const uint32_t upper = 0xffff0000;
    for (int i = 0; i < 16; i++) {
        float sum = lanes_grown(acc->f[i], a.u[i] & upper, b.u[i] & upper);
        acc->f[i] = lanes_grown(sum, a.u[i] << 16, b.u[i] << 16);
    }
}
