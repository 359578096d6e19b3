/* stub MIB OPENED: ask() of stub.c, in the program itself or in a library that it is linked with.
 */
#include <stdlib.h>

int ask(size_t mib, int opened);

int main(int argc, char **argv) {
    return argc < 3 ? 1 : ask((size_t)atoi(argv[1]), atoi(argv[2]));
}
