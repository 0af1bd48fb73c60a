// The answer to a question, computed as `shapelaw shape` does and under the same names: the loss surface (losses.py),
// sizes (sizes.py), times (clocks.py), and what depths cost (costs.py). DATA holds the draws and constants.
// Arrays over draws and points are flat, a draw after the other: number d * points + p.

const COUNT = DATA.draws.alpha.length;
const [FIRST_DEPTH, LAST_DEPTH, DEPTHS] = DATA.grid;
const GRID = Float64Array.from({ length: DEPTHS }, (_, i) => FIRST_DEPTH + ((LAST_DEPTH - FIRST_DEPTH) * i) / (DEPTHS - 1));
const C = DATA.constants;

// What is wrong with a question, in a sentence.
class UserError extends Error {}

// ---- numbers ----

const logaddexp = (a, b) => Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b)));
const clip = (value, least, most) => Math.min(Math.max(value, least), most);

// The straight line through points with rising places; level beyond them.
function interp(at, places, values, first = 0) {
  let low = 0;
  let high = places.length - 1;
  if (at <= places[low]) return values[first + low];
  if (at >= places[high]) return values[first + high];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (places[middle] <= at) low = middle;
    else high = middle;
  }
  return values[first + low] + ((values[first + high] - values[first + low]) * (at - places[low])) / (places[high] - places[low]);
}

function quantile(values, share) {
  const sorted = Float64Array.from(values).sort();
  const at = share * (sorted.length - 1);
  const left = Math.floor(at);
  return sorted[left] + (at - left) * (sorted[Math.min(left + 1, sorted.length - 1)] - sorted[left]);
}

function meanOfDraws(losses) {
  const points = losses.length / COUNT;
  const mean = new Float64Array(points);
  for (let i = 0; i < losses.length; i++) mean[i % points] += losses[i];
  return mean.map((sum) => sum / COUNT);
}

const outside = (value, [low, high]) => Math.max(0, Math.log(low / value), Math.log(value / high));

// ---- the loss surface ----

function penalty(kind, t, skew) {
  if (kind === "square") return t * t;
  if (kind === "two-sided") return t * t * Math.exp(skew * Math.tanh(t / C.TURN));
  const k = Math.abs(skew) < 1e-4 ? 1e-4 : skew;
  const bent = clip(k * t, -30, 8);
  return (2 * (Math.expm1(bent) - bent)) / k ** 2;
}

function power(alpha, x) {
  const exponent = Math.abs(alpha) < 1e-6 ? 1e-6 : alpha;
  return -Math.expm1(clip(-exponent * x, -30, 30)) / exponent;
}

function logTotal(logBlocks, logDepth) {
  return logaddexp(logBlocks, Math.log(C.TABLE) + 0.5 * (logBlocks - logDepth - Math.log(C.BLOCK_SHARE)));
}

// Losses of all draws at points, up to a constant of each draw; `shift` moves the ridge of each, and `logScale` its penalties.
function lossesAt(logBlocks, logDepth, logTokens, shift = null, logScale = null) {
  const points = logDepth.length;
  const found = new Float64Array(COUNT * points);
  const one = DATA.draws;
  const u = logTokens - C.MIDDLE_TOKENS;
  const few = Math.min(logTokens - Math.log(C.FEW_TOKENS), 0);
  const inside = clip(u, ...one.tokens.map((tokens) => Math.log(tokens) - C.MIDDLE_TOKENS));
  const ofBlocks = Float64Array.from(logBlocks, (value) => value - C.MIDDLE_SIZE);
  const ofTotal = Float64Array.from(logBlocks, (value, p) => logTotal(value, logDepth[p]) - C.MIDDLE_SIZE);
  for (let d = 0; d < COUNT; d++) {
    const sizes = one.of_total[d] ? ofTotal : ofBlocks;
    const kind = C.PENALTIES[one.penalty[d]];
    const inNats = one.in_nats[d];
    const ridge = one.c0[d] + one.c2[d] * u + one.c3[d] * few + (shift === null ? 0 : shift[d]);
    const alpha = one.alpha[d] + one.alpha_u[d] * u;
    const logSlope = one.s0[d] + one.s1[d] * u + one.s2[d] * inside * (2 * u - inside) + one.s3[d] * few;
    const p0 = one.p0[d] + (logScale === null ? 0 : logScale[d]);
    const slope = Math.exp(logSlope);
    const smaller = Math.exp(p0 + one.p1[d] * u);
    for (let p = 0; p < points; p++) {
      const x = sizes[p];
      const lost = penalty(kind, logDepth[p] - C.MIDDLE_DEPTH - (one.c1[d] * x + ridge), one.k[d]);
      found[d * points + p] = inNats
        ? lost * Math.exp(p0 + one.p1[d] * x + one.p2[d] * u) - slope * power(alpha, x)
        : -slope * power(alpha, x - smaller * lost);
    }
  }
  return found;
}

const middleAt = (logBlocks, logDepth, logTokens) => meanOfDraws(lossesAt(logBlocks, logDepth, logTokens));

// The place of the lowest of losses on an even grid, by a parabola, and the loss there.
function lowest(losses, grid, first = 0) {
  let at = 0;
  for (let i = 1; i < grid.length; i++) if (losses[first + i] < losses[first + at]) at = i;
  const here = losses[first + at];
  if (at === 0 || at === grid.length - 1) return [grid[at], here];
  const before = losses[first + at - 1];
  const after = losses[first + at + 1];
  const bend = before - 2 * here + after;
  if (!(bend > 0)) return [grid[at], here];
  const shift = (0.5 * (before - after)) / bend;
  return [grid[at] + shift * (grid[1] - grid[0]), here - 0.25 * (before - after) * shift];
}

// The same of all draws together, near the lowest of every eighth depth.
function lowestMean(logBlocks, logTokens) {
  const every = (values) => values.filter((_, i) => i % C.COARSE === 0);
  const coarse = middleAt(every(logBlocks), every(GRID), logTokens);
  const near = C.COARSE * coarse.indexOf(Math.min(...coarse));
  const part = [Math.max(near - C.COARSE, 0), near + C.COARSE + 1];
  const grid = GRID.slice(...part);
  return lowest(middleAt(logBlocks.slice(...part), grid, logTokens), grid);
}

// ---- sizes: a counting has an axis (total, block, flops), vocab_size, tied, positions (GPT-2's block) and a rank ----

function termsOf({ axis, vocab_size: vocab, tied, positions, rank }) {
  if (axis === "block") return { table: 0, fixed: 0, small: 0 };
  if (axis === "flops") return { table: vocab + (rank ?? 0), fixed: 0, small: 0 };
  return {
    table: (rank ?? vocab) + (rank !== null || !tied ? vocab : 0) + positions,
    fixed: vocab * (rank ?? 0),
    small: positions ? 13 : 2,
  };
}

function widthAt(size, depth, counting) {
  const { table, fixed, small } = termsOf(counting);
  const left = size - fixed;
  const linear = table + small * depth;
  return (2 * left) / (linear + Math.sqrt(linear ** 2 + 48 * depth * left));
}

// Logs of the blocks that sizes leave at the depths of the grid.
function logBlocksAt(sizes, counting) {
  return GRID.map((one, p) => Math.log(12) + one + 2 * Math.log(widthAt(sizes[p], Math.exp(one), counting)));
}

// All parameters of a depth and width.
function totalOf(depth, width, counting) {
  const { table, fixed, small } = termsOf({ ...counting, axis: "total" });
  return 12 * depth * width ** 2 + (table + small * depth) * width + fixed;
}

// ---- times: a clock has a name, a source, the logs of depths that it knows, logTime, and errors of that ----

const logWidth = (logBlocks, logDepth) => 0.5 * (logBlocks - logDepth - Math.log(12));

// A machine's training times, of DATA.machines.
function machineClock(machine) {
  const known = machine.log_depth;
  const terms = machine.solved.length;
  const middle = known.reduce((sum, one) => sum + one, 0) / known.length;
  const dot = (weights, values) => weights.reduce((sum, weight, i) => sum + weight * values[i], 0);
  const coefficients = machine.solved.map((row) => dot(row, machine.log_time));
  const depthErrors = Array.from({ length: COUNT }, (_, d) => {
    const moved = machine.time_err.map((error, j) => error * DATA.normals[1 + j][d]);
    return machine.solved.map((row) => dot(row, moved));
  });
  // powers of a log depth, straight beyond the depths that were timed
  const powers = (logDepth) => {
    const end = clip(logDepth, known[0], known.at(-1));
    return Array.from({ length: terms }, (_, i) => (end - middle) ** i + (i ? i * (end - middle) ** (i - 1) * (logDepth - end) : 0));
  };
  const work = (logBlocks, logDepth, vocab, context) =>
    logaddexp(logBlocks, Math.log(vocab + 2 * context * Math.exp(logDepth)) + logWidth(logBlocks, logDepth));
  const beyond = (value) => Math.max(0, machine.works[0] - value, value - machine.works[1]);
  return {
    name: machine.name,
    source: machine.source,
    logDepth: known,
    logTime: (logBlocks, logDepth, vocab, context) =>
      machine.exponent * work(logBlocks, logDepth, vocab, context) + dot(coefficients, powers(logDepth)),
    // of all draws at points
    errors(logBlocks, logDepth, vocab, context) {
      const points = logDepth.length;
      const found = new Float64Array(COUNT * points);
      const last = 1 + known.length;
      for (let p = 0; p < points; p++) {
        const value = work(logBlocks[p], logDepth[p], vocab, context);
        const terms = powers(logDepth[p]);
        const slope = machine.per_log_work * beyond(value) * (logDepth[p] - middle);
        for (let d = 0; d < COUNT; d++) {
          found[d * points + p] =
            machine.exponent_err * DATA.normals[0][d] * value + dot(depthErrors[d], terms) + DATA.normals[last][d] * slope;
        }
      }
      return found;
    },
  };
}

// Decoding, by a roofline; the context is that of the cache.
function serving({ batch, context, bandwidth, layerSeconds, kvHeads }) {
  const bytes = C.NUMBER_BYTES;
  return {
    name: "latency",
    source: `a roofline of ${Number((bandwidth / 1e12).toPrecision(3))} TB/s and ${Number((1e6 * layerSeconds).toPrecision(3))} µs per layer`,
    logDepth: [0, 99],
    logTime(logBlocks, logDepth, vocab) {
      const depth = Math.exp(logDepth);
      const width = Math.exp(logWidth(logBlocks, logDepth));
      const kvWidth = kvHeads === null ? width : Math.min(width, kvHeads * clip(2 * Math.sqrt(width), 64, 128));
      const cache = batch * context * bytes * 2 * depth * kvWidth;
      return Math.log((bytes * (Math.exp(logBlocks) + width * vocab) + cache) / bandwidth + depth * layerSeconds);
    },
    errors: (logBlocks, logDepth) => new Float64Array(COUNT * logDepth.length),
  };
}

// Sizes that take `wanted`, a log of seconds, at each depth of the grid, by secants.
function asQuick(logTimes, wanted, sizes, counting) {
  const least = Math.log(1.01 * termsOf(counting).fixed + 1e4);
  const off = (logSizes) => logTimes(logBlocksAt(logSizes.map(Math.exp), counting), GRID).map((one) => one - wanted);
  let before = sizes.map(Math.log);
  let missed = off(before);
  let now = before.map((one) => one + 0.1);
  for (let turn = 0; turn < C.TURNS; turn++) {
    const here = off(now);
    const from = before;
    before = now;
    now = now.map((one, i) => {
      const slope = clip((here[i] - missed[i]) / (one === from[i] ? 1 : one - from[i]), 0.05, 2);
      return Math.max(one - clip(here[i] / slope, -2, 2), least);
    });
    missed = here;
    if (Math.max(...now.map((one, i) => Math.abs(one - before[i]))) < C.SETTLED) break;
  }
  return now.map(Math.exp);
}

// ---- what depths cost: a question has a size, a counting, tokens, a clock, a context, equalTime and an askedDepth ----

const logTimesOf =
  ({ clock, counting, context }) =>
  (logBlocks, logDepth) =>
    logBlocks.map((one, p) => clock.logTime(one, logDepth[p], counting.vocab_size, context));

function atEqualTime(question) {
  const logTimes = logTimesOf(question);
  const { counting } = question;
  let sizes = new Float64Array(DEPTHS).fill(question.size);
  let at = Math.log(question.askedDepth ?? 24);
  const asked = logTimes(logBlocksAt(sizes, counting), GRID);
  for (let turn = 0; turn < C.TURNS; turn++) {
    sizes = asQuick(logTimes, interp(at, GRID, asked), sizes, counting);
    const before = at;
    if (question.askedDepth === null) at = lowestMean(logBlocksAt(sizes, counting), Math.log(question.tokens))[0];
    if (Math.abs(at - before) < C.SETTLED) break;
  }
  return sizes;
}

// Errors of the logs of blocks at equal time by those of the times, against the depth whose size is the asked one.
function blockErrorsOf(question, sizes, logSame) {
  const { counting, clock, context } = question;
  const logTimes = logTimesOf(question);
  const logBlocks = logBlocksAt(sizes, counting);
  const larger = logBlocksAt(sizes.map((one) => one * Math.exp(C.NUDGE)), counting);
  const [now, slower] = [logBlocks, larger].map((blocks) => logTimes(blocks, GRID));
  const same = interp(logSame, GRID, logBlocks);
  const off = clock.errors([...logBlocks, same], [...GRID, logSame], counting.vocab_size, context);
  const found = new Float64Array(COUNT * DEPTHS);
  for (let d = 0; d < COUNT; d++) {
    const first = d * (DEPTHS + 1);
    for (let p = 0; p < DEPTHS; p++) {
      found[d * DEPTHS + p] = ((off[first + DEPTHS] - off[first + p]) * (larger[p] - logBlocks[p])) / (slower[p] - now[p]);
    }
  }
  return found;
}

// Losses with the ridges moved, and at equal time the sizes of the depths.
function movedLosses(question, logBlocks, logDepth, shift, blockErrors) {
  const moves = DATA.evidence.normals.map((one) => shift * one);
  const lossesOf = (blocks) => lossesAt(blocks, logDepth, Math.log(question.tokens), moves, DATA.evidence.recipes);
  const losses = lossesOf(logBlocks);
  if (blockErrors === null) return losses;
  const larger = lossesOf(logBlocks.map((one) => one + C.NUDGE));
  const points = logDepth.length;
  return losses.map((loss, i) => {
    const d = Math.floor(i / points);
    const error = interp(logDepth[i % points], GRID, blockErrors, d * DEPTHS);
    return loss + ((larger[i] - loss) / C.NUDGE) * error;
  });
}

// Of the two whole depths beside a log depth the one that loses less.
function wholeBest(logDepth, lossAt) {
  const [less, more] = [Math.floor, Math.ceil].map((round) => Math.max(1, round(Math.exp(logDepth))));
  return lossAt(Math.log(more)) < lossAt(Math.log(less)) ? more : less;
}

// E-folds beyond the sizes and best depths at which costs are told; at most 0 where they are.
function beyondEvidence(blocks, total, depth) {
  let out = outside(blocks, DATA.evidence.blocks);
  if (total !== null && out <= Math.log(C.MOSTLY_EMBEDDING)) out = Math.min(out, outside(total, DATA.evidence.totals));
  return Math.max(out, outside(depth, DATA.evidence.depths)) - Math.log(C.OUTSIDE);
}

function requireRoom({ size, counting }) {
  const { fixed } = termsOf(counting);
  if (size <= fixed || widthAt(size, 1, counting) < C.LEAST_WIDTH) {
    const remedy = counting.rank !== null ? ", a lower rank" : counting.tied ? "" : ", or tie it";
    throw new UserError(
      `${short(size)} parameters have no room for blocks beside a vocabulary of ${whole.format(counting.vocab_size)}; `
        + `take a larger size, a smaller vocabulary${remedy}.`,
    );
  }
}

function ask(question) {
  requireRoom(question);
  const { counting, clock } = question;
  const { spread } = DATA.evidence;
  const logTokens = Math.log(question.tokens);
  const sizes = question.equalTime ? atEqualTime(question) : new Float64Array(DEPTHS).fill(question.size);
  const logBlocks = logBlocksAt(sizes, counting);
  const own = lossesAt(logBlocks, GRID, logTokens);
  const together = meanOfDraws(own);
  const [logBest] = lowest(together, GRID);
  const depth = wholeBest(logBest, (one) => interp(one, GRID, together));
  const along = (logDepth) => Float64Array.from(logDepth, (one) => interp(one, GRID, logBlocks));
  const blocksAt = (layers) => Math.exp(along([Math.log(layers)])[0]);
  const sizeOut = outside(Math.exp(interp(logBest, GRID, logBlocks)), DATA.evidence.blocks);
  const tokensOut = outside(question.tokens, DATA.evidence.tokens);
  const byTokens = question.tokens > DATA.evidence.tokens[0] ? spread.per_log_tokens : spread.per_log_fewer;
  const shift = Math.hypot(spread.sources, spread.per_log_size * sizeOut, byTokens * tokensOut);
  const same = question.askedDepth === null ? logBest : Math.log(question.askedDepth);
  const blockErrors = question.equalTime ? blockErrorsOf(question, sizes, same) : null;
  const moved = movedLosses(question, logBlocks, GRID, shift, blockErrors);
  const ofDraws = (losses) => {
    const found = Array.from({ length: COUNT }, (_, d) => lowest(losses, GRID, d * DEPTHS));
    const ends = [C.LOW, C.HIGH].map((share) => Math.exp(quantile(found.map(([place]) => place), share)));
    return [...ends, found.map(([, loss]) => loss)];
  };
  const [first, last] = [clock.logDepth[0], clock.logDepth.at(-1)].map(Math.exp);
  if (question.equalTime && !(first / C.UNTIMED <= depth && depth <= last * C.UNTIMED)) {
    throw new UserError(
      `By the times of ${clock.source}, of ${first.toFixed(0)} to ${last.toFixed(0)} layers, the best depth at equal time `
        + `lies beyond them (about ${depth}), where none were measured; take another machine, or time more depths: `
        + "shapelaw speed --depths.",
    );
  }
  const [ownLow, ownHigh] = ofDraws(own);
  const [low, high, movedLeast] = ofDraws(moved);
  const best = { depth, ownLow: Math.min(ownLow, depth), ownHigh: Math.max(ownHigh, depth) };
  [best.low, best.high] = [Math.min(low, best.ownLow), Math.max(high, best.ownHigh)];
  const least = middleAt(along([Math.log(depth)]), [Math.log(depth)], logTokens)[0];
  const curve = together.map((loss) => Math.max(loss - least, 0));

  // excess losses with the ends of their 68% intervals, at logs of depths and blocks
  function band(logDepth, blocks = along(logDepth)) {
    const points = logDepth.length;
    const middle = middleAt(blocks, logDepth, logTokens);
    const losses = movedLosses(question, blocks, logDepth, shift, blockErrors);
    return Array.from(logDepth, (_, p) => {
      const value = Math.max(middle[p] - least, 0);
      const above = movedLeast.map((one, d) => Math.max(losses[d * points + p] - one, 0));
      return [value, Math.min(quantile(above, C.LOW), value), Math.max(quantile(above, C.HIGH), value)];
    });
  }

  // the shallowest and the deepest whole depth that cost less than so many nats; at least the best
  function flat(nats) {
    const lowestAt = curve.indexOf(Math.min(...curve));
    let left = lowestAt;
    let right = lowestAt;
    while (left > 0 && curve[left - 1] <= nats) left--;
    while (right < DEPTHS - 1 && curve[right + 1] <= nats) right++;
    return [Math.min(Math.ceil(Math.exp(GRID[left]) - 1e-9), depth), Math.max(Math.floor(Math.exp(GRID[right]) + 1e-9), depth)];
  }

  // about seven whole depths around the flat part, the best one among them
  function rows() {
    let [shallow, deep] = flat(C.SHOWN * C.WITHIN);
    const most = Math.floor(Math.exp(LAST_DEPTH) + 1e-9);
    [shallow, deep] = [Math.min(shallow, Math.max(depth - 1, 1)), Math.max(deep, Math.min(depth + 1, most))];
    const spread = Array.from({ length: C.ROWS }, (_, i) => shallow * (Math.max(deep, shallow + 1) / shallow) ** (i / (C.ROWS - 1)));
    const far = spread.map((one) => Math.abs(Math.log(one / depth)));
    const nearest = far.indexOf(Math.min(...far));
    return [...new Set(spread.map((one, i) => (i === nearest ? depth : Math.round(one))))].sort((a, b) => a - b);
  }

  const logTimes = logTimesOf(question);
  return {
    question,
    best,
    blocksAt,
    band,
    flat,
    rows,
    at: (layers, blocks = blocksAt(layers)) => band([Math.log(layers)], Float64Array.of(Math.log(blocks)))[0],
    width: (layers) => Math.exp(logWidth(Math.log(blocksAt(layers)), Math.log(layers))),
    sizeAt: (layers) => Math.exp(interp(Math.log(layers), GRID, sizes.map(Math.log))),
    seconds: (layers) => Math.exp(logTimes(along([Math.log(layers)]), [Math.log(layers)])[0]),
    told:
      question.tokens >= DATA.evidence.least_tokens
      && question.tokens <= DATA.evidence.most_tokens
      && beyondEvidence(blocksAt(depth), counting.axis === "total" ? question.size : null, depth) <= 0,
  };
}

// The excess loss of a network against the best of its own size, at some tokens; null where it can't be told.
function priceOf(network, tokens) {
  const { size, counting } = network;
  if (widthAt(size, 1, counting) < C.LEAST_WIDTH || tokens > DATA.evidence.most_tokens) return null;
  const logBlocks = logBlocksAt(new Float64Array(DEPTHS).fill(size), counting);
  const logTokens = Math.log(tokens);
  const lossAt = (logDepth) => middleAt([interp(logDepth, GRID, logBlocks)], [logDepth], logTokens)[0];
  const depth = wholeBest(lowestMean(logBlocks, logTokens)[0], lossAt);
  const blocks = Math.exp(interp(Math.log(depth), GRID, logBlocks));
  if (beyondEvidence(blocks, counting.axis === "total" ? size : null, depth) > 0) return null;
  return Math.max(middleAt([Math.log(network.block_params)], [Math.log(network.depth)], logTokens)[0] - lossAt(Math.log(depth)), 0);
}

// The best depth of a law of transitions with its error; infinite where no depth is worth so much.
function depthByLaw(law, found) {
  const blocks = law.log_depth.map((one) => Math.log(found.blocksAt(Math.exp(one))));
  const [low, middle, high] = law.log_blocks;
  return [middle, low, high].map((from) => {
    const over = from.map((one, i) => one - blocks[i]);
    const right = over.findIndex((one) => one >= 0);
    if (right < 0) return Infinity;
    if (right === 0) return Math.exp(law.log_depth[0]);
    const share = over[right - 1] / (over[right - 1] - over[right]);
    return Math.exp((1 - share) * law.log_depth[right - 1] + share * law.log_depth[right]);
  });
}
