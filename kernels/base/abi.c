/* Sizes and offsets of every struct in abi.h, for readers that were built from another copy of it. */
#include <stddef.h>

#include "base/words.h"

#ifndef KVB_BUILD
#define KVB_BUILD "unknown"
#endif

const char *kvb_build(void) { return KVB_BUILD; }

#define STRUCT(type) {#type, 0, (int64_t)sizeof(type)}
#define FIELD(type, name) {#type "." #name, (int64_t)offsetof(type, name), (int64_t)sizeof(((type *)0)->name)}

static const kvb_field fields[] = {
    STRUCT(kvb_kernel),
    FIELD(kvb_kernel, op), FIELD(kvb_kernel, variant), FIELD(kvb_kernel, layout), FIELD(kvb_kernel, dtype),
    FIELD(kvb_kernel, isa), FIELD(kvb_kernel, about), FIELD(kvb_kernel, runnable), FIELD(kvb_kernel, takes),
    FIELD(kvb_kernel, run),
    STRUCT(kvb_field),
    FIELD(kvb_field, name), FIELD(kvb_field, offset), FIELD(kvb_field, size),
    STRUCT(kvb_plane),
    FIELD(kvb_plane, dtype), FIELD(kvb_plane, scale), FIELD(kvb_plane, tensor), FIELD(kvb_plane, reserved),
    FIELD(kvb_plane, row_bytes), FIELD(kvb_plane, token_stride), FIELD(kvb_plane, head_stride),
    FIELD(kvb_plane, seq_stride), FIELD(kvb_plane, scale_token_stride), FIELD(kvb_plane, scale_head_stride),
    FIELD(kvb_plane, scale_seq_stride), FIELD(kvb_plane, bytes), FIELD(kvb_plane, scale_bytes),
    FIELD(kvb_plane, rows), FIELD(kvb_plane, scales),
    STRUCT(kvb_cache),
    FIELD(kvb_cache, layout), FIELD(kvb_cache, inner), FIELD(kvb_cache, ring), FIELD(kvb_cache, v_in_k),
    FIELD(kvb_cache, v_offset), FIELD(kvb_cache, batch), FIELD(kvb_cache, kv_heads), FIELD(kvb_cache, head_dim),
    FIELD(kvb_cache, v_dim), FIELD(kvb_cache, capacity), FIELD(kvb_cache, block_tokens),
    FIELD(kvb_cache, blocks), FIELD(kvb_cache, pad), FIELD(kvb_cache, k), FIELD(kvb_cache, v),
    FIELD(kvb_cache, bytes), FIELD(kvb_cache, table_stride), FIELD(kvb_cache, table), FIELD(kvb_cache, lengths),
    STRUCT(kvb_decode),
    FIELD(kvb_decode, cache), FIELD(kvb_decode, q), FIELD(kvb_decode, out), FIELD(kvb_decode, q_heads),
    FIELD(kvb_decode, q_len), FIELD(kvb_decode, ends), FIELD(kvb_decode, sink), FIELD(kvb_decode, window),
    FIELD(kvb_decode, scale), FIELD(kvb_decode, variant), FIELD(kvb_decode, isa), FIELD(kvb_decode, schedule),
    FIELD(kvb_decode, wrap), FIELD(kvb_decode, deterministic), FIELD(kvb_decode, stages),
    FIELD(kvb_decode, run),
    STRUCT(kvb_work),
    FIELD(kvb_work, cache), FIELD(kvb_work, seq), FIELD(kvb_work, head), FIELD(kvb_work, heads),
    FIELD(kvb_work, group), FIELD(kvb_work, q_len), FIELD(kvb_work, ends), FIELD(kvb_work, first),
    FIELD(kvb_work, count), FIELD(kvb_work, q), FIELD(kvb_work, q_stride), FIELD(kvb_work, scale),
    FIELD(kvb_work, max), FIELD(kvb_work, sum), FIELD(kvb_work, acc),
    STRUCT(kvb_store),
    FIELD(kvb_store, cache), FIELD(kvb_store, k), FIELD(kvb_store, v), FIELD(kvb_store, tokens),
    FIELD(kvb_store, head_major), FIELD(kvb_store, nt), FIELD(kvb_store, isa), FIELD(kvb_store, advance),
    STRUCT(kvb_probe),
    FIELD(kvb_probe, op), FIELD(kvb_probe, isa), FIELD(kvb_probe, a), FIELD(kvb_probe, b), FIELD(kvb_probe, c),
    FIELD(kvb_probe, bytes), FIELD(kvb_probe, distance), FIELD(kvb_probe, steps), FIELD(kvb_probe, schedule),
    STRUCT(kvb_traffic),
    FIELD(kvb_traffic, flops), FIELD(kvb_traffic, compulsory), FIELD(kvb_traffic, issued),
    FIELD(kvb_traffic, line), FIELD(kvb_traffic, kv), FIELD(kvb_traffic, scales), FIELD(kvb_traffic, table),
    FIELD(kvb_traffic, ai),
    STRUCT(kvb_run_times),
    FIELD(kvb_run_times, seconds), FIELD(kvb_run_times, pass_seconds), FIELD(kvb_run_times, thread_seconds),
    FIELD(kvb_run_times, stage_share), FIELD(kvb_run_times, switches), FIELD(kvb_run_times, faults),
    STRUCT(kvb_arena),
    FIELD(kvb_arena, base), FIELD(kvb_arena, bytes), FIELD(kvb_arena, mapped), FIELD(kvb_arena, page_bytes),
    FIELD(kvb_arena, huge_bytes), FIELD(kvb_arena, resident_bytes), FIELD(kvb_arena, pages),
    FIELD(kvb_arena, guard), FIELD(kvb_arena, map), FIELD(kvb_arena, map_bytes),
};

const kvb_field *kvb_fields(int32_t index)
{
    return index >= 0 && (size_t)index < sizeof fields / sizeof *fields ? &fields[index] : NULL;
}
