// SPDX-License-Identifier: Apache-2.0
// The CUDA vocabulary for g++: everything a kernel file may name, in the order of dependence.
//
// Scope: what sparse operators need. A name that is missing fails to compile, on purpose.
#pragma once
#include "cuemu/language.h"
#include "cuemu/runtime.h"
#include "cuemu/host.h"
#include "cuemu/launch.h"
#include "cuemu/sync.h"
#include "cuemu/half.h"
#include "cuemu/atomics.h"
#include "cuemu/intrinsics.h"
