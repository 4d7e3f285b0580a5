/* The documented plug-in under a registry of another's making: as it is, and with kernels that fail when they are run.
 *
 *   right            the documented one's numbers
 *   wrong            one of them is off
 *   nans             one of them is no number
 *   late             right at first, wrong from the LATE-th call on
 *   crash            writes where no memory is
 *
 * With -DLISTED=... the registry says that instead.
 */
#define kvb_kernels documented_kernels
#define kvb_plugin documented_plugin
#include "../../kernels/example/plugin.c"
#undef kvb_kernels
#undef kvb_plugin

#ifndef VERSION
#define VERSION KVB_PLUGIN
#endif

#ifndef LATE
#define LATE 6
#endif

__attribute__((unused)) static void right(const kvb_work *w) { textbook(w); }

__attribute__((unused)) static void wrong(const kvb_work *w)
{
    textbook(w);
    w->acc[w->cache->head_dim - 1] += 0.5f * w->sum[0];
}

__attribute__((unused)) static void nans(const kvb_work *w)
{
    textbook(w);
    w->sum[w->heads * w->group - 1] = NAN;
}

__attribute__((unused)) static void late(const kvb_work *w)
{
    static int calls;
    (++calls < LATE ? right : wrong)(w);
}

__attribute__((unused)) static void crash(const kvb_work *w)
{
    *(volatile float *)NULL = w->scale;
}

#ifndef LISTED
#define ONE(name) {"decode", #name, "head", "f32", ISA, "for tests", 1, name}
#define LISTED ONE(right), ONE(wrong), ONE(nans), ONE(late), ONE(crash)
#endif

#ifndef NO_TABLE
const kvb_kernel *kvb_kernels(int32_t index)
{
    static const kvb_kernel listed[] = {LISTED, {0}};
    return listed[index].about ? &listed[index] : NULL;
}
#endif

#ifndef NO_VERSION
extern const int32_t kvb_plugin;
const int32_t kvb_plugin = VERSION;
#endif
