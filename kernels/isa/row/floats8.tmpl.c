/* EACH, a template, for each float of 8 bits. */
#define FLOAT8 1

#define DTYPE e4m3
#define ELEMENT 1
#include EACH

#define DTYPE e5m2
#define ELEMENT 1
#include EACH

#undef FLOAT8
#undef EACH
