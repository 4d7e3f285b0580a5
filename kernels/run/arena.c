/* Arenas: memory with a known kind of pages, between two unreadable pages. */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"

#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26 /* bit of mmap's flags where log2 of the page size begins */
#endif

/* Transparent huge pages grow with the base page, up to 512 MiB. That is too much to round a small
 * arena up to. */
enum { THP_USUAL = 2 << 20, THP_SPARED = 32 << 20 };
static const int64_t arena_max = INT64_MAX / 4;

/* The pages of an arena: their size, and the flags for mmap and madvise. */
typedef struct paging {
    int64_t page;
    int64_t mapped;
    int flags;
    int advice; /* for madvise; -1 = none */
} paging;

/* Return the number after "name:" in a file of such lines, or the first number of the file if name
 * is null; -1 if there is none. */
static int64_t number_in(const char *path, const char *name)
{
    char line[128];
    long long number = -1;
    size_t skip = name ? strlen(name) + 1 : 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return -1;
    while (fgets(line, sizeof line, file)) {
        if (name && (strncmp(line, name, skip - 1) || line[skip - 1] != ':'))
            continue;
        if (sscanf(line + skip, "%lld", &number) != 1)
            number = -1;
        break;
    }
    fclose(file);
    return number;
}

static int64_t base_page(void) { return sysconf(_SC_PAGESIZE); }

static int64_t thp_page(void)
{
    int64_t page = number_in("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", NULL);
    return page > 0 ? page : THP_USUAL;
}

static const char *const hugetlb = "/sys/kernel/mm/hugepages";

/* Return how many huge pages of a size (KiB) are neither used nor reserved. */
static int64_t free_pages(int64_t kib)
{
    char path[96];
    snprintf(path, sizeof path, "%s/hugepages-%lldkB/free_hugepages", hugetlb, (long long)kib);
    int64_t unused = number_in(path, NULL);
    snprintf(path, sizeof path, "%s/hugepages-%lldkB/resv_hugepages", hugetlb, (long long)kib);
    return unused < 0 ? at_least(0, number_in("/proc/meminfo", "HugePages_Free"))
                      : at_least(0, unused - at_least(0, number_in(path, NULL)));
}

/* Return the smallest huge page size of which enough pages are free; else the usual size; 0 if the
 * system has no huge pages. */
static int64_t huge_page(int64_t bytes)
{
    int64_t usual = number_in("/proc/meminfo", "Hugepagesize"), best = 0;
    DIR *sizes = opendir(hugetlb);
    for (struct dirent *entry; sizes && (entry = readdir(sizes));) {
        long long kib;
        if (sscanf(entry->d_name, "hugepages-%lldkB", &kib) != 1 || kib <= 0)
            continue;
        int64_t page = kib << 10;
        if (free_pages(kib) >= round_up(bytes, page) / page && (!best || page < best))
            best = page;
    }
    if (sizes)
        closedir(sizes);
    return best ? best : at_least(0, usual) << 10;
}

static int32_t choose(int64_t bytes, int32_t pages, paging *how)
{
    int64_t base = base_page();
    if (pages == PAGES_BASE) {
        *how = (paging){base, round_up(bytes, base), 0, MADV_NOHUGEPAGE};
    } else if (pages == PAGES_THP) {
        int64_t page = thp_page();
        bool whole = page <= THP_SPARED || bytes >= page;
        *how = (paging){page, round_up(bytes, whole ? page : base), 0, MADV_HUGEPAGE};
    } else {
        int64_t page = huge_page(bytes);
        if (!page)
            return kvb_fail(KVB_UNSUPPORTED, "pages: this kernel has no huge pages");
        int flags = MAP_HUGETLB | __builtin_ctzll((uint64_t)page) << MAP_HUGE_SHIFT;
        *how = (paging){page, round_up(bytes, page), flags, -1};
    }
    return KVB_OK;
}

static int32_t fail_map(int64_t bytes, int32_t pages, const paging *how, int error)
{
    if (pages != PAGES_HUGE)
        return kvb_fail(KVB_NO_MEMORY, "bytes is %lld; the system does not map that much: %s",
                        (long long)bytes, strerror(error));
    int64_t needed = how->mapped / how->page, kib = how->page >> 10;
    return kvb_fail(
        KVB_NO_MEMORY,
        "pages: %lld huge pages of %lld KiB are needed, %lld are free (vm.nr_hugepages): %s",
        (long long)needed, (long long)kib, (long long)free_pages(kib), strerror(error));
}

/* Reserve [a page, the data, a page], with the data aligned to its kind of page, and make the data
 * usable. */
static int32_t map(kvb_arena *arena, const paging *how, uint8_t **data)
{
    int64_t base = base_page(), reserved = how->mapped + how->page + 2 * base;
    void *room =
        mmap(NULL, (size_t)reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return fail_map(arena->bytes, arena->pages, how, errno);
    uintptr_t start = (uintptr_t)round_up((int64_t)(uintptr_t)room + base, how->page);
    void *got = mmap((void *)start, (size_t)how->mapped, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | how->flags, -1, 0);
    int32_t code = got == MAP_FAILED ? fail_map(arena->bytes, arena->pages, how, errno) : KVB_OK;
    if (!code && how->advice >= 0 && madvise(got, (size_t)how->mapped, how->advice) &&
        arena->pages == PAGES_THP)
        code = kvb_fail(KVB_UNSUPPORTED, "pages: this kernel has no transparent huge pages: %s",
                        strerror(errno));
    if (code) {
        munmap(room, (size_t)reserved);
        return code;
    }
    arena->map = room;
    arena->map_bytes = reserved;
    *data = got;
    return KVB_OK;
}

int32_t kvb_arena_open(int64_t bytes, int32_t pages, int32_t guard, kvb_arena *arena)
{
    kvb_arena made = {.bytes = bytes, .pages = pages, .guard = guard};
    paging how = {0};
    uint8_t *data = NULL;
    TRY(kvb_check_given("arena", arena));
    TRY(kvb_check_range("bytes", bytes, 1, arena_max));
    TRY(kvb_check_word("pages", pages, PAGES));
    TRY(kvb_check_range("guard", guard, 0, 2));
    TRY(choose(bytes, pages, &how));
    TRY(map(&made, &how, &data));
    made.mapped = how.mapped;
    made.page_bytes = how.page;
    made.base = guard == 1 ? data + how.mapped - round_up(bytes, LINE) : data;
    *arena = made;
    return KVB_OK;
}

/* Add up the mappings of /proc/self/smaps inside the arena. Its unreadable pages count as 0. */
static void add_up(FILE *smaps, uintptr_t first, uintptr_t end, kvb_arena *arena)
{
    char *line = NULL, name[32];
    size_t room = 0;
    bool inside = false;
    while (getline(&line, &room, smaps) > 0) {
        unsigned long long from, to;
        long long kib;
        if (sscanf(line, "%llx-%llx %*1[r-]", &from, &to) == 2) {
            inside = from < end && to > first;
        } else if (inside && sscanf(line, "%31[^:]: %lld kB", name, &kib) == 2) {
            bool hugetlb_part = !strcmp(name, "Private_Hugetlb");
            if (hugetlb_part || !strcmp(name, "AnonHugePages"))
                arena->huge_bytes += kib << 10;
            if (hugetlb_part || !strcmp(name, "Rss")) /* Rss does not count hugetlb */
                arena->resident_bytes += kib << 10;
        }
    }
    free(line);
}

int32_t kvb_arena_inspect(kvb_arena *arena)
{
    if (!arena || !arena->map)
        return kvb_fail(KVB_BAD_ARGUMENT, "arena is %s", arena ? "closed" : "null");
    FILE *smaps = fopen("/proc/self/smaps", "re");
    if (!smaps)
        return kvb_fail(KVB_SYSTEM, "arena: cannot read /proc/self/smaps: %s", strerror(errno));
    arena->huge_bytes = 0;
    arena->resident_bytes = 0;
    add_up(smaps, (uintptr_t)arena->map, (uintptr_t)arena->map + (uintptr_t)arena->map_bytes,
           arena);
    fclose(smaps);
    return KVB_OK;
}

void kvb_arena_close(kvb_arena *arena)
{
    if (!arena || !arena->map)
        return;
    munmap(arena->map, (size_t)arena->map_bytes);
    memset(arena, 0, sizeof *arena);
}
