/* Include the template EACH for each 8-bit float. */
#define FLOAT8 1

#define DTYPE e4m3
#define ELEMENT 1
#include EACH

#define DTYPE e5m2
#define ELEMENT 1
#include EACH

#undef FLOAT8
#undef EACH
