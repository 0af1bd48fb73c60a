// Losses and gradients of packed memorizers whose examples have a context each, one value a head.
//
// Compiled for one shape (memorizer_kernel.py): REAL, H heads, N tokens of a context at PLACES, D width, C outputs (1: a
// number), and K and LOOKS of what looks at the tokens. An example finds its tokens at row at[x] of a table [T, N, D]: they are read
// where they lie, once, and all that follows from them is computed while they are in the cache, for EXAMPLES at a time.
//
// What looks at the tokens of an example has K numbers, one for all heads (LOOKS = 1) or one for each (LOOKS = H). A
// head's `fold` [K, S] makes of it a row of S numbers: D that are multiplied with a token, and one for each of the
// PLACES where a token can be. Products and place together are the logit; `values` [H, S] gives values in the same way.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

constexpr int rounded_up(int size, int to) { return (size + to - 1) / to * to; }

#ifdef __AVX512F__
constexpr int REGISTER = 64 / sizeof(REAL), SUMS = 24;  // numbers in a register; registers for the sums of a product
#else
constexpr int REGISTER = 32 / sizeof(REAL), SUMS = 12;
#endif
constexpr int TILE = 8;  // tokens are turned in squares of it; D is a multiple
constexpr int LANES = D % REGISTER == 0 ? REGISTER : TILE;
constexpr int S = D + PLACES;  // PLACES: after the N tokens come none, with a logit of minus infinity
constexpr int OUTPUTS = rounded_up(C, LANES), HEADS = rounded_up(H, TILE);
constexpr int EXAMPLES = 32;
constexpr int LINE = 64 / sizeof(REAL);
constexpr int ROW = (rounded_up(H * S, LINE) / LINE | 1) * LINE;  // an odd number of lines: rows fall on all cache sets

template <int L> struct Lanes {
  typedef REAL V __attribute__((vector_size(sizeof(REAL) * L)));
};
typedef Lanes<LANES>::V Vector;
typedef Lanes<TILE>::V Strip;

template <typename V> static inline V load(const REAL* from) {
  V v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
template <typename V> static inline void store(REAL* to, V v) { std::memcpy(to, &v, sizeof v); }

// ---- products --------------------------------------------------------------------------------------------------------

// c[r, :] (+)= sum over k < INNER of a[r, k] b[k, :], for R rows and U vectors of L numbers, whose sums stay in registers
template <int R, int U, int L, int INNER, int A_ROW, int A_COLUMN, int B_ROW, int C_ROW, bool ADD>
static inline void block(const REAL* a, const REAL* b, REAL* c) {
  typedef typename Lanes<L>::V V;
  V sum[R][U];
  for (int r = 0; r < R; ++r)
    for (int u = 0; u < U; ++u) sum[r][u] = ADD ? load<V>(c + r * C_ROW + u * L) : V{};
  for (int k = 0; k < INNER; ++k) {
    V row[U];
    for (int u = 0; u < U; ++u) row[u] = load<V>(b + k * B_ROW + u * L);
    for (int r = 0; r < R; ++r)
      for (int u = 0; u < U; ++u) sum[r][u] += a[r * A_ROW + k * A_COLUMN] * row[u];
  }
  for (int r = 0; r < R; ++r)
    for (int u = 0; u < U; ++u) store(c + r * C_ROW + u * L, sum[r][u]);
}

// c [ROWS, COLUMNS] (+)= a [ROWS, INNER] b [INNER, COLUMNS]; a's steps from row to row and from column to column are
// free, so that it can be turned; the rows of b and c are contiguous
template <int ROWS, int INNER, int COLUMNS, int A_ROW, int A_COLUMN, int B_ROW, int C_ROW, bool ADD>
static inline void multiply(const REAL* a, const REAL* b, REAL* c) {
  constexpr int L = COLUMNS % LANES == 0 ? LANES : TILE, vectors = COLUMNS / L;
  constexpr int U = vectors % 4 == 0 ? 4 : vectors % 3 == 0 ? 3 : vectors % 2 == 0 ? 2 : 1;
  constexpr int blocks = (ROWS + SUMS / U - 1) / (SUMS / U), R = (ROWS + blocks - 1) / blocks, rest = ROWS % R;
  static_assert(COLUMNS % L == 0, "columns are filled up to whole vectors: D, PLACES and, with LOOKS, K to 8 or more");
  for (int j = 0; j < COLUMNS; j += U * L) {
    for (int r = 0; r + R <= ROWS; r += R)
      block<R, U, L, INNER, A_ROW, A_COLUMN, B_ROW, C_ROW, ADD>(a + r * A_ROW, b + j, c + r * C_ROW + j);
    if constexpr (rest > 0) {
      constexpr int r = ROWS - rest;
      block<rest, U, L, INNER, A_ROW, A_COLUMN, B_ROW, C_ROW, ADD>(a + r * A_ROW, b + j, c + r * C_ROW + j);
    }
  }
}

static inline void transpose(Strip* a) {
  Strip b[TILE], c[TILE];
  for (int i = 0; i < TILE; i += 2) {
    b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < TILE; i += 4)
    for (int j = 0; j < 2; ++j) {
      c[i + 2 * j] = __builtin_shufflevector(b[i + j], b[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      c[i + 2 * j + 1] = __builtin_shufflevector(b[i + j], b[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  for (int i = 0; i < TILE / 2; ++i) {
    a[i] = __builtin_shufflevector(c[i], c[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    a[i + 4] = __builtin_shufflevector(c[i], c[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

// tokens [N, D] as [D, PLACES], the last columns zero
static inline void turn(const REAL* tokens, REAL* turned) {
  for (int d = 0; d < D; d += TILE)
    for (int i = 0; i < PLACES; i += TILE) {
      Strip square[TILE] = {};
      for (int j = 0; j < TILE && i + j < N; ++j) square[j] = load<Strip>(tokens + (i + j) * D + d);
      transpose(square);
      for (int j = 0; j < TILE; ++j) store(turned + (d + j) * PLACES + i, square[j]);
    }
}

// ---- softmax ---------------------------------------------------------------------------------------------------------

// exp(x) for x <= 0 to the last bit or two, exactly 0 far below; what is not a number stays so
static inline Vector exponential(Vector x) {
  constexpr bool single = sizeof(REAL) == 4;
  constexpr int terms = single ? 7 : 13, bits = single ? 23 : 52;
  constexpr long double LN2 = 0.693147180559945309417232121458L;
  constexpr REAL high = LN2, low = LN2 - high, rounder = single ? 0x1.8p23 : 0x1.8p52, least = single ? -87 : -708;
  typedef decltype(x < x) Whole;
  const Whole some = x > least;
  const Vector rounded = x * REAL(1 / LN2) + rounder, whole = rounded - rounder;  // x = whole ln 2 + rest
  const Vector rest = (x - whole * high) - whole * low;
  REAL coefficient[terms + 1] = {1};
  for (int k = 1; k <= terms; ++k) coefficient[k] = coefficient[k - 1] / k;
  Vector sum = Vector{} + coefficient[terms];
  for (int k = terms - 1; k >= 0; --k) sum = sum * rest + coefficient[k];
  sum = (Vector)((Whole)sum + ((Whole)rounded << bits));  // times 2^whole
  return some ? sum : x != x ? x : Vector{};
}

template <int STEP, int... I> static inline Vector swapped(Vector v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, (I ^ STEP)...);
}
// the sum, or the maximum, of all numbers of a vector, in each of its places
template <bool MAXIMUM, int STEP = LANES / 2> static inline Vector over_all(Vector v) {
  const Vector other = swapped<STEP>(v, std::make_integer_sequence<int, LANES>());
  const Vector both = MAXIMUM ? (v > other ? v : other) : v + other;
  if constexpr (STEP > 1) return over_all<MAXIMUM, STEP / 2>(both);
  return both;
}

// logits [SIZE] as exp(logit - largest), in place; gives the sum of these, and the largest, in all places of a vector
template <int SIZE> static inline Vector exponentials(REAL* logits, Vector& largest) {
  largest = load<Vector>(logits);
  for (int i = LANES; i < SIZE; i += LANES) {
    const Vector next = load<Vector>(logits + i);
    largest = next > largest ? next : largest;
  }
  largest = over_all<true>(largest);
  Vector sum = {};
  for (int i = 0; i < SIZE; i += LANES) {
    const Vector e = exponential(load<Vector>(logits + i) - largest);
    store(logits + i, e);
    sum += e;
  }
  return over_all<false>(sum);
}

// ---- a block of examples ---------------------------------------------------------------------------------------------

struct Block {
  REAL looks[EXAMPLES * LOOKS * K];  // [EXAMPLES, LOOKS, K]
  REAL seen[EXAMPLES * ROW];         // [EXAMPLES, H, S], and then its gradient
  REAL weights[EXAMPLES * H * PLACES], values[EXAMPLES * H * PLACES];
  REAL heads[EXAMPLES * HEADS], d_heads[EXAMPLES * HEADS];  // what each head says of an example
  REAL outputs[EXAMPLES * OUTPUTS];                         // and then their gradient
  REAL turned[D * PLACES], spread[H * PLACES], d_looks[EXAMPLES * K], fold_turned[S * K];
  REAL read_out[H * OUTPUTS], read_out_turned[OUTPUTS * HEADS], d_read_out[H * OUTPUTS], d_bias[OUTPUTS];
};

// weights, values and what the heads say of one example, from its tokens and the rows that they are seen by
static inline void attend(const REAL* tokens, const REAL* seen, const REAL* of_values, const REAL* absent, REAL* turned,
                          REAL* weights, REAL* values, REAL* heads) {
  turn(tokens, turned);
  multiply<H, D, PLACES, S, 1, PLACES, PLACES, false>(seen, turned, weights);
  multiply<H, D, PLACES, S, 1, PLACES, PLACES, false>(of_values, turned, values);
  for (int h = 0; h < H; ++h) {
    REAL *w = weights + h * PLACES, *v = values + h * PLACES;
    for (int i = 0; i < PLACES; i += LANES) {
      store(w + i, load<Vector>(w + i) + load<Vector>(seen + h * S + D + i) + load<Vector>(absent + i));
      store(v + i, load<Vector>(v + i) + load<Vector>(of_values + h * S + D + i));
    }
    Vector largest, mean = {};
    const Vector one = 1 / exponentials<PLACES>(w, largest) + Vector{};
    for (int i = 0; i < PLACES; i += LANES) {
      const Vector weight = load<Vector>(w + i) * one;
      store(w + i, weight);
      mean += weight * load<Vector>(v + i);
    }
    heads[h] = over_all<false>(mean)[0];
  }
}

// back from what the heads say to the rows that the tokens of one example are seen by; adds to the values' gradient
static inline void attend_back(const REAL* tokens, const REAL* weights, const REAL* values, const REAL* heads,
                               const REAL* d_heads, REAL* spread, REAL* d_seen, REAL* d_values) {
  for (int h = 0; h < H; ++h)
    for (int i = h * PLACES; i < (h + 1) * PLACES; i += LANES) {
      const Vector share = load<Vector>(weights + i) * d_heads[h];
      const int place = h * S + D + i - h * PLACES;
      store(spread + i, share);
      store(d_seen + place, share * (load<Vector>(values + i) - heads[h]));
      store(d_values + place, load<Vector>(d_values + place) + share);
    }
  multiply<H, N, D, S, 1, D, S, false>(d_seen + D, tokens, d_seen);
  multiply<H, N, D, PLACES, 1, D, S, true>(spread, tokens, d_values);
}

#if C == 1
typedef REAL Label;
// outputs become the gradient of a share of the squared error, which is returned
static inline double loss_of(REAL* outputs, Label label, REAL share) {
  const REAL error = outputs[0] - label;
  std::memset(outputs, 0, sizeof(REAL) * OUTPUTS);
  outputs[0] = 2 * error * share;
  return double(error) * error * share;
}
#else
typedef int64_t Label;
// outputs become the gradient of a share of the cross-entropy in nats, which is returned
static inline double loss_of(REAL* outputs, Label label, REAL share) {
  const REAL right = outputs[label];
  Vector largest;
  const Vector sum = exponentials<OUTPUTS>(outputs, largest);
  const Vector factor = share / sum;
  for (int i = 0; i < OUTPUTS; i += LANES) store(outputs + i, load<Vector>(outputs + i) * factor);
  outputs[label] -= share;
  return double(share) * (std::log(sum[0]) + (largest[0] - right));
}
#endif

extern "C" {

// looks [models, examples, LOOKS, K], folds [models, H, K, S], of_values [models, H, S], read_out [models, H, C],
// bias [models, C], absent [models, PLACES] (0, or minus infinity where a context has no token), labels and share
// [models, examples] (share: of an example in its model's loss, 0 where there is none)
// -> loss [models] and the gradients d_...; that of looks only where each head has its own
void memorizer_gradients(const REAL* looks, const REAL* folds, const REAL* of_values, const REAL* read_out,
                         const REAL* bias, const REAL* absent, const Label* labels, const REAL* share,
                         const REAL* table, const int64_t* at, int64_t models, int64_t examples, REAL* loss,
                         REAL* d_looks, REAL* d_folds, REAL* d_values, REAL* d_read_out, REAL* d_bias) {
  static thread_local Block block;  // zero at first; what rows are filled up with stays so
  Block& b = block;
  std::memset(d_folds, 0, sizeof(REAL) * models * H * K * S);
  std::memset(d_values, 0, sizeof(REAL) * models * H * S);
  if (LOOKS > 1) std::memset(d_looks, 0, sizeof(REAL) * models * examples * LOOKS * K);
  for (int64_t p = 0; p < models; ++p) {
    double total = 0;
    for (int h = 0; h < H; ++h)
      for (int c = 0; c < C; ++c)
        b.read_out[h * OUTPUTS + c] = b.read_out_turned[c * HEADS + h] = read_out[(p * H + h) * C + c];
    std::memset(b.d_read_out, 0, sizeof b.d_read_out);
    std::memset(b.d_bias, 0, sizeof b.d_bias);
    for (int64_t next = p * examples; next < (p + 1) * examples;) {
      int64_t places[EXAMPLES];  // of the block's examples, those that are there
      int there = 0;
      for (; next < (p + 1) * examples && there < EXAMPLES; ++next)
        if (share[next] != 0) places[there++] = next;
      for (int x = 0; x < there; ++x)
        std::memcpy(b.looks + x * LOOKS * K, looks + places[x] * LOOKS * K, sizeof(REAL) * LOOKS * K);
      std::memset(b.looks + there * LOOKS * K, 0, sizeof(REAL) * (EXAMPLES - there) * LOOKS * K);
      for (int h = 0; h < H; ++h)
        multiply<EXAMPLES, K, S, LOOKS * K, 1, S, ROW, false>(b.looks + h % LOOKS * K, folds + (p * H + h) * K * S,
                                                             b.seen + h * S);
      for (int x = 0; x < there; ++x) {
        const REAL* following = table + at[places[x + 1 < there ? x + 1 : x]] * N * D;
        for (int i = 0; i < N * D; i += LINE) __builtin_prefetch(following + i, 0, 2);
        attend(table + at[places[x]] * N * D, b.seen + x * ROW, of_values + p * H * S, absent + p * PLACES, b.turned,
               b.weights + x * H * PLACES, b.values + x * H * PLACES, b.heads + x * HEADS);
      }
      // the read-out and the loss of all; rows of none are zero
      std::memset(b.heads + there * HEADS, 0, sizeof(REAL) * (EXAMPLES - there) * HEADS);
      multiply<EXAMPLES, H, OUTPUTS, HEADS, 1, OUTPUTS, OUTPUTS, false>(b.heads, b.read_out, b.outputs);
      for (int x = 0; x < there; ++x) {
        REAL* outputs = b.outputs + x * OUTPUTS;
        for (int c = 0; c < C; ++c) outputs[c] += bias[p * C + c];
        for (int c = C; c < OUTPUTS; ++c) outputs[c] = -INFINITY;
        total += loss_of(outputs, labels[places[x]], share[places[x]]);
        for (int c = 0; c < OUTPUTS; ++c) b.d_bias[c] += outputs[c];
      }
      std::memset(b.outputs + there * OUTPUTS, 0, sizeof(REAL) * (EXAMPLES - there) * OUTPUTS);
      multiply<H, EXAMPLES, OUTPUTS, 1, HEADS, OUTPUTS, OUTPUTS, true>(b.heads, b.outputs, b.d_read_out);
      multiply<EXAMPLES, OUTPUTS, HEADS, OUTPUTS, 1, HEADS, HEADS, false>(b.outputs, b.read_out_turned, b.d_heads);
      for (int x = 0; x < there; ++x)
        attend_back(table + at[places[x]] * N * D, b.weights + x * H * PLACES, b.values + x * H * PLACES,
                    b.heads + x * HEADS, b.d_heads + x * HEADS, b.spread, b.seen + x * ROW, d_values + p * H * S);
      std::memset(b.seen + there * ROW, 0, sizeof(REAL) * (EXAMPLES - there) * ROW);
      for (int h = 0; h < H; ++h) {
        const int64_t fold = (p * H + h) * K * S;
        multiply<K, EXAMPLES, S, 1, LOOKS * K, ROW, S, true>(b.looks + h % LOOKS * K, b.seen + h * S, d_folds + fold);
        if constexpr (LOOKS > 1) {
          for (int k = 0; k < K; ++k)
            for (int s = 0; s < S; ++s) b.fold_turned[s * K + k] = folds[fold + k * S + s];
          multiply<EXAMPLES, S, K, ROW, 1, K, K, false>(b.seen + h * S, b.fold_turned, b.d_looks);
          for (int x = 0; x < there; ++x)
            std::memcpy(d_looks + (places[x] * LOOKS + h) * K, b.d_looks + x * K, sizeof(REAL) * K);
        }
      }
    }
    loss[p] = total;
    for (int h = 0; h < H; ++h) std::memcpy(d_read_out + (p * H + h) * C, b.d_read_out + h * OUTPUTS, sizeof(REAL) * C);
    std::memcpy(d_bias + p * C, b.d_bias, sizeof(REAL) * C);
  }
}

}
