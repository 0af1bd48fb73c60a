// Products of matrices, GELU with its slope, and SwiGLU, in float32 on one thread (decoder_kernel.py).
//
// An entry of a product is a sum of K terms. MKL, which PyTorch calls, adds them up on AMD's Zen in parts of part_of(K)
// terms, each part from zero and by fused multiply-adds in order, and then adds the parts. So does this, to the last bit.
// The way there is the usual one (Goto and van de Geijn 2008): a tile of C stays in registers, a panel of B in the first
// cache, a block of A in the second. Matrices are rows of numbers, one after the other, unless steps are given.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#ifdef __AVX512F__
constexpr int LANES = 16, ROWS = 14;  // numbers in a register; rows of a tile, which has two registers of columns
#elif defined(__AVX__)
constexpr int LANES = 8, ROWS = 6;
#else
constexpr int LANES = 4, ROWS = 12;
#endif
constexpr int WIDE = 2 * LANES, LINE = 16;  // columns of a tile; numbers in a line of the cache
constexpr int TILES = 8;                    // in a block of A, one above the other
constexpr int MOST = 192;                   // terms in a part
typedef float Vector __attribute__((vector_size(4 * LANES)));

static inline Vector load(const float* from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
static inline void store(float* to, Vector v) { std::memcpy(to, &v, sizeof v); }

static int64_t part_of(int64_t k) { return k <= MOST ? k : k < 2 * MOST ? k / 2 : MOST; }

// panels are WIDE columns, or LANES where no more are left
static int64_t panel_at(int64_t j, int64_t n) { return n - j > LANES ? WIDE : LANES; }

// c [R, U LANES] (+)= a [R, k] b [k, U LANES]; the lines of `next`, the tile of A that comes after, are fetched meanwhile
template <int R, int U>
static void tile(const float* a, int64_t a_row, int64_t a_column, const float* b, int64_t k, float* c, int64_t c_row,
                 bool add, const float* next) {
  Vector sum[R][U] = {};
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    __builtin_prefetch(c + r * c_row, 1, 2);
    __builtin_prefetch(c + r * c_row + U * LANES - 1, 1, 2);
  }
  const float* line = next;
  for (int64_t i = 0, row = 0; i < k; ++i, a += a_column, b += U * LANES) {
    Vector of_b[U];
    for (int u = 0; u < U; ++u) of_b[u] = load(b + u * LANES);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
      for (int u = 0; u < U; ++u) sum[r][u] += a[r * a_row] * of_b[u];
    __builtin_prefetch(line);
    line += a_row;
    if (++row == R) row = 0, line = next += LINE;
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
    for (int u = 0; u < U; ++u) {
      float* to = c + r * c_row + u * LANES;
      store(to, (add ? load(to) : Vector{}) + sum[r][u]);
    }
}

typedef decltype(&tile<ROWS, 2>) Tile;
struct Tiles {
  Tile of_rows[ROWS];
};
template <int U, int... R> static constexpr Tiles tiles(std::integer_sequence<int, R...>) { return {{tile<R + 1, U>...}}; }
static constexpr Tiles NARROW = tiles<1>(std::make_integer_sequence<int, ROWS>());
static constexpr Tiles BROAD = tiles<2>(std::make_integer_sequence<int, ROWS>());

// b [k, n] panel by panel, the last one filled up with zeros
static void pack(const float* b, int64_t b_row, int64_t b_column, int64_t k, int64_t n, float* packed) {
  const int64_t whole = n / WIDE * WIDE;
  if (b_column == 1) {
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < whole; j += WIDE)
        std::memcpy(packed + j * k + i * WIDE, b + i * b_row + j, sizeof(float) * WIDE);
  } else {
    for (int64_t j = 0; j < whole; j += WIDE)
      for (int64_t i = 0; i < k; ++i)
#pragma GCC unroll 32
        for (int x = 0; x < WIDE; ++x) packed[j * k + i * WIDE + x] = b[i * b_row + (j + x) * b_column];
  }
  const int64_t left = n - whole, width = panel_at(whole, n);
  for (int64_t i = 0; left > 0 && i < k; ++i)
    for (int64_t x = 0; x < width; ++x)
      packed[whole * k + i * width + x] = x < left ? b[i * b_row + (whole + x) * b_column] : 0;
}

// some columns [k, m] of a turned matrix, tile by tile: ROWS of them next to each other
static void pack_turned(const float* a, int64_t a_column, int64_t k, int64_t m, float* packed) {
  for (int64_t i = 0; i < k; ++i) {
    const float* from = a + i * a_column;
    for (int64_t r = 0; r < m; r += LINE) __builtin_prefetch(from + r + 6 * a_column);
    for (int64_t r = 0; r < m; r += ROWS) {
      float* to = packed + r * MOST + i * ROWS;
      if (m - r >= ROWS)
        std::memcpy(to, from + r, sizeof(float) * ROWS);
      else
        std::memcpy(to, from + r, sizeof(float) * (m - r));
    }
  }
}

// c [m, n] (+)= bias + a b, the k terms in parts
static void product(int64_t part, bool old, int64_t m, int64_t n, int64_t k, const float* a, int64_t a_row,
                    int64_t a_column, const float* b, int64_t b_row, int64_t b_column, float* c, const float* bias,
                    float* packed) {
  pack(b, b_row, b_column, k, n, packed);
  alignas(64) float edge[ROWS * WIDE], turned[TILES * ROWS * MOST];
  for (int64_t top = 0; top < m; top += TILES * ROWS) {
    const int64_t bottom = std::min(m, top + TILES * ROWS);
    for (int64_t r = top; bias && r < bottom; ++r) std::memcpy(c + r * n, bias, sizeof(float) * n);
    for (int64_t s = 0; s < k; s += part) {
      const int64_t terms = std::min(part, k - s);
      const bool add = old || bias || s > 0, direct = a_column == 1;
      if (!direct) pack_turned(a + top * a_row + s * a_column, a_column, terms, bottom - top, turned);
      for (int64_t j = 0; j < n; j += panel_at(j, n)) {
        const int64_t width = panel_at(j, n), columns = std::min(width, n - j);
        for (int64_t r = top; r < bottom; r += ROWS) {
          const int64_t rows = std::min<int64_t>(ROWS, bottom - r), below = r + ROWS < bottom ? r + ROWS : top;
          const float* from = direct ? a + r * a_row + s : turned + (r - top) * MOST;
          const float* next = direct ? a + below * a_row + s : from;
          const bool whole = columns == width;
          float* to = c + r * n + j;
          for (int64_t i = 0; !whole && add && i < rows; ++i)
            std::memcpy(edge + i * width, to + i * n, sizeof(float) * columns);
          (width == WIDE ? BROAD : NARROW)
              .of_rows[rows - 1](from, direct ? a_row : 1, direct ? 1 : ROWS, packed + j * k + s * width, terms,
                                 whole ? to : edge, whole ? n : width, add, next);
          for (int64_t i = 0; !whole && i < rows; ++i)
            std::memcpy(to + i * n, edge + i * width, sizeof(float) * columns);
        }
      }
    }
  }
}

extern "C" {
int64_t lanes() { return LANES; }

// Numbers of room for a product with that b.
int64_t room(int64_t n, int64_t k) { return (n + WIDE) * k; }

// c [m, n] = bias + a [m, k] b [k, n]; one of the steps from row to row and from column to column is 1, of a and of b
void multiply(int64_t m, int64_t n, int64_t k, const float* a, int64_t a_row, int64_t a_column, const float* b,
              int64_t b_row, int64_t b_column, float* c, const float* bias, float* packed) {
  const int64_t part = part_of(k), slab = k > m ? part : k;  // a large C is written once, a small one stays in the cache
  for (int64_t s = 0; s < k; s += slab)
    product(part, s > 0, m, n, std::min(slab, k - s), a + s * a_column, a_row, a_column, b + s * b_row, b_row, b_column,
            c, s > 0 ? nullptr : bias, packed);
}

// y = GELU(x) by its tanh form, x = GELU'(x), for whole vectors; in the order of PyTorch's operations, with its tanh
void gelu(int64_t size, float* x, float* y, Vector (*tanh)(Vector)) {
  const float beta = 0.7978845608028654, kappa = 0.044715;
  for (int64_t i = 0; i < size; i += LANES) {
    const Vector v = load(x + i), square = v * v, t = tanh(beta * (v + kappa * (square * v)));
    store(y + i, 0.5f * v * (1 + t));
    const Vector of_tanh = 1 - t * t, of_inner = beta * (1 + 3 * kappa * square);
    store(x + i, 0.5f * (1 + t) + 0.5f * v * of_tanh * of_inner);
  }
}

// y = silu(gate) up and divisor = 1 + exp(-gate), for whole vectors; in the order of PyTorch's operations, with its exp
void swiglu(int64_t size, const float* gate, const float* up, float* divisor, float* y, Vector (*exp)(Vector)) {
  for (int64_t i = 0; i < size; i += LANES) {
    const Vector v = load(gate + i), by = 1 + exp(-v);
    store(divisor + i, by);
    store(y + i, v / by * load(up + i));
  }
}

// The gradients of gate and up from that of y
void swiglu_back(int64_t size, const float* grad, const float* gate, const float* up, const float* divisor,
                 float* of_gate, float* of_up) {
  for (int64_t i = 0; i < size; i += LANES) {
    const Vector g = load(grad + i), v = load(gate + i), by = load(divisor + i), share = 1 / by;
    store(of_up + i, g * (v / by));
    store(of_gate + i, g * load(up + i) * share * (1 + v * (1 - share)));
  }
}
}
