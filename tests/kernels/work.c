/* work OP ISA STEPS: one pass of a probe that computes, for a tool that counts instructions.
 *
 * Prints the FLOPs that the probe states. Exits with 3 if the tier does not run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kvbench.h"

static int32_t word(const char *list, const char *wanted)
{
    for (int32_t i = 0; kvb_word(list, i); i++)
        if (!strcmp(kvb_word(list, i), wanted))
            return i;
    fprintf(stderr, "work: no %s is called %s\n", list, wanted);
    exit(2);
}

static void must(int32_t code)
{
    if (code) {
        fprintf(stderr, "work: %s\n", kvb_message());
        exit(code == KVB_UNSUPPORTED ? 3 : 2);
    }
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    const kvb_probe args = {
        .op = word("op", argv[1]), .isa = word("isa", argv[2]), .steps = atoll(argv[3])};
    kvb_team *team;
    kvb_task *task;
    kvb_traffic traffic;
    kvb_run_times times = {0};
    must(kvb_team_open(NULL, 1, &team));
    must(kvb_task_probe(&args, 1, &task));
    must(kvb_task_traffic(task, &traffic));
    must(kvb_run(team, &task, 1, 1, NULL, &times));
    printf("%.0f\n", traffic.flops);
    kvb_task_free(task);
    kvb_team_close(team);
    return 0;
}
