#ifndef GPUCAP_CONTEXTS_H
#define GPUCAP_CONTEXTS_H

/* A forked child has none of the parent's contexts. */
void contexts_forget(void);

#endif
