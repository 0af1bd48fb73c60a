// What stands beside the answer, and all that in words and tables.

const layers = (depth) => `${depth} layer${depth === 1 ? "" : "s"}`;
const span = ([low, high]) => (high > low ? `${low} to ${layers(high)}` : layers(low));
const about = (width) => whole.format(Math.round(width / 16) * 16 || Math.round(width));
const excess = ([value, low, high]) => `${value.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`;

// Whole depths between which a best depth lies; never one alone.
function ends({ depth, low, high }) {
  const middle = Math.max(1, Math.round(depth));
  const [first, last] = [Math.max(1, Math.min(Math.floor(low + 0.5), middle)), Math.max(Math.ceil(high - 0.5), middle)];
  return last > first ? [first, last] : [Math.max(1, first - 1), last + 1];
}

// ---- what stands beside the answer ----

function askOrNull(question) {
  try {
    const found = ask(question);
    return found.told ? found : null;
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return null;
  }
}

// The same question at equal time, or for an answer at equal time at equal size; null where that can't be told.
function besideOf(asked, found) {
  if (!found.told) return null;
  const { counting, machine } = asked;
  const { depth } = found.best;
  const size = counting.axis === "total" ? asked.size : totalOf(depth, found.width(depth), counting);
  return askOrNull({ ...asked, size, counting: { ...counting, axis: "total" }, clock: machine, equalTime: !asked.equalTime });
}

// The excess loss of the model, or of the layers to judge: against the best of its own size, or that is as quick.
function judgedOf(asked, found) {
  if (model === null)
    return asked.depth === null || !found.told
      ? null
      : { depth: asked.depth, width: found.width(asked.depth), cost: found.at(asked.depth), against: found };
  const { counting } = asked;
  const question = { ...asked, size: sizeOf(model, counting), askedDepth: asked.equalTime ? model.depth : null };
  const against = asked.own && !asked.equalTime && found.told ? found : askOrNull(question);
  return { depth: model.depth, width: model.width, cost: against?.at(model.depth, model.block_params) ?? null, against };
}

// Released models of the nearest sizes, to a percent, the newest first; one of each depth and width.
function modelsNear(asked) {
  const sized = DATA.models.map((one) => {
    const counting = { ...one.counting, axis: asked.counting.axis };
    return { ...one, counting, size: sizeOf(one, counting) };
  });
  const far = ({ size }) => Math.round(100 * Math.abs(Math.log(size / asked.size)));
  const near = sized.filter((one) => far(one) < 100 * C.NEAR).sort((a, b) => far(a) - far(b) || b.year - a.year);
  const first = (one) => near.find(({ depth, width }) => depth === one.depth && width === one.width);
  return near
    .filter((one) => one === first(one))
    .slice(0, 12)
    .map((one) => ({ ...one, cost: one.origin ? null : priceOf(one, one.tokens ?? asked.tokens) }))
    .sort((a, b) => a.depth - b.depth);
}

function sourcesOf(asked, found) {
  const { best } = found;
  const row = (name, blocks, [depth, low, high], here) => ({ name, blocks, depth, low, high, outside: Math.exp(outside(here, blocks)) });
  const laws = DATA.laws.map((law) => {
    const depths = asked.equalTime ? [Infinity, Infinity, Infinity] : depthByLaw(law, found);
    return row(law.source, law.sizes, depths, found.blocksAt(Number.isFinite(depths[0]) ? depths[0] : best.depth));
  });
  return [row(DATA.evidence.name, DATA.evidence.blocks, [best.depth, best.ownLow, best.ownHigh], found.blocksAt(best.depth)), ...laws];
}

function saidBy(source, asked) {
  if (!Number.isFinite(source.depth)) return asked.equalTime ? "compares equal sizes alone" : "no depth pays at this size";
  return Number.isFinite(source.high) ? ends(source).join(" to ") : `${Math.round(source.low)} to no limit`;
}

// ---- the words ----

const EQUAL = {
  total: () => "equal size",
  block: () => "equal size of the blocks",
  flops: () => "equal FLOPs",
  time: ({ machine }) => `equal training time on ${machine.name}`,
  latency: () => "equal latency of decoding",
};

// The answer to the nearest question that the evidence can tell: in tokens first, else in size, to a fiftieth.
function nearestTold(asked) {
  const { least_tokens: least, most_tokens: most, totals } = DATA.evidence;
  const tokens = clip(asked.tokens, least, most);
  const at = (logSize) => askOrNull({ ...asked, size: Math.exp(logSize), tokens });
  const same = askOrNull({ ...asked, tokens });
  if (same !== null) return same;
  let [outer, inner] = [Math.log(asked.size), (Math.log(totals[0]) + Math.log(totals[1])) / 2];
  let found = at(inner);
  while (found !== null && Math.abs(outer - inner) > 0.02) {
    const middle = (outer + inner) / 2;
    const nearer = at(middle);
    if (nearer === null) outer = middle;
    else [found, inner] = [nearer, middle];
  }
  return found;
}

function cantTell(found) {
  const { depth } = found.best;
  const { depths, blocks } = DATA.evidence;
  const [have, here] =
    outside(depth, depths) > Math.log(C.OUTSIDE)
      ? [`${depths.join(" to ")} layers`, `the best depth by it would be about ${depth}`]
      : [`${blocks.map(short).join(" to ")} parameters in blocks`, `these have about ${short(found.blocksAt(depth))}`];
  const { tokens, size } = found.question;
  const why =
    tokens > DATA.evidence.most_tokens
      ? `Its losses end at ${short(DATA.evidence.tokens[1])} tokens: these are more than ${C.MANY_TOKENS} times as many.`
      : `Its networks have ${have}, and ${here}: more than ${C.OUTSIDE} times outside.`;
  const near = nearestTold(found.question);
  if (near === null) return why;
  const changed = near.question;
  const at = [changed.size !== size && short(changed.size), changed.tokens !== tokens && `${short(changed.tokens)} tokens`].filter(Boolean);
  return `${why} The nearest that it can tell is ${at.join(" and ")}: ${layers(near.best.depth)} (${ends(near.best).join(" to ")}).`;
}

function sayAnswer(asked, found, beside) {
  const { best } = found;
  const [low, high] = ends(best);
  if (!found.told) {
    say(
      "answer",
      "Best depth: ",
      element("strong", "can't tell"),
      `. What the evidence leaves open lies between ${low} and ${high} layers (68%).`,
    );
    return say("flat", cantTell(found));
  }
  say(
    "answer",
    "Best depth: ",
    element("strong", layers(best.depth)),
    ` (68%: ${low} to ${high}) at ${EQUAL[asked.equal](asked)}, `,
    `about ${about(found.width(best.depth))} wide, for ${short(asked.tokens)} tokens.`,
  );
  const other =
    beside === null
      ? ""
      : ` At ${EQUAL[asked.equalTime ? "total" : "time"](asked)} ${layers(beside.best.depth)} (${ends(beside.best).join(" to ")}).`;
  return say("flat", `Less than ${C.WITHIN} nats: ${span(found.flat(C.WITHIN))}.${other}`);
}

function sayJudged(asked, judged) {
  if (judged === null) return say("given", "");
  const name =
    model === null
      ? `${layers(judged.depth)}, about ${about(judged.width)} wide`
      : `Your model, ${judged.depth} x ${whole.format(judged.width)}`;
  if (judged.cost === null) return say("given", `${name}: the evidence doesn't reach its size, so its excess loss can't be told.`);
  const { against } = judged;
  const { depth } = against.best;
  const rival = { time: "that trains as quickly", latency: "that decodes as quickly" }[asked.equal] ?? "of its size";
  let said = `${name}: ${excess(judged.cost)} nats above the best ${rival}`;
  if (model !== null) said += `, which has ${layers(depth)}`;
  if (!asked.equalTime) {
    const share = trainingTime(asked, against, judged.depth, model?.block_params) / trainingTime(asked, against, depth) - 1;
    said += `; it takes ${Math.abs(100 * share).toFixed(0)}% ${share < 0 ? "less" : "more"} time per token to train on ${asked.machine.name}`;
  }
  return say("given", `${said}.`);
}

function sayBottleneck(asked, found) {
  const { vocab_size: vocab, rank } = asked.counting;
  const most = Math.min(vocab, rank ?? Infinity);
  const width = model?.width ?? found.width(asked.depth ?? found.best.depth);
  if (most >= width) return say("bottleneck", "");
  const off = ([strength]) => Math.abs(Math.log((strength * most) / width));
  const nearest = DATA.redundancies.reduce((a, b) => (off(b) < off(a) ? b : a));
  return say(
    "bottleneck",
    `The ${rank !== null && rank < vocab ? "rank" : "vocabulary"} binds: the embedding has a rank of at most `,
    `${whole.format(most)} in a width of ${about(width)}. Wasted parameters: ${nearest[1]}. `,
    "A deeper, narrower network wastes less.",
  );
}

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  Object.assign(made, attributes);
  return made;
}

function fill(id, caption, head, rows, here = -1) {
  const row = (cells, make) => {
    const made = document.createElement("tr");
    made.append(...cells.map(make));
    return made;
  };
  const body = rows.map((cells) => row(cells, (text, i) => (i ? element("td", text) : element("th", text, { scope: "row" }))));
  if (here >= 0) body[here].className = "here";
  byId(id).replaceChildren(
    element("caption", caption),
    row(head, (text) => element("th", text, { scope: "col" })),
    ...body,
  );
}

function costRows(asked, found) {
  const { depth: best } = found.best;
  const depths = found.rows();
  if (asked.depth !== null && !depths.includes(asked.depth)) depths.push(asked.depth);
  const logs = depths.sort((a, b) => a - b).map(Math.log);
  const costs = found.band(logs);
  const quickest = trainingTime(asked, found, best);
  return depths.map((depth, i) => ({
    depth,
    width: found.width(depth),
    cost: costs[i],
    other: asked.equalTime ? short(found.sizeAt(depth)) : (trainingTime(asked, found, depth) / quickest).toFixed(2),
  }));
}

// Seconds a token of training, up to a factor, with the blocks that the size leaves unless others are given.
function trainingTime({ machine, counting, context }, found, depth, blocks = found.blocksAt(depth)) {
  return Math.exp(machine.logTime(Math.log(blocks), Math.log(depth), counting.vocab_size, context));
}

function sayTables(asked, found, rows, sources, models) {
  const { best } = found;
  const milliseconds = (1e3 * found.seconds(best.depth)).toPrecision(3);
  const captions = {
    time: `Depths that train as quickly on ${asked.machine.name}`,
    latency: `Depths that decode as quickly: ${milliseconds} ms per token`,
  };
  fill(
    "costs",
    captions[asked.equal] ?? "Depths of this size",
    ["layers", "width, about", "excess loss, nats (68%)", asked.equalTime ? "parameters" : "training time"],
    rows.map(({ depth, width, cost, other }) => [String(depth), about(width), excess(cost), other]),
    rows.findIndex(({ depth }) => depth === best.depth),
  );
  fill(
    "sources",
    "Who says so",
    ["best depth by", "layers (fit's error)", "measured at blocks of", "this size"],
    sources.map((one) => {
      const said = Number.isFinite(one.depth) ? `${Math.round(one.depth)} (${saidBy(one, asked)})` : saidBy(one, asked);
      const factor = one.outside < 10 ? one.outside.toPrecision(2) : whole.format(Number(one.outside.toPrecision(2)));
      return [one.name, said, one.blocks.map(short).join(" to "), one.outside > 1.02 ? `${factor} times outside` : "inside"];
    }),
  );
  fill(
    "shipped",
    "Released at about this size",
    ["model", "layers", "width", "V", "size", "tokens", asked.equalTime ? "excess loss at its own size" : "excess loss"],
    models.map((one) => {
      const vocab = `${short(one.counting.vocab_size)}${one.counting.tied ? " tied" : ""}`;
      const tokens = one.tokens === null ? "unknown" : short(one.tokens);
      const cost = one.origin || (one.cost === null ? "can't tell" : one.cost.toFixed(3));
      return [`${one.name} (${one.year})`, String(one.depth), whole.format(one.width), vocab, short(one.size), tokens, cost];
    }),
  );
}
