// SPDX-License-Identifier: Apache-2.0
// What every kernel file includes: arrays, checks, dispatch on dtype.
#pragma once
#include "brainevent/check.h"
#include "brainevent/dispatch.h"
#include "brainevent/tensor.h"
