// SPDX-License-Identifier: Apache-2.0
// Walks: how the edges along a line (a row or a column) of a matrix are found.
//
// A walk is made of its `ARRAYS` structure arrays and calls `f(far, tag)` for the edges of a line:
// `far` is the other end, inside the matrix, and `tag` where the weight is.
// `visit(line, lane, lanes, f)` visits the share of one of `lanes` workers; `mean()` is about how
// many can share a line; `begin()` is called once by every thread, when its sample is known.
// Arrays may hold anything: what points outside the matrix is passed over.
#pragma once
#include "parts.cuh"

namespace be {

// What every walk over a list of edges does.
template <class Self>
struct Listed {
  template <class F>
  __device__ __forceinline__ void visit(int64_t line, int lane, int lanes, F&& f) const {
    const Self& self = *static_cast<const Self*>(this);
    const int64_t last = self.last(line);
    for (int64_t e = self.first(line) + lane; e < last; e += lanes) {
      const int64_t far = self.far(line, e), tag = self.tag(line, e);
      if (inside(far, self.extents.others) && inside(tag, self.edges)) f(far, tag);
    }
  }
  __device__ __forceinline__ int64_t tag(int64_t, int64_t e) const { return e; }
  __device__ __forceinline__ void begin() {}
  int64_t mean() const {
    const Self& self = *static_cast<const Self*>(this);
    return self.extents.lines ? self.edges / self.extents.lines : 0;
  }
};

// ids[ptr[line] .. ptr[line + 1]] are the far ends, in storage order.
struct Compressed : Listed<Compressed> {
  static constexpr int ARRAYS = 2;
  Ids ids, ptr;
  Extents extents;
  int64_t edges;

  Compressed(const BE::Tensor* s, const Call& call)
      : ids(s[0]), ptr(s[1]), extents(call.extents()), edges(s[0].size(call.levels)) {}
  __device__ __forceinline__ int64_t first(int64_t line) const { return bound(ptr[line]); }
  __device__ __forceinline__ int64_t last(int64_t line) const { return bound(ptr[line + 1]); }
  __device__ __forceinline__ int64_t far(int64_t, int64_t e) const { return ids[e]; }
  __device__ __forceinline__ int64_t bound(int64_t e) const {
    return e < 0 ? 0 : e > edges ? edges : e;
  }
  __device__ __forceinline__ void advance(const Levels& levels, int operand, int64_t sample) {
    ids.advance(levels.offset(operand, sample));
    ptr.advance(levels.offset(operand + 1, sample));
  }
};

// The same with the weights elsewhere, as a mirror has them: tags[e] says where.
struct Tagged : Listed<Tagged> {
  static constexpr int ARRAYS = 3;
  Compressed lines;
  Ids tags;
  Extents extents;
  int64_t edges;

  Tagged(const BE::Tensor* s, const Call& call)
      : lines(s, call), tags(s[2]), extents(call.extents()), edges(lines.edges) {}
  __device__ __forceinline__ int64_t first(int64_t line) const { return lines.first(line); }
  __device__ __forceinline__ int64_t last(int64_t line) const { return lines.last(line); }
  __device__ __forceinline__ int64_t far(int64_t, int64_t e) const { return lines.ids[e]; }
  __device__ __forceinline__ int64_t tag(int64_t, int64_t e) const { return tags[e]; }
  __device__ __forceinline__ void advance(const Levels& levels, int operand, int64_t sample) {
    lines.advance(levels, operand, sample);
    tags.advance(levels.offset(operand + 2, sample));
  }
};

// A table with a row of far ends for every line.
struct Table : Listed<Table> {
  static constexpr int ARRAYS = 1;
  Ids ids;
  Extents extents;
  int64_t width, edges;

  Table(const BE::Tensor* s, const Call& call)
      : ids(s[0]),
        extents(call.extents()),
        width(s[0].size(call.levels + 1)),
        edges(s[0].size(call.levels) * width) {}
  __device__ __forceinline__ int64_t first(int64_t line) const { return line * width; }
  __device__ __forceinline__ int64_t last(int64_t line) const { return (line + 1) * width; }
  __device__ __forceinline__ int64_t far(int64_t, int64_t e) const { return ids[e]; }
  __device__ __forceinline__ void advance(const Levels& levels, int operand, int64_t sample) {
    ids.advance(levels.offset(operand, sample));
  }
};

// Every pair of a row and a column: a dense matrix, stored by rows.
struct Full {
  static constexpr int ARRAYS = 0;
  Extents extents;
  int64_t edges, line_step, far_step;

  Full(const BE::Tensor*, const Call& call)
      : extents(call.extents()),
        edges(extents.lines * extents.others),
        line_step(call.along_columns ? 1 : extents.others),
        far_step(call.along_columns ? extents.lines : 1) {}
  template <class F>
  __device__ __forceinline__ void visit(int64_t line, int lane, int lanes, F&& f) const {
    for (int64_t far = lane; far < extents.others; far += lanes)
      f(far, line * line_step + far * far_step);
  }
  __device__ __forceinline__ void advance(const Levels&, int, int64_t) {}
  __device__ __forceinline__ void begin() {}
  int64_t mean() const { return extents.others; }
};

// Edges without any order: a row and a column for each. There are no lines to walk along.
struct Pairs {
  static constexpr int ARRAYS = 2;
  Ids row, col;
  int64_t edges;

  Pairs(const BE::Tensor* s, const Call& call)
      : row(s[0]), col(s[1]), edges(s[0].size(call.levels)) {}
  // Whether an edge lies inside the matrix, and from where to where it leads.
  __device__ __forceinline__ bool ends(int64_t edge, const Call& call, int64_t& source,
                                       int64_t& target) const {
    const int64_t i = row[edge], j = col[edge];
    source = call.transpose ? i : j;
    target = call.transpose ? j : i;
    return inside(i, call.rows) && inside(j, call.cols);
  }
  __device__ __forceinline__ void advance(const Levels& levels, int operand, int64_t sample) {
    row.advance(levels.offset(operand, sample));
    col.advance(levels.offset(operand + 1, sample));
  }
  __device__ __forceinline__ void begin() {}
};

}  // namespace be
