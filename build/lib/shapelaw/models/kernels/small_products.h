// Products, turned matrices and exponentials for sizes that are known when they are compiled: REAL, and a width D, a
// multiple of TILE, that says how many numbers are taken at once. Matrices are rows of numbers, one after the other.
#pragma once
#include <cstring>
#include <utility>

constexpr int rounded_up(int size, int to) { return (size + to - 1) / to * to; }

#ifdef __AVX512F__
constexpr int REGISTER = 64 / sizeof(REAL), SUMS = 24;  // numbers in a register; registers for the sums of a product
#elif defined(__AVX__)
constexpr int REGISTER = 32 / sizeof(REAL), SUMS = 12;
#elif defined(__aarch64__)
constexpr int REGISTER = 16 / sizeof(REAL), SUMS = 24;
#else
constexpr int REGISTER = 16 / sizeof(REAL), SUMS = 12;
#endif
constexpr int TILE = 8;  // matrices are turned in squares of it
constexpr int LANES = D % REGISTER == 0 ? REGISTER : TILE;
constexpr int FILLED = LANES > TILE ? LANES : TILE;  // rows are filled up to whole vectors and whole squares
constexpr int LINE = 64 / sizeof(REAL);  // of the cache

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

// SIZE numbers that begin at a cache line.
template <int SIZE> struct alignas(64) Numbers {
  REAL at[SIZE > 0 ? SIZE : 1];
  operator REAL*() { return at; }
  operator const REAL*() const { return at; }
};

static inline void clear(REAL* numbers, int size) { std::memset(numbers, 0, sizeof(REAL) * size); }

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
  static_assert(COLUMNS % L == 0, "columns are filled up to whole vectors");
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

// from [ROWS, COLUMNS] as to [COLUMNS, ROWS]; rows of `to` are filled up to whole squares with zeros
template <int ROWS, int COLUMNS, int FROM_ROW, int TO_ROW> static inline void turn(const REAL* from, REAL* to) {
  static_assert(COLUMNS % TILE == 0);
  for (int c = 0; c < COLUMNS; c += TILE)
    for (int r = 0; r < ROWS; r += TILE) {
      Strip square[TILE] = {};
      for (int i = 0; i < TILE && r + i < ROWS; ++i) square[i] = load<Strip>(from + (r + i) * FROM_ROW + c);
      transpose(square);
      for (int i = 0; i < TILE; ++i) store(to + (c + i) * TO_ROW + r, square[i]);
    }
}

// exp(x) for x <= 0 to the last bit or two (1 + |x| / 2 units of the last bit where a CPU has no fused multiply-add),
// exactly 0 far below; what is not a number stays so
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

template <int SIZE> static inline Vector largest_of(const REAL* x) {
  Vector largest = load<Vector>(x);
  for (int i = LANES; i < SIZE; i += LANES) {
    const Vector next = load<Vector>(x + i);
    largest = next > largest ? next : largest;
  }
  return over_all<true>(largest);
}
