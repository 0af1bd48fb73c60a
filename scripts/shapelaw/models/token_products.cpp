// The products of packed memorizers with contexts of their own: rows that look at tokens, and back.
//
// Compiled for one shape (token_products.py): REAL, H heads, N tokens of a context, D width. An example x of a model
// finds its tokens at row at[x] of a table [T, N, D]; they are read where they lie, while the next example's are
// fetched, and nothing is gathered. A row has a factor for each of the D numbers of a token and one for each of the N
// places where it can be, S in all. Each head has two rows: `seen`, of each example, gives the logits of its tokens, and
// `values`, of the model, their values.
#include <cstdint>
#include <cstring>

#ifdef __AVX512F__
constexpr int NATIVE = 64 / sizeof(REAL);
#else
constexpr int NATIVE = 32 / sizeof(REAL);
#endif
constexpr int S = D + N;
constexpr int TILE = 8;                                // tokens are turned in squares of it; D is a multiple
constexpr int LANES = D % NATIVE == 0 ? NATIVE : TILE;
constexpr int ROWS = 4;                                // of a block of sums that stays in registers,
constexpr int VECTORS = D % (2 * LANES) == 0 ? 2 : 1;  // and its columns
constexpr int COLUMNS = LANES * VECTORS;
constexpr int PADDED = (N + COLUMNS - 1) / COLUMNS * COLUMNS;
typedef REAL Vector __attribute__((vector_size(sizeof(REAL) * LANES)));
typedef REAL Strip __attribute__((vector_size(sizeof(REAL) * TILE)));

template <typename V> static inline V load(const REAL* from) {
  V v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

static inline const REAL* tokens_of(const REAL* table, const int64_t* at, int64_t x, int64_t all) {
  if (x + 1 < all)
    for (int i = 0; i < N * D; i += 64 / sizeof(REAL)) __builtin_prefetch(table + at[x + 1] * N * D + i, 0, 2);
  return table + at[x] * N * D;
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

// tokens [N, D] as [D, PADDED], the last columns zero
static inline void turn(const REAL* tokens, REAL* turned) {
  for (int d = 0; d < D; d += TILE)
    for (int i = 0; i < PADDED; i += TILE) {
      Strip square[TILE] = {};
      for (int j = 0; j < TILE && i + j < N; ++j) square[j] = load<Strip>(tokens + (i + j) * D + d);
      transpose(square);
      for (int j = 0; j < TILE; ++j) std::memcpy(turned + (d + j) * PADDED + i, &square[j], sizeof(Strip));
    }
}

// sum[r, :] = sum over k < K of rows[first + r, k] table[k, :], for ROWS rows and COLUMNS columns; a row after the last
// is the last again
template <int K, int ROW_STRIDE, int TABLE_STRIDE>
static inline void block(const REAL* rows, int first, const REAL* table, Vector (&sum)[ROWS][VECTORS]) {
  const REAL* row[ROWS];
  for (int r = 0; r < ROWS; ++r) {
    row[r] = rows + (first + r < H ? first + r : H - 1) * ROW_STRIDE;
    for (int j = 0; j < VECTORS; ++j) sum[r][j] = Vector{};
  }
  for (int k = 0; k < K; ++k)
    for (int j = 0; j < VECTORS; ++j) {
      const Vector t = load<Vector>(table + k * TABLE_STRIDE + j * LANES);
      for (int r = 0; r < ROWS; ++r) sum[r][j] += row[r][k] * t;
    }
}

extern "C" {

// seen [models, examples, H, S], values [models, H, S] -> out [models, examples, 2, H, N]
void through_tokens(const REAL* seen, const REAL* values, const REAL* table, const int64_t* at, int64_t models,
                    int64_t examples, REAL* out) {
  alignas(64) REAL turned[D * PADDED];
  Vector sum[ROWS][VECTORS];
  for (int64_t x = 0; x < models * examples; ++x) {
    turn(tokens_of(table, at, x, models * examples), turned);
    for (int half = 0; half < 2; ++half) {
      const REAL* rows = half ? values + x / examples * H * S : seen + x * H * S;
      REAL* to = out + (2 * x + half) * H * N;
      for (int first = 0; first < H; first += ROWS)
        for (int i = 0; i < N; i += COLUMNS) {
          block<D, S, PADDED>(rows, first, turned + i, sum);
          for (int r = first; r < first + ROWS && r < H; ++r) {
            REAL sums[COLUMNS];
            std::memcpy(sums, sum[r - first], sizeof sums);
            for (int c = 0; c < COLUMNS && i + c < N; ++c) to[r * N + i + c] = sums[c] + rows[r * S + D + i + c];
          }
        }
    }
  }
}

// d_out [models, examples, 2, H, N] -> d_seen [models, examples, H, S], d_values [models, H, S]
void back_through_tokens(const REAL* d_out, const REAL* table, const int64_t* at, int64_t models, int64_t examples,
                         REAL* d_seen, REAL* d_values) {
  std::memset(d_values, 0, sizeof(REAL) * models * H * S);
  Vector sum[ROWS][VECTORS];
  for (int64_t x = 0; x < models * examples; ++x) {
    const REAL* tokens = tokens_of(table, at, x, models * examples);
    for (int half = 0; half < 2; ++half) {
      const REAL* rows = d_out + (2 * x + half) * H * N;
      REAL* to = half ? d_values + x / examples * H * S : d_seen + x * H * S;
      for (int first = 0; first < H; first += ROWS)
        for (int d = 0; d < D; d += COLUMNS) {
          block<N, N, D>(rows, first, tokens + d, sum);
          for (int r = first; r < first + ROWS && r < H; ++r)
            for (int j = 0; j < VECTORS; ++j) {
              REAL* place = to + r * S + d + j * LANES;
              if (half) sum[r - first][j] += load<Vector>(place);
              std::memcpy(place, &sum[r - first][j], sizeof(Vector));
            }
        }
      for (int r = 0; r < H; ++r)
        for (int i = 0; i < N; ++i) to[r * S + D + i] = rows[r * N + i] + (half ? to[r * S + D + i] : 0);
    }
  }
}

}
