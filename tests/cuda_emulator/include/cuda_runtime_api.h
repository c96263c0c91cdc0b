// SPDX-License-Identifier: Apache-2.0
// Stands in for cuda_runtime_api.h when a kernel file is built for the emulator.
#pragma once
#include "cuemu/cuemu.h"
