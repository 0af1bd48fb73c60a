// Causal attention with rotary positions, and RMSNorm, with their gradients, in float32 on one thread (llama_kernel.py).
//
// What a token can't see is not computed: a row of weights ends with the vector in which its own token is. Queries, keys
// and values lie side by side as the linear map left them, [B, T, E] of H, G and G heads of K numbers, and so do their
// gradients. Those of one head are copied to rows of whole vectors, which fit in the second cache, and turned there.
#define REAL float
#define D 16  // numbers in a vector, at most
#include "small_products.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

typedef decltype(Vector{} < Vector{}) Places;
constexpr int ROWS = SUMS / 3;  // of a tile, which has up to three vectors of columns
constexpr int32_t FIRST[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// c [ROWS, U LANES] (+)= a [ROWS, k] b [k, U LANES]
template <int U>
static void tile(const float* a, int64_t a_row, int64_t a_column, const float* b, int64_t b_row, int64_t k, float* c,
                 int64_t c_row, bool add) {
  Vector sum[ROWS][U] = {};
  for (int64_t i = 0; i < k; ++i, a += a_column, b += b_row) {
    Vector of_b[U];
    for (int u = 0; u < U; ++u) of_b[u] = load<Vector>(b + u * LANES);
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; ++r)
      for (int u = 0; u < U; ++u) sum[r][u] += a[r * a_row] * of_b[u];
  }
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; ++r)
    for (int u = 0; u < U; ++u) {
      float* to = c + r * c_row + u * LANES;
      store(to, add ? load<Vector>(to) + sum[r][u] : sum[r][u]);
    }
}

// the same for n columns, whole vectors
static void multiply(const float* a, int64_t a_row, int64_t a_column, const float* b, int64_t b_row, int64_t k,
                     float* c, int64_t c_row, int64_t n, bool add) {
  for (int64_t j = 0; j < n;) {
    const int64_t left = (n - j) / LANES, vectors = left == 4 ? 2 : std::min<int64_t>(left, 3);
    (vectors == 3 ? tile<3> : vectors == 2 ? tile<2> : tile<1>)(a, a_row, a_column, b + j, b_row, k, c + j, c_row, add);
    j += vectors * LANES;
  }
}

// of row `seen` - 1: minus infinity from token `seen` on, then softmax
static void softmax(float* x, int64_t seen, int64_t size) {
  for (int64_t j = seen / LANES * LANES; j < size; j += LANES) {
    Places place;
    std::memcpy(&place, FIRST, sizeof place);
    store(x + j, place < int32_t(seen - j) ? load<Vector>(x + j) : Vector{} - INFINITY);
  }
  Vector most = load<Vector>(x), sum = {};
  for (int64_t j = LANES; j < size; j += LANES) {
    const Vector next = load<Vector>(x + j);
    most = next > most ? next : most;
  }
  most = over_all<true>(most);
  for (int64_t j = 0; j < size; j += LANES) {
    const Vector e = exponential(load<Vector>(x + j) - most);
    store(x + j, e);
    sum += e;
  }
  const Vector share = 1 / over_all<false>(sum);
  for (int64_t j = 0; j < size; j += LANES) store(x + j, share * load<Vector>(x + j));
}

// the gradient of a row of scores, from that of its weights
static void softmax_back(const float* weights, float* grad, int64_t size) {
  Vector sum = {};
  for (int64_t j = 0; j < size; j += LANES) sum += load<Vector>(weights + j) * load<Vector>(grad + j);
  sum = over_all<false>(sum);
  for (int64_t j = 0; j < size; j += LANES)
    store(grad + j, load<Vector>(weights + j) * (load<Vector>(grad + j) - sum));
}

// The sizes of a head's matrices: T tokens of K numbers, both filled up to whole vectors; a row of T x T numbers has a
// line of the cache more, so that columns fall on all of its sets.
struct Head {
  int64_t tokens, dim;
  int64_t high() const { return (tokens + FILLED - 1) / FILLED * FILLED; }
  int64_t wide() const { return (dim + FILLED - 1) / FILLED * FILLED; }
  int64_t line() const { return high() + LINE; }
  int64_t end(int64_t top) const { return (top + ROWS + LANES - 1) / LANES * LANES; }  // of the rows from `top` on
  int64_t below(int64_t top) const { return std::min(top + ROWS, tokens); }

  void gather(const float* from, int64_t step, float* to) const {
    for (int64_t t = 0; t < tokens; ++t) std::memcpy(to + t * wide(), from + t * step, sizeof(float) * dim);
  }
  void scatter(const float* from, float* to, int64_t step) const {
    for (int64_t t = 0; t < tokens; ++t) std::memcpy(to + t * step, from + t * wide(), sizeof(float) * dim);
  }
  // [T, K] as [K, T]
  void transpose(const float* from, float* to) const {
    for (int64_t t = 0; t < high(); t += TILE)
      for (int64_t i = 0; i < wide(); i += TILE) {
        Strip square[TILE];
        for (int x = 0; x < TILE; ++x) square[x] = load<Strip>(from + (t + x) * wide() + i);
        ::transpose(square);
        for (int x = 0; x < TILE; ++x) store(to + (i + x) * line() + t, square[x]);
      }
  }
};

// Cosines and sines of a head's numbers, two for each angle.
struct Turns {
  float *cosines, *sines;
  int64_t size;

  // x times `by`, turned forward (1) or back (-1): the pair (a, b) becomes (a cos - b sin, b cos + a sin)
  void turn(float* x, float by, float direction) const {
    for (int64_t i = 0; i < size; i += LANES) {
      const Vector v = load<Vector>(x + i), other = swapped<1>(v, std::make_integer_sequence<int, LANES>());
      store(x + i, by * (v * load<Vector>(cosines + i) + direction * (other * load<Vector>(sines + i))));
    }
  }
};

// Matrices one after the other, zeros at first.
struct Room {
  Head head;
  float* next;
  float* rows() { return taken(head.high() * head.wide()); }       // [T, K]
  float* turned_rows() { return taken(head.wide() * head.line()); }  // [K, T]
  float* square() { return taken(head.high() * head.line()); }     // [T, T]
  Turns turns(const float* cosines, const float* sines) {
    const Turns made{rows(), rows(), head.high() * head.wide()};
    for (int64_t t = 0; t < head.tokens; ++t)
      for (int64_t i = 0; i < head.dim; ++i) {
        made.cosines[t * head.wide() + i] = cosines[t * (head.dim / 2) + i / 2];
        made.sines[t * head.wide() + i] = (i % 2 ? 1 : -1) * sines[t * (head.dim / 2) + i / 2];
      }
    return made;
  }

 private:
  float* taken(int64_t numbers) {
    float* from = next;
    std::memset(from, 0, sizeof(float) * numbers);
    next += numbers;
    return from;
  }
};

extern "C" {
// Numbers of room for the weights of a head, and for the matrices of one at a time.
int64_t weights_room(int64_t tokens) { return Head{tokens, 1}.high() * Head{tokens, 1}.line(); }
int64_t room(int64_t tokens, int64_t dim) {
  const Head head{tokens, dim};
  return 9 * head.high() * head.wide() + head.wide() * head.line() + head.high() * head.line();
}

// y [B, T, H, K] and the weights of attention, those of a head `weights_step` after the last one's; cosines and
// sines are [T, K / 2]
void attend(int64_t sequences, int64_t tokens, int64_t heads, int64_t kv_heads, int64_t dim, float scale,
            const float* qkv, const float* cosines, const float* sines, float* weights, int64_t weights_step, float* room, float* y) {
  const Head head{tokens, dim};
  const int64_t maps = (heads + 2 * kv_heads) * dim, wide = head.wide(), line = head.line();
  Room free{head, room};
  const Turns turns = free.turns(cosines, sines);
  float *q = free.rows(), *k = free.rows(), *v = free.rows(), *out = free.rows(), *turned_k = free.turned_rows();
  for (int64_t b = 0; b < sequences; ++b, qkv += tokens * maps, y += tokens * heads * dim)
    for (int64_t h = 0; h < heads; ++h, weights += weights_step) {
      const int64_t of_keys = heads + h * kv_heads / heads;
      head.gather(qkv + h * dim, maps, q);
      turns.turn(q, scale, 1);
      if (h == 0 || of_keys != heads + (h - 1) * kv_heads / heads) {
        head.gather(qkv + of_keys * dim, maps, k);
        turns.turn(k, 1, 1);
        head.transpose(k, turned_k);
        head.gather(qkv + (of_keys + kv_heads) * dim, maps, v);
      }
      for (int64_t top = 0; top < tokens; top += ROWS) {
        float* rows = weights + top * line;
        multiply(q + top * wide, wide, 1, turned_k, line, dim, rows, line, head.end(top), false);
        for (int64_t t = top; t < head.below(top); ++t) softmax(weights + t * line, t + 1, head.end(top));
        multiply(rows, line, 1, v, wide, head.below(top), out + top * wide, wide, wide, false);
      }
      head.scatter(out, y + h * dim, heads * dim);
    }
}

// The gradients of queries, keys and values from that of y
void attend_back(int64_t sequences, int64_t tokens, int64_t heads, int64_t kv_heads, int64_t dim, float scale,
                 const float* qkv, const float* cosines, const float* sines, const float* weights, int64_t weights_step,
                 float* room, const float* grad, float* of_qkv) {
  const Head head{tokens, dim};
  const int64_t maps = (heads + 2 * kv_heads) * dim, wide = head.wide(), line = head.line();
  Room free{head, room};
  const Turns turns = free.turns(cosines, sines);
  float *q = free.rows(), *k = free.rows(), *v = free.rows(), *of_q = free.rows(), *of_k = free.rows();
  float *of_v = free.rows(), *of_y = free.rows(), *turned_v = free.turned_rows(), *scores = free.square();
  for (int64_t b = 0; b < sequences; ++b, qkv += tokens * maps, of_qkv += tokens * maps, grad += tokens * heads * dim)
    for (int64_t h = 0; h < heads; ++h, weights += weights_step) {
      const int64_t of_keys = heads + h * kv_heads / heads;
      const bool first = h == 0 || of_keys != heads + (h - 1) * kv_heads / heads;
      const bool last = h == heads - 1 || of_keys != heads + (h + 1) * kv_heads / heads;
      head.gather(qkv + h * dim, maps, q);
      turns.turn(q, scale, 1);
      head.gather(grad + h * dim, heads * dim, of_y);
      if (first) {
        head.gather(qkv + of_keys * dim, maps, k);
        turns.turn(k, 1, 1);
        head.gather(qkv + (of_keys + kv_heads) * dim, maps, v);
        head.transpose(v, turned_v);
      }
      for (int64_t top = 0; top < tokens; top += ROWS) {
        float* rows = scores + top * line;
        multiply(of_y + top * wide, wide, 1, turned_v, line, dim, rows, line, head.end(top), false);
        for (int64_t t = top; t < head.below(top); ++t) softmax_back(weights + t * line, scores + t * line, head.end(top));
        multiply(rows, line, 1, k, wide, head.below(top), of_q + top * wide, wide, wide, false);
      }
      for (int64_t top = 0; top < tokens; top += ROWS) {  // of the tokens from here on
        const int64_t at = top * line + top, from = top * wide, seen_by = tokens - top;
        multiply(weights + at, 1, line, of_y + from, wide, seen_by, of_v + from, wide, wide, !first);
        multiply(scores + at, 1, line, q + from, wide, seen_by, of_k + from, wide, wide, !first);
      }
      turns.turn(of_q, scale, -1);
      head.scatter(of_q, of_qkv + h * dim, maps);
      if (last) {
        turns.turn(of_k, 1, -1);
        head.scatter(of_k, of_qkv + of_keys * dim, maps);
        head.scatter(of_v, of_qkv + (of_keys + kv_heads) * dim, maps);
      }
    }
}

// y = weight x / sqrt(mean of x^2 + eps), and the inverse of that root, of each row
void rms_norm(int64_t rows, int64_t width, float eps, const float* x, const float* weight, float* inverse, float* y) {
  const int64_t whole = width / LANES * LANES;
  for (int64_t r = 0; r < rows; ++r, x += width, y += width) {
    Vector squares = {};
    float square = 0;
    for (int64_t i = 0; i < whole; i += LANES) squares += load<Vector>(x + i) * load<Vector>(x + i);
    for (int64_t i = whole; i < width; ++i) square += x[i] * x[i];
    const float by = inverse[r] = 1 / std::sqrt((square + over_all<false>(squares)[0]) / width + eps);
    for (int64_t i = 0; i < whole; i += LANES) store(y + i, by * load<Vector>(x + i) * load<Vector>(weight + i));
    for (int64_t i = whole; i < width; ++i) y[i] = by * x[i] * weight[i];
  }
}

// The gradients of x and of the weight, which is added to what is there, from that of y
void rms_norm_back(int64_t rows, int64_t width, const float* grad, const float* x, const float* weight,
                   const float* inverse, float* of_x, float* of_weight) {
  const int64_t whole = width / LANES * LANES;
  for (int64_t r = 0; r < rows; ++r, grad += width, x += width, of_x += width) {
    Vector products = {};
    float along = 0;
    for (int64_t i = 0; i < whole; i += LANES)
      products += load<Vector>(grad + i) * load<Vector>(weight + i) * load<Vector>(x + i);
    for (int64_t i = whole; i < width; ++i) along += grad[i] * weight[i] * x[i];
    const float by = inverse[r], share = (along + over_all<false>(products)[0]) * by * by / width;
    for (int64_t i = 0; i < whole; i += LANES) {
      const Vector g = load<Vector>(grad + i), v = load<Vector>(x + i);
      store(of_x + i, by * (g * load<Vector>(weight + i) - share * v));
      store(of_weight + i, load<Vector>(of_weight + i) + g * (by * v));
    }
    for (int64_t i = whole; i < width; ++i) {
      of_x[i] = by * (grad[i] * weight[i] - share * x[i]);
      of_weight[i] += grad[i] * (by * x[i]);
    }
  }
}
}
