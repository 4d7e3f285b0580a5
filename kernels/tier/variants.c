/* How a variant of decode reads a cache's rows. Most variants take every layout and dtype, with
 * their exact values. */
#include "tier/dot.h"

/* What a variant can read. */
typedef struct reading {
    bool transposed;      /* K in transposed layouts */
    bool quads;           /* V in quads */
    bool alike;           /* K and V must have one dtype: it is not made of halves */
    bool apart;           /* only some dtypes, each in a way of its own */
    bool halves;          /* it rounds values to f16 */
    int32_t ways[DTYPES]; /* apart: the way of each dtype, 0 = no kernel */
} reading;

#define DOT_WAY(word, name) [DTYPE_##name] = WAY_DOT_##name,
static const reading readings[VARIANTS] = {
    [VARIANT_FLASH] = {.transposed = true, .quads = true},
    [VARIANT_TWOPASS] = {.transposed = true},
    [VARIANT_PERHEAD] = {.alike = true},
    [VARIANT_ROUND16] = {.apart = true, .halves = true, .ways = {[DTYPE_F32] = WAY_ROUND16}},
    [VARIANT_DOT] = {.transposed = true,
                     .quads = true,
                     .apart = true,
                     .ways = {[DTYPE_I8] = WAY_DOT_I8,
                              KVB_DOT_PACKS(DOT_WAY) KVB_DOT_FLOATS(DOT_WAY)}},
};

int32_t kvb_reads(int32_t variant, int32_t layout, int32_t dtype, int32_t plane)
{
    if (variant < 0 || variant >= VARIANTS || layout < 0 || layout >= LAYOUTS || dtype < 0 ||
        dtype >= DTYPES || (plane != KVB_K && plane != KVB_V))
        return -1;
    const reading *r = &readings[variant];
    if (!kvb_layout_has(layout, dtype, plane) ||
        (kvb_layouts[layout].transposed && !r->transposed) ||
        (kvb_layouts[layout].quads && !r->quads) || (r->apart && !r->ways[dtype]))
        return -1;
    return r->halves ? DTYPE_F16 : dtype;
}

int32_t kvb_way_of(int32_t variant, int32_t dtype)
{
    return readings[variant].apart ? readings[variant].ways[dtype] : dtype;
}

bool kvb_takes_alike(int32_t variant) { return readings[variant].alike; }

bool kvb_has_half(int32_t isa, int32_t way, int32_t plane)
{
    const kvb_tier *tier = kvb_tier_of(isa);
    return tier && (plane == KVB_K ? tier->qk[way].rows[0] != NULL : tier->pv[way].rows[0] != NULL);
}

bool kvb_widens(int32_t isa, int32_t way)
{
    return way != DTYPE_F32 && kvb_tier_of(isa)->codecs[way].decode;
}

int32_t kvb_levels(int32_t variant, int32_t dtype, int32_t which)
{
    if (kvb_reads(variant, LAYOUT_HEAD, dtype, KVB_K) < 0)
        return 0;
    const int32_t way = kvb_way_of(variant, dtype);
    const bool floats = way >= WAY_DOT_FLOATS;
    if (which == 3)
        return floats ? DOT_BITS : 0;
    if (floats || way < WAY_DOT_I8)
        return 0;
    const int32_t elements = kvb_formats[dtype].elements, packed = elements > 1;
    return which == 0 ? DOT_QUERY : which == 1 ? DOT_WEIGHT : packed * elements;
}
