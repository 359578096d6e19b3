/*
 * libtakes.so: a library that is linked with the driver, as extensions of
 * programs are. take_pieces(mib) takes pieces until refused.
 */
#include "simple.h"

int take_pieces(unsigned long mib);

int take_pieces(unsigned long mib) {
    CUdeviceptr pointers[256];
    use_device();
    return take_all(mib << 20, pointers, 256);
}
