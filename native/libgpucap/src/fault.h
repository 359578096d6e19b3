/*
 * Fault points: in a build with GPUCAP_FAULTS, GPUCAP_FAULT=name:n kills the process with SIGKILL
 * when it comes to that point for the n-th time, and GPUCAP_FAULT=name:n:stop stops it. In the real
 * build they are nothing.
 */
#ifndef GPUCAP_FAULT_H
#define GPUCAP_FAULT_H

#ifdef GPUCAP_FAULTS
void fault_point(const char *name);
#define FAULT(name) fault_point(#name)
#else
#define FAULT(name) ((void)0)
#endif

#endif
