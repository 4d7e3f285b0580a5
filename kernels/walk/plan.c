/* Makes the plan: cuts scans of tokens into units, and gives units to threads. */
#include <stdlib.h>

#include "walk/plan.h"

enum { UNIT_MIN = 256, UNIT_FIXED = 1024, GRID = 64 };

/* Return a unit for scan `index`, without its tokens. */
static kvb_unit scan_of(const kvb_decode *a, int64_t index)
{
    const int64_t kv_heads = a->cache->kv_heads, q_rows = kvb_q_rows(a);
    if (a->variant == VARIANT_PERHEAD)
        return (kvb_unit){.seq = index / (kv_heads * q_rows),
                          .head = index / q_rows % kv_heads,
                          .heads = 1,
                          .q_row = index % q_rows,
                          .q_rows = 1};
    const int64_t heads = kvb_unit_heads(a), scans = kv_heads / heads;
    return (kvb_unit){
        .seq = index / scans, .head = index % scans, .heads = heads, .q_rows = q_rows};
}

static int64_t scans_per_seq(const kvb_decode *a)
{
    return a->cache->kv_heads / kvb_unit_heads(a) *
           (a->variant == VARIANT_PERHEAD ? kvb_q_rows(a) : 1);
}

/* Move a cut in a scan of `tokens` tokens to the grid, or so that no piece is shorter than
 * UNIT_MIN. If it becomes 0 or `tokens`, there is no cut. */
static int64_t snap(int64_t cut, int64_t tokens, int64_t grid)
{
    if (tokens < 2 * UNIT_MIN)
        return 2 * cut < tokens ? 0 : tokens;
    cut = (cut + grid / 2) / grid * grid;
    if (cut < UNIT_MIN)
        return 2 * cut < UNIT_MIN ? 0 : UNIT_MIN;
    if (tokens - cut < UNIT_MIN)
        return 2 * (tokens - cut) < UNIT_MIN ? tokens
                                             : at_most(cut, (tokens - UNIT_MIN) / grid * grid);
    return cut;
}

/* Return the unit of a scan for tokens from .. to, counted among the tokens of `reach`. */
static kvb_unit unit_of(kvb_unit scan, const kvb_reach *reach, int64_t from, int64_t to)
{
    scan.first = kvb_nth(reach, from);
    scan.count = to - from;
    scan.before = scan.gap = 0;
    if (from < reach->kept && to > reach->kept) {
        scan.before = reach->kept - from;
        scan.gap = reach->first - reach->kept;
    }
    return scan;
}

/* Append the units of a scan, cut at cuts[0..n), which ascend. */
static void add_scan(kvb_plan *plan, kvb_unit scan, const kvb_reach *reach, const int64_t *cuts,
                     int64_t n)
{
    const int64_t tokens = kvb_reached(reach);
    int64_t begin = plan->scan_units[plan->scans], at = begin, from = 0;
    for (int64_t i = 0; i <= n; i++) {
        int64_t to = i < n ? cuts[i] : tokens;
        if (to <= from && !(i == n && at == begin))
            continue;
        plan->units[at++] = unit_of(scan, reach, from, to);
        from = to;
    }
    for (int64_t u = begin; u < at; u++) {
        plan->units[u].partial = at - begin > 1 ? plan->partials : -1;
        plan->partials += at - begin > 1 ? plan->states : 0;
    }
    plan->scan_units[++plan->scans] = at;
}

/* Return the lane of the scan's first token. Cuts count from there, so that they do not cut
 * transposed blocks. With a gap, the lane is that of the tokens after it, counted back. */
static int64_t lane_of(const kvb_cache *c, const kvb_reach *reach)
{
    const int64_t lane = kvb_lane(c, reach->first) - reach->kept % LANES;
    return lane < 0 ? lane + LANES : lane;
}

/* Compute the cuts of a scan: at fixed places (deterministic), or where the threads' equal shares
 * of all tokens end. */
static int64_t cuts_of(const kvb_decode *a, const kvb_reach *reach, int64_t before, int64_t total,
                       int64_t threads, int64_t *cuts)
{
    const int64_t lane = lane_of(a->cache, reach), tokens = kvb_reached(reach);
    int64_t n = 0;
    if (a->deterministic) {
        for (int64_t cut = UNIT_FIXED - lane; cut + UNIT_MIN <= tokens; cut += UNIT_FIXED)
            cuts[n++] = cut;
        return n;
    }
    int64_t grid = total / threads >= 2 * UNIT_MIN ? GRID : UNIT_MIN;
    for (int64_t i = 1; i < threads; i++) {
        int64_t share = (int64_t)((__int128)total * i / threads);
        if (share > before && share < before + tokens)
            cuts[n++] = snap(share - before + lane, tokens + lane, grid) - lane;
    }
    return n;
}

/* Add a cut at the gap for a plug-in's kernel, which takes only tokens without a gap. */
static int64_t cut_gap(const kvb_reach *reach, int64_t *cuts, int64_t n)
{
    int64_t at = n;
    for (; at && cuts[at - 1] > reach->kept; at--)
        cuts[at] = cuts[at - 1];
    cuts[at] = reach->kept;
    return n + 1;
}

/* Give consecutive units to each thread: a unit goes by the position of its middle token among all
 * tokens. */
static void assign(kvb_plan *plan, int64_t total, int64_t threads)
{
    int64_t units = plan->scan_units[plan->scans], before = 0, thread = 0;
    for (int64_t u = 0; u < units; u++) {
        int64_t middle = 2 * before + plan->units[u].count;
        int64_t owner = total ? (int64_t)((__int128)middle * threads / (2 * total)) : 0;
        for (owner = at_most(owner, threads - 1); thread < owner;)
            plan->thread_units[++thread] = u;
        before += plan->units[u].count;
    }
    while (thread < threads)
        plan->thread_units[++thread] = units;
}

static bool reserve(const kvb_decode *a, int32_t threads, int64_t scans, kvb_plan *plan)
{
    int64_t units = (a->run ? 2 : 1) * scans + threads;
    for (int64_t b = 0; a->deterministic && b < a->cache->batch; b++) {
        const kvb_reach reach = kvb_attended(a, b);
        units += scans_per_seq(a) * (kvb_reached(&reach) / UNIT_FIXED);
    }
    const size_t queries = (size_t)(a->cache->batch * kvb_queries(a));
    plan->firsts = calloc(queries, sizeof *plan->firsts);
    plan->ends = calloc(queries, sizeof *plan->ends);
    plan->units = calloc((size_t)units, sizeof *plan->units);
    plan->scan_units = calloc((size_t)scans + 1, sizeof *plan->scan_units);
    plan->thread_units = calloc((size_t)threads + 1, sizeof *plan->thread_units);
    return plan->firsts && plan->ends && plan->units && plan->scan_units && plan->thread_units;
}

int32_t kvb_plan_make(const kvb_decode *a, int32_t threads, kvb_plan *plan)
{
    int64_t per_seq = scans_per_seq(a), total = 0, longest = 0, before = 0;
    *plan = (kvb_plan){.states = a->cache->kv_heads * kvb_q_rows(a) / per_seq};
    for (int64_t b = 0; b < a->cache->batch; b++) {
        const kvb_reach reach = kvb_attended(a, b);
        total += per_seq * kvb_reached(&reach);
        longest = at_least(longest, kvb_reached(&reach));
    }
    int64_t *cuts = calloc((size_t)(threads + longest / UNIT_FIXED + 2), sizeof *cuts);
    bool reserved = reserve(a, threads, per_seq * a->cache->batch, plan);
    for (int64_t r = 0; cuts && reserved && r < per_seq * a->cache->batch; r++) {
        kvb_unit scan = scan_of(a, r);
        const kvb_reach reach = kvb_attended(a, scan.seq);
        int64_t n = cuts_of(a, &reach, before, total, threads, cuts);
        n = a->run && reach.kept ? cut_gap(&reach, cuts, n) : n;
        add_scan(plan, scan, &reach, cuts, n);
        before += kvb_reached(&reach);
    }
    free(cuts);
    if (!cuts || !reserved) {
        kvb_plan_free(plan);
        return kvb_fail(KVB_NO_MEMORY, "no memory for the plan of %d threads", threads);
    }
    for (int64_t i = 0; i < a->cache->batch * kvb_queries(a); i++) {
        const kvb_seen seen = kvb_seen_by(a, i / kvb_queries(a), i % kvb_queries(a));
        plan->firsts[i] = seen.first;
        plan->ends[i] = seen.end;
    }
    assign(plan, total, threads);
    return KVB_OK;
}

int32_t kvb_plan_ready(const kvb_decode *a, int32_t threads, int64_t grown, const kvb_plan *plan)
{
    int32_t code = kvb_check_decode(a, threads);
    if (code)
        return code;
    for (int64_t i = 0; i < a->cache->batch * kvb_queries(a); i++) {
        const kvb_seen seen = kvb_seen_by(a, i / kvb_queries(a), i % kvb_queries(a));
        if (plan->firsts[i] != seen.first || plan->ends[i] != seen.end)
            return kvb_fail(KVB_BAD_ARGUMENT,
                            "lengths changed after the task was planned, or ends or tree did");
    }
    if (grown)
        return kvb_fail(
            KVB_BAD_ARGUMENT,
            "lengths grow by %lld in this run; the task is planned for the present lengths",
            (long long)grown);
    return KVB_OK;
}

void kvb_plan_free(kvb_plan *plan)
{
    free(plan->firsts);
    free(plan->ends);
    free(plan->units);
    free(plan->scan_units);
    free(plan->thread_units);
    *plan = (kvb_plan){0};
}
