// SPDX-License-Identifier: Apache-2.0
// The faults that the self-test plants, one at a time. A comment `<- name` marks the line that the
// finding has to name.
#pragma once

enum Fault {
  none,
  // sparse.cuh
  past_the_end,
  not_cleared,
  not_atomic,
  no_blocks,
  lanes_leave,
  half_a_warp,
  rows_unwritten,
  no_barrier,
  lockstep_assumed,
  barrier_in_branch,
  too_little_shared,
  reused_too_soon,
  tail_unwritten,
  index_of_32_bits,
  // semantics.cuh
  no_syncwarp,
  blocks_assumed_ordered,
  shared_unwritten,
  input_written,
  misaligned_vector,
  local_array_exceeded,
  host_waits,
  two_barriers,
  mask_without_self,
  assertion,
  wait_for_ever,
  spin_for_ever,
  // other.cuh
  divide_by_zero,
  other_threads_local,
  host_pointer,
  copy_of_nothing,
  copy_too_long,
  too_much_static_shared,
  too_much_dynamic_shared,
  lines_of_shuffles_differ,
  check_in_kernel,
  shift_too_far,
  float_too_large,
  memcpy_too_long,
  launcher_reads,
};
