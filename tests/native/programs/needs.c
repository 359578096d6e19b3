/* libneeds.so: needs libfinds.so, which lies beside it, and finds nothing by itself. */
int take_pieces(unsigned long mib);
int needs(void);

int needs(void) {
    return take_pieces(0);
}
