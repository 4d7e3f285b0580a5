/* Probes: what the machine can stream and compute with this tier's vectors. */

enum { PROBE_LINES = 8 }; /* lines per iteration: 8 of one run, or one of each of 8 runs */
#define PROBE_UNROLL_FOR UNROLL_UP_TO(32) for

/* Do one line of an op at byte `at`. v_pin keeps the load, and keeps the compiler from making a
 * copy a library call. */
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

/* Do every line of a share. With `hint`, each line prefetches the one `distance` bytes ahead, which
 * may be after the end. */
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

/* Read every line of a share, in address order. */
INLINE void read_plain(reading *all, const uint8_t *from, int64_t bytes)
{
    int64_t at = 0;
    for (; at + PROBE_LINES * LINE <= bytes; at += PROBE_LINES * LINE)
        PROBE_UNROLL_FOR (int i = 0; i < PROBE_LINES; i++)
            add_line(all, from + at + i * LINE, i);
    for (; at < bytes; at += LINE)
        add_line(all, from + at, 0);
}

/* Read every line of a share, one of each of its eighths in turn: hardware prefetchers follow each
 * eighth. */
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

/* Read every line of a share in address order, and prefetch those `distance` bytes ahead. */
INLINE void read_ahead(reading *all, const uint8_t *from, int64_t bytes, kvb_ahead ahead,
                       const bool to_l2, const int every)
{
    const int64_t step = ahead.streams > 1 ? ahead.distance / ahead.streams : LINE;
    int64_t at = 0;
    for (; at + PROBE_LINES * LINE <= bytes; at += PROBE_LINES * LINE) {
        /* one iteration prefetches a line of each run */
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

/* Read a share, and add up the loads as the twin does. */
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

/* FLOPS_ACC independent sums with different start values, so that none is a copy of another. They
 * stop growing near 2^21, where adding 1/8 changes nothing: never denormal or infinite. The factors
 * are volatile, so the compiler knows no product. */
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

/* FLOPS_ACC sums of products of bytes, with the instructions of `dot`. */
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
/* FLOPS_ACC sums, each of two products of bf16: 1 / 2 times 1 / 4. They stop growing near 2^22. */
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
