// The loss and the gradients of packed memorizers whose examples have a context each, with one value a head.
//
// Compiled for one shape (memorizer.py): REAL, H heads, N tokens of a context, K head_dim, D width, C outputs (1: a
// number). An example finds its tokens at row at[x] of a table [T, N, D]: they are read where they lie, once, and all that
// follows from them is computed while they are in the cache, for EXAMPLES at a time.
//
// A logit is bilinear in the raw query and the raw token, once a query has a one beside its D numbers (Q in all) and a
// token the indicator of its place (S in all). So no token is embedded and none has a key: a query becomes a row of S
// numbers for each head, by which its tokens are `seen`. That takes one product, with query weights and key weights
// FOLDED into one matrix [Q, S], or one with each where K is small. A value is linear in the token in the same way.
#include "small_products.h"

#include <cmath>
#include <cstdint>
#include <memory>

// sizes of rows, filled up; after the N tokens come none, with a logit of minus infinity
constexpr int PLACES = rounded_up(N, FILLED), KEYS = rounded_up(K, TILE), OUTPUTS = rounded_up(C, FILLED);
constexpr int HEADS = rounded_up(H, TILE);
constexpr int Q = D + 1, S = D + PLACES;
constexpr bool FOLDED = Q * S <= KEYS * (Q + S);
constexpr int EXAMPLES = 32;
constexpr int ROW = (rounded_up(H * S, LINE) / LINE | 1) * LINE;  // an odd number of lines: rows fall on all cache sets

// D rows of COLUMNS numbers, filled up with zeros to WIDE, and such rows without what they were filled up with
template <int COLUMNS, int WIDE> static inline void widen(const REAL* from, int from_row, REAL* to) {
  for (int r = 0; r < D; ++r) {
    std::memcpy(to + r * WIDE, from + r * from_row, sizeof(REAL) * COLUMNS);
    std::memset(to + r * WIDE + COLUMNS, 0, sizeof(REAL) * (WIDE - COLUMNS));
  }
}
template <int COLUMNS, int WIDE> static inline void narrow(const REAL* from, REAL* to, int to_row) {
  for (int r = 0; r < D; ++r) std::memcpy(to + r * to_row, from + r * WIDE, sizeof(REAL) * COLUMNS);
}

// Of one model, as `initial_parameters` has them; or their gradients.
struct Parameters {
  REAL *embedding, *embedding_bias, *w_q, *w_k, *w_v, *w_o, *w_d, *bias;

  Parameters of(int64_t model) const {
    return {embedding + model * D * D, embedding_bias + model * D, w_q + model * H * D * K, w_k + model * D * H * K,
            w_v + model * D * H,       w_o + model * H * D,        w_d + model * D * C,     bias + model * C};
  }
};

// What examples need of a model; or its gradient.
struct Weights {
  Numbers<Q * D> of_query;           // embeddings of raw numbers and of the query's place, times the scale
  Numbers<S * D> of_token;           // embeddings of raw numbers and of the tokens' places
  Numbers<H * Q * KEYS> query;       // [H, Q, KEYS], the first through W_Q
  Numbers<H * S * KEYS> key;         // [H, S, KEYS], the second through W_K
  Numbers<FOLDED * H * Q * S> fold;  // [H, Q, S], the product of these two
  Numbers<H * S> values;
  Numbers<H * OUTPUTS> read_out;
  Numbers<OUTPUTS> bias;
};

// The same turned, and room for a matrix.
struct Turned {
  Numbers<D * S> of_token;
  Numbers<H * KEYS * S> key;
  Numbers<OUTPUTS * HEADS> read_out;
  Numbers<H * D> w_v;
  Numbers<D * (KEYS > OUTPUTS ? KEYS : OUTPUTS)> wide, high;
};

// what examples need of a model, from its parameters
static void prepare(const Parameters& p, const REAL* positions, REAL scale, Weights& w, Turned& t) {
  for (int i = 0; i < D * D; ++i) w.of_query[i] = scale * (w.of_token[i] = p.embedding[i]);
  for (int d = 0; d < D; ++d) w.of_query[D * D + d] = scale * (p.embedding_bias[d] + positions[d]);
  for (int i = 0; i < N; ++i)
    for (int d = 0; d < D; ++d) w.of_token[(D + i) * D + d] = p.embedding_bias[d] + positions[(1 + i) * D + d];
  turn<S, D, D, S>(w.of_token, t.of_token);
  for (int h = 0; h < H; ++h) {
    REAL *query = w.query + h * Q * KEYS, *key = w.key + h * S * KEYS, *key_turned = t.key + h * KEYS * S;
    widen<K, KEYS>(p.w_q + h * D * K, K, t.wide);
    multiply<Q, D, KEYS, D, 1, KEYS, KEYS, false>(w.of_query, t.wide, query);
    widen<K, KEYS>(p.w_k + h * K, H * K, t.wide);
    multiply<S, D, KEYS, D, 1, KEYS, KEYS, false>(w.of_token, t.wide, key);
    turn<S, KEYS, KEYS, S>(key, key_turned);
    if constexpr (FOLDED) multiply<Q, KEYS, S, KEYS, 1, S, S, false>(query, key_turned, w.fold + h * Q * S);
  }
  multiply<H, D, S, 1, H, S, S, false>(p.w_v, t.of_token, w.values);
  widen<C, OUTPUTS>(p.w_d, C, t.wide);
  multiply<H, D, OUTPUTS, D, 1, OUTPUTS, OUTPUTS, false>(p.w_o, t.wide, w.read_out);
  turn<H, OUTPUTS, OUTPUTS, HEADS>(w.read_out, t.read_out);
}

// from the gradients by what examples need to those by the parameters
static void prepare_back(const Parameters& p, REAL scale, const Weights& w, Turned& t, Weights& d, const Parameters& g) {
  for (int h = 0; h < H; ++h) {
    REAL *d_query = d.query + h * Q * KEYS, *d_key = d.key + h * S * KEYS;
    if constexpr (FOLDED) {
      const REAL* d_fold = d.fold + h * Q * S;
      multiply<Q, S, KEYS, S, 1, KEYS, KEYS, false>(d_fold, w.key + h * S * KEYS, d_query);
      multiply<S, Q, KEYS, 1, S, KEYS, KEYS, false>(d_fold, w.query + h * Q * KEYS, d_key);
    }
    widen<K, KEYS>(p.w_q + h * D * K, K, t.wide);
    turn<D, KEYS, KEYS, D>(t.wide, t.high);
    multiply<Q, KEYS, D, KEYS, 1, D, D, true>(d_query, t.high, d.of_query);
    widen<K, KEYS>(p.w_k + h * K, H * K, t.wide);
    turn<D, KEYS, KEYS, D>(t.wide, t.high);
    multiply<S, KEYS, D, KEYS, 1, D, D, true>(d_key, t.high, d.of_token);
    multiply<D, Q, KEYS, 1, D, KEYS, KEYS, false>(w.of_query, d_query, t.wide);
    narrow<K, KEYS>(t.wide, g.w_q + h * D * K, K);
    multiply<D, S, KEYS, 1, D, KEYS, KEYS, false>(w.of_token, d_key, t.wide);
    narrow<K, KEYS>(t.wide, g.w_k + h * K, H * K);
    for (int i = 0; i < D; ++i) t.w_v[h * D + i] = p.w_v[i * H + h];
  }
  multiply<S, H, D, 1, S, D, D, true>(d.values, t.w_v, d.of_token);
  multiply<H, S, D, S, 1, D, D, false>(d.values, w.of_token, t.w_v);
  for (int i = 0; i < D; ++i)
    for (int h = 0; h < H; ++h) g.w_v[i * H + h] = t.w_v[h * D + i];
  widen<C, OUTPUTS>(p.w_d, C, t.wide);
  turn<D, OUTPUTS, OUTPUTS, D>(t.wide, t.high);
  multiply<H, C, D, OUTPUTS, 1, D, D, false>(d.read_out, t.high, g.w_o);
  multiply<D, H, OUTPUTS, 1, D, OUTPUTS, OUTPUTS, false>(p.w_o, d.read_out, t.wide);
  narrow<C, OUTPUTS>(t.wide, g.w_d, C);
  std::memcpy(g.bias, d.bias, sizeof(REAL) * C);
  for (int i = 0; i < D * D; ++i) g.embedding[i] = scale * d.of_query[i] + d.of_token[i];
  for (int i = 0; i < D; ++i) {
    g.embedding_bias[i] = scale * d.of_query[D * D + i];
    for (int s = D; s < D + N; ++s) g.embedding_bias[i] += d.of_token[s * D + i];
  }
}

// Of some examples at once; where there is none, queries and means are zero, and with them all that comes of these.
struct Block {
  Numbers<EXAMPLES * Q> queries;                 // raw, and a one
  Numbers<!FOLDED * H * EXAMPLES * KEYS> looks;  // [H, EXAMPLES, KEYS], queries as each head has them
  Numbers<EXAMPLES * KEYS> d_looks;              // of one head
  Numbers<EXAMPLES * ROW> seen;                  // [EXAMPLES, H, S], and then its gradient
  Numbers<EXAMPLES * H * PLACES> weights, values;
  Numbers<EXAMPLES * H> sums;                // of the weights, which are yet to be divided by them
  Numbers<EXAMPLES * HEADS> means, d_means;  // of the values: what the heads say
  Numbers<EXAMPLES * OUTPUTS> outputs;       // and then their gradient
  Numbers<D * PLACES> turned;                // tokens of one example
  Numbers<H * PLACES> spread;
};

// the rows that the tokens of each example are seen by
static inline void look(const Weights& w, const Turned& t, Block& b) {
  for (int h = 0; h < H; ++h)
    if constexpr (FOLDED) {
      multiply<EXAMPLES, Q, S, Q, 1, S, ROW, false>(b.queries, w.fold + h * Q * S, b.seen + h * S);
    } else {
      REAL* looks = b.looks + h * EXAMPLES * KEYS;
      multiply<EXAMPLES, Q, KEYS, Q, 1, KEYS, KEYS, false>(b.queries, w.query + h * Q * KEYS, looks);
      multiply<EXAMPLES, KEYS, S, KEYS, 1, S, ROW, false>(looks, t.key + h * KEYS * S, b.seen + h * S);
    }
}

// back from those to queries and keys
static inline void look_back(const Weights& w, Block& b, Weights& d) {
  for (int h = 0; h < H; ++h) {
    const REAL* d_seen = b.seen + h * S;
    if constexpr (FOLDED) {
      multiply<Q, EXAMPLES, S, 1, Q, ROW, S, true>(b.queries, d_seen, d.fold + h * Q * S);
    } else {
      multiply<S, EXAMPLES, KEYS, 1, ROW, KEYS, KEYS, true>(d_seen, b.looks + h * EXAMPLES * KEYS, d.key + h * S * KEYS);
      multiply<EXAMPLES, S, KEYS, ROW, 1, KEYS, KEYS, false>(d_seen, w.key + h * S * KEYS, b.d_looks);
      multiply<Q, EXAMPLES, KEYS, 1, Q, KEYS, KEYS, true>(b.queries, b.d_looks, d.query + h * Q * KEYS);
    }
  }
}

// weights (yet to be divided by their sum), values, and the weighted means of these, of one example
static inline void attend(const REAL* tokens, const REAL* seen, const REAL* of_values, const REAL* absent, REAL* turned,
                          REAL* weights, REAL* values, REAL* sums, REAL* means) {
  turn<N, D, D, PLACES>(tokens, turned);
  multiply<H, D, PLACES, S, 1, PLACES, PLACES, false>(seen, turned, weights);
  multiply<H, D, PLACES, S, 1, PLACES, PLACES, false>(of_values, turned, values);
  // three loops over the heads: what is one after the other in each of them is short, and overlaps with the next head's
  for (int h = 0; h < H; ++h) {
    REAL *w = weights + h * PLACES, *v = values + h * PLACES;
    for (int i = 0; i < PLACES; i += LANES) {
      store(w + i, load<Vector>(w + i) + load<Vector>(seen + h * S + D + i) + load<Vector>(absent + i));
      store(v + i, load<Vector>(v + i) + load<Vector>(of_values + h * S + D + i));
    }
    const Vector largest = largest_of<PLACES>(w);
    for (int i = 0; i < PLACES; i += LANES) store(w + i, load<Vector>(w + i) - largest);
  }
  for (int i = 0; i < H * PLACES; i += LANES) store(weights + i, exponential(load<Vector>(weights + i)));
  for (int h = 0; h < H; ++h) {
    Vector sum = {}, mean = {};
    for (int i = h * PLACES; i < (h + 1) * PLACES; i += LANES) {
      sum += load<Vector>(weights + i);
      mean += load<Vector>(weights + i) * load<Vector>(values + i);
    }
    sums[h] = over_all<false>(sum)[0];
    means[h] = over_all<false>(mean)[0] / sums[h];
  }
}

// back from the means to the rows that the tokens of one example are seen by; adds to the values' gradient
static inline void attend_back(const REAL* tokens, const REAL* weights, const REAL* values, const REAL* sums,
                               const REAL* means, const REAL* d_means, REAL* spread, REAL* d_seen, REAL* d_values) {
  for (int h = 0; h < H; ++h) {
    const REAL of_head = d_means[h] / sums[h];
    for (int i = h * PLACES; i < (h + 1) * PLACES; i += LANES) {
      const Vector share = load<Vector>(weights + i) * of_head;
      const int place = h * S + D + i - h * PLACES;
      store(spread + i, share);
      store(d_seen + place, share * (load<Vector>(values + i) - means[h]));
      store(d_values + place, load<Vector>(d_values + place) + share);
    }
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
  const Vector largest = largest_of<OUTPUTS>(outputs);
  Vector sum = {};
  for (int c = 0; c < OUTPUTS; c += LANES) {
    const Vector e = exponential(load<Vector>(outputs + c) - largest);
    store(outputs + c, e);
    sum += e;
  }
  const REAL all = over_all<false>(sum)[0];
  for (int c = 0; c < OUTPUTS; ++c) outputs[c] *= share / all;
  outputs[label] -= share;
  return double(share) * (std::log(all) + (largest[0] - right));
}
#endif

// one model's loss, and its gradients by what examples need of it
static double examples_of(const Weights& w, const Turned& t, const REAL* queries, const REAL* table, const int64_t* at,
                          const Label* labels, const REAL* there, const REAL* absent, int64_t examples, Block& b,
                          Weights& d) {
  REAL all = there ? 0 : examples;
  for (int64_t x = 0; there && x < examples; ++x) all += there[x];
  double loss = 0;
  for (int64_t next = 0; next < examples;) {
    int64_t of[EXAMPLES];  // examples of this block
    int count = 0;
    for (; next < examples && count < EXAMPLES; ++next)
      if (!there || there[next] != 0) of[count++] = next;
    for (int x = 0; x < count; ++x) {
      std::memcpy(b.queries + x * Q, queries + of[x] * D, sizeof(REAL) * D);
      b.queries[x * Q + D] = 1;
    }
    clear(b.queries + count * Q, (EXAMPLES - count) * Q);
    look(w, t, b);
    for (int x = 0; x < count; ++x) {
      const REAL* following = table + at[x + 1 < count ? of[x + 1] : next < examples ? next : of[x]] * N * D;
      for (int i = 0; i < N * D; i += LINE) __builtin_prefetch(following + i, 0, 2);
      attend(table + at[of[x]] * N * D, b.seen + x * ROW, w.values, absent, b.turned, b.weights + x * H * PLACES,
             b.values + x * H * PLACES, b.sums + x * H, b.means + x * HEADS);
    }
    clear(b.means + count * HEADS, (EXAMPLES - count) * HEADS);
    multiply<EXAMPLES, H, OUTPUTS, HEADS, 1, OUTPUTS, OUTPUTS, false>(b.means, w.read_out, b.outputs);
    for (int x = 0; x < count; ++x) {
      REAL* outputs = b.outputs + x * OUTPUTS;
      for (int c = 0; c < OUTPUTS; ++c) outputs[c] += w.bias[c];
      loss += loss_of(outputs, labels[of[x]], there ? there[of[x]] / all : 1 / all);
      for (int c = 0; c < OUTPUTS; ++c) d.bias[c] += outputs[c];
    }
    multiply<H, EXAMPLES, OUTPUTS, 1, HEADS, OUTPUTS, OUTPUTS, true>(b.means, b.outputs, d.read_out);
    multiply<EXAMPLES, OUTPUTS, HEADS, OUTPUTS, 1, HEADS, HEADS, false>(b.outputs, t.read_out, b.d_means);
    for (int x = 0; x < count; ++x)
      attend_back(table + at[of[x]] * N * D, b.weights + x * H * PLACES, b.values + x * H * PLACES, b.sums + x * H,
                  b.means + x * HEADS, b.d_means + x * HEADS, b.spread, b.seen + x * ROW, d.values);
    look_back(w, b, d);
  }
  return loss;
}

struct Scratch {
  Weights weights, gradients;
  Turned turned;
  Block block;
};

// queries [models, examples, D], table [T, N, D], at and labels [models, examples], positions [1 + N, D]; where not null:
// there [models, examples] (0 where a batch has no example), absent [models, N] (where a context has no token)
// -> loss [models] and the gradients
extern "C" void memorizer_gradients(const Parameters* parameters, const REAL* positions, double scale,
                                    const REAL* queries, const REAL* table, const int64_t* at, const Label* labels,
                                    const REAL* there, const bool* absent, int64_t models, int64_t examples, REAL* loss,
                                    const Parameters* gradients) {
  const auto scratch = std::make_unique<Scratch>();  // zeros, which what rows are filled up with stays
  auto& [w, d, t, b] = *scratch;
  for (int64_t model = 0; model < models; ++model) {
    const Parameters p = parameters->of(model);
    REAL no_token[PLACES];
    for (int i = 0; i < PLACES; ++i) no_token[i] = i < N && !(absent && absent[model * N + i]) ? 0 : -INFINITY;
    for (int c = 0; c < OUTPUTS; ++c) w.bias[c] = c < C ? p.bias[c] : -INFINITY;
    prepare(p, positions, scale, w, t);
    std::memset(&d, 0, sizeof d);
    const int64_t first = model * examples;
    loss[model] = examples_of(w, t, queries + first * D, table, at + first, labels + first, there ? there + first : there,
                              no_token, examples, b, d);
    prepare_back(p, scale, w, t, d, gradients->of(model));
  }
}
