// SPDX-License-Identifier: Apache-2.0
// The runtime as one unit: one compiler run, and everything can be inlined.
#include "fibers.cc"
#include "findings.cc"
#include "memory.cc"
#include "checker.cc"
#include "undefined.cc"
#include "rendezvous.cc"
#include "launch.cc"
