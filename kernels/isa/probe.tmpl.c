/* Probes: what the machine can stream and compute with this tier's vectors. Included once by
 * unit.c. */

enum { PROBE_LINES = 8 }; /* lines per turn of a loop: of one run, or one of each of so many runs */
#define PROBE_UNROLL_FOR UNROLL_UP_TO(32) for

/* One line of an op at byte `at`. A pinned vector is really loaded, and makes no library call out
 * of a copy. */
INLINE void probe_line(const int op, uint8_t *to, const uint8_t *a, const uint8_t *b, int64_t at)
{
    if (op == OP_WRITE_NT)
        v_stream_set(to + at, v_set1(1.0f));
    else if (op == OP_COPY_NT)
        v_stream(to + at, a + at);
    else
        PROBE_UNROLL_FOR (int in = 0; in < LINE; in += VL * 4) {
            vf x = op == OP_WRITE ? v_set1(1.0f) : v_load_f32(a + at + in);
            if (op == OP_TRIAD)
                x = v_fma(v_set1(3.0f), v_load_f32(b + at + in), x);
            if (op != OP_WRITE)
                v_pin(x);
            v_store_f32(to + at + in, x);
        }
}

/* Every line of a share; with `hint`, each asks for the one `distance` ahead, which may lie behind
 * the end. */
INLINE void probe_walk(const int op, uint8_t *to, const uint8_t *a, const uint8_t *b, int64_t bytes,
                       int64_t distance, const bool hint)
{
    int64_t at = 0;
    for (; at + PROBE_LINES * LINE <= bytes; at += PROBE_LINES * LINE)
        PROBE_UNROLL_FOR (int i = 0; i < PROBE_LINES; i++) {
            if (hint)
                __builtin_prefetch(
                    (const void *)((uintptr_t)a + (uintptr_t)(at + i * LINE + distance)));
            probe_line(op, to, a, b, at + i * LINE);
        }
    for (; at < bytes; at += LINE)
        probe_line(op, to, a, b, at);
}

/* Every line of a share, in the order of addresses. */
INLINE void read_plain(reading *all, const uint8_t *from, int64_t bytes)
{
    int64_t at = 0;
    for (; at + PROBE_LINES * LINE <= bytes; at += PROBE_LINES * LINE)
        PROBE_UNROLL_FOR (int i = 0; i < PROBE_LINES; i++)
            add_line(all, from + at + i * LINE, i);
    for (; at < bytes; at += LINE)
        add_line(all, from + at, 0);
}

/* Every line of a share, from one eighth of it after another in turn: prefetchers in hardware
 * follow each of them. */
INLINE void read_runs(reading *all, const uint8_t *from, int64_t bytes, int64_t distance)
{
    const int64_t run = bytes / LINE / PROBE_LINES * LINE;
    for (int64_t at = 0; at < run; at += LINE)
        PROBE_UNROLL_FOR (int i = 0; i < PROBE_LINES; i++) {
            __builtin_prefetch(
                (const void *)((uintptr_t)from + (uintptr_t)(i * run + at + distance)));
            add_line(all, from + i * run + at, i);
        }
    for (int64_t at = run * PROBE_LINES; at < bytes; at += LINE)
        add_line(all, from + at, 0);
}

/* Every line of a share in the order of addresses, and meanwhile those of the block of `distance`
 * bytes behind it. */
INLINE void read_ahead(reading *all, const uint8_t *from, int64_t bytes, kvb_ahead ahead,
                       const bool to_l2, const int every)
{
    const int64_t step = ahead.streams > 1 ? ahead.distance / ahead.streams : LINE;
    int64_t at = 0;
    for (; at + PROBE_LINES * LINE <= bytes; at += PROBE_LINES * LINE) {
        /* a turn takes a line of each of the runs */
        const int64_t in = ahead.streams > 1 ? at & (ahead.distance - 1) : 0;
        const uintptr_t asked =
            (uintptr_t)from + (uintptr_t)(at - in + in / PROBE_LINES + ahead.distance);
        PROBE_UNROLL_FOR (int i = 0; i < PROBE_LINES; i++) {
            if (i % every == 0)
                kvb_fetch((const uint8_t *)(asked + (uintptr_t)(i * step)), to_l2);
            add_line(all, from + at + i * LINE, i);
        }
    }
    for (; at < bytes; at += LINE)
        add_line(all, from + at, 0);
}

/* What is loaded is added up, as the twin does. */
static void probe_read(const void *from, int64_t bytes, kvb_ahead ahead, kvb_sum *sum)
{
    reading all;
    reading_load(&all, sum);
    if (!ahead.distance)
        read_plain(&all, from, bytes);
    else if (!ahead.streams)
        read_runs(&all, from, bytes, ahead.distance);
    else if (ahead.to_l2)
        read_ahead(&all, from, bytes, ahead, true, LINES_PER_REQUEST);
    else
        read_ahead(&all, from, bytes, ahead, false, 1);
    reading_store(&all, sum);
}

static void probe_write(void *to, int64_t bytes)
{
    probe_walk(OP_WRITE, to, NULL, NULL, bytes, 0, false);
}

static void probe_write_nt(void *to, int64_t bytes)
{
    probe_walk(OP_WRITE_NT, to, NULL, NULL, bytes, 0, false);
}

static void probe_copy(void *to, const void *from, int64_t bytes, int64_t distance)
{
    if (distance)
        probe_walk(OP_COPY, to, from, NULL, bytes, distance, true);
    else
        probe_walk(OP_COPY, to, from, NULL, bytes, 0, false);
}

static void probe_copy_nt(void *to, const void *from, int64_t bytes, int64_t distance)
{
    if (distance)
        probe_walk(OP_COPY_NT, to, from, NULL, bytes, distance, true);
    else
        probe_walk(OP_COPY_NT, to, from, NULL, bytes, 0, false);
}

/* to = from + 3 * from2 */
static void probe_triad(void *to, const void *from, const void *from2, int64_t bytes)
{
    probe_walk(OP_TRIAD, to, from, from2, bytes, 0, false);
}

/* FLOPS_ACC independent sums from different starts, so that none is another's copy. They stop
 * growing near 2^21, where 1/8 no longer counts: never denormal, never infinite. The factors are
 * volatile: no product is known beforehand. */
static double probe_flops(int64_t rounds)
{
    const volatile float half = 0.5f, quarter = 0.25f;
    vf x = v_set1(half), y = v_set1(quarter), acc[FLOPS_ACC];
    PROBE_UNROLL_FOR (int i = 0; i < FLOPS_ACC; i++)
        acc[i] = v_set1((float)i);
    for (int64_t r = 0; r < rounds; r++)
        PROBE_UNROLL_FOR (int i = 0; i < FLOPS_ACC; i++)
            acc[i] = v_fma(x, y, acc[i]);
    PROBE_UNROLL_FOR (int i = 0; i < FLOPS_ACC; i++)
        v_pin(acc[i]);
    return (double)rounds * (2 * VL * FLOPS_ACC);
}

/* As many sums of products of bytes, by the instructions that dot is made of. */
static double probe_dot8(int64_t rounds)
{
    vi x = v_set_int(0x01020304), y = v_set_int(0x05060708), acc[FLOPS_ACC];
    PROBE_UNROLL_FOR (int i = 0; i < FLOPS_ACC; i++)
        acc[i] = v_set_int(i);
    for (int64_t r = 0; r < rounds; r++)
        PROBE_UNROLL_FOR (int i = 0; i < FLOPS_ACC; i++) {
            v_hide(&x);
            v_dot_weights_into(&acc[i], x, y);
        }
    PROBE_UNROLL_FOR (int i = 0; i < FLOPS_ACC; i++)
        v_hide(&acc[i]);
    return (double)rounds * (8 * VL * FLOPS_ACC);
}

#ifdef V_DOT_FLOATS
/* As many sums, each of two products of bf16: 1 / 2 times 1 / 4. They stop growing near 2^22. */
static double probe_dot16(int64_t rounds)
{
    const vi x = v_set_int(0x3f003f00), y = v_set_int(0x3e803e80);
    vf acc[FLOPS_ACC];
    PROBE_UNROLL_FOR (int i = 0; i < FLOPS_ACC; i++)
        acc[i] = v_set1((float)i);
    for (int64_t r = 0; r < rounds; r++)
        PROBE_UNROLL_FOR (int i = 0; i < FLOPS_ACC; i++)
            v_dot16_into(&acc[i], x, y);
    PROBE_UNROLL_FOR (int i = 0; i < FLOPS_ACC; i++)
        v_pin(acc[i]);
    return (double)rounds * (4 * VL * FLOPS_ACC);
}
#endif
