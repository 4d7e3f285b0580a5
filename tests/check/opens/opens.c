// What a wheel's library says of itself, where no Python can be asked: opens LIBRARY
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **words)
{
    void *library = dlopen(count > 1 ? words[1] : "", RTLD_NOW);
    const char *(*build)(void) =
        library ? (const char *(*)(void))dlsym(library, "kvb_build") : NULL;
    if (!build)
        return fprintf(stderr, "%s\n", dlerror()), 1;
    return puts(build()) < 0;
}
