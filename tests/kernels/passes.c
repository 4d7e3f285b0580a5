/* passes: many passes of one cut decode, for a tool that watches threads.
 *
 * Two threads share the tokens of a scan, so each pass ends with a merge of their partial states.
 * With an argument it runs beside.c. Exits with 0 if all went well. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kvbench.h"

enum { TOKENS = 1536, DIM = 8, HEADS = 2, PASSES = 200 };

static void must(int32_t code)
{
    if (code) {
        fprintf(stderr, "passes: %s\n", kvb_message());
        exit(2);
    }
}

int beside(void); /* beside.c */

int main(int count, char **words)
{
    (void)words;
    if (count > 1)
        return beside();

    int64_t length = TOKENS;
    float q[HEADS * DIM] = {1.0f}, out[HEADS * DIM];
    kvb_cache cache = {
        .batch = 1, .kv_heads = 1, .head_dim = DIM, .capacity = TOKENS, .lengths = &length};
    must(kvb_cache_plan(&cache));
    void *memory = aligned_alloc(64, (size_t)cache.bytes);
    if (!memory)
        return 2;
    memset(memory, 0, (size_t)cache.bytes);
    must(kvb_cache_bind(&cache, memory));
    const kvb_decode args = {.cache = &cache, .q = q, .out = out, .q_heads = HEADS};
    kvb_team *team;
    kvb_task *task;
    kvb_run_times times = {0};
    must(kvb_team_open(NULL, 2, &team));
    must(kvb_task_decode(&args, 2, &task));
    must(kvb_run(team, &task, 1, PASSES, NULL, &times));
    kvb_task_free(task);
    kvb_team_close(team);
    free(memory);
    return 0;
}
