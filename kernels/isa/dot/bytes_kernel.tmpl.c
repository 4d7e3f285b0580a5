/* The row kernel DTYPE, dot8 or dot16, whose q and weights are PARTS bytes each. */

static void CAT(prepare_query_, DTYPE)(const kvb_group *group)
{
    prepare_bytes(group, PARTS == 1 ? READ_DOT8 : READ_DOT16, PARTS);
}

static bool CAT(whole_, DTYPE)(int64_t heads, int64_t dim) { return whole_bytes(heads, dim, PARTS); }

INLINE void CAT(qk_tile_, DTYPE)(const kvb_tile *tile, const kvb_group *group, float *scores, const int heads, const int order)
{
    qk_tile_bytes(tile, group, scores, heads, PARTS, order);
}

INLINE void CAT(qkt_tile_, DTYPE)(const kvb_tile *tile, const kvb_group *group, float *scores, const int heads, const int order)
{
    qkt_tile_bytes(tile, group, scores, heads, PARTS, order);
}

INLINE void CAT(pv_tile_, DTYPE)(const kvb_tile *tile, const kvb_group *group, const float *p, const int heads, const int order)
{
    pv_tile_bytes(tile, group, p, heads, PARTS, order);
}

STAGE(qk, DTYPE, float, PARTS == 1 ? FEW_DOTS : 0, 1)
STAGE(qkt, DTYPE, float, PARTS == 1 ? FEW_DOTS : 0, 1)
STAGE(pv, DTYPE, const float, PARTS == 1 ? FEW_DOTS : 0, 1)

#undef DTYPE
#undef PARTS
