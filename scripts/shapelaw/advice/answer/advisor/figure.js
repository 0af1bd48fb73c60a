// The figure: excess losses, best depths by source, and times or sizes, above one axis of layers.

const TOP_COST = 0.06;
const HIGH_COSTS = 300;
const UNDER = 44;
const ROW = 36;
const HIGH_RATIOS = 100;
const GAP = 34;
const LEFT = 52;
const DEPTH_TICKS = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512];
const RATIO_TICKS = [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 4];

function svgElement(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const path = (points) => points.map(([px, py], i) => `${i ? "L" : "M"}${px.toFixed(1)} ${py.toFixed(1)}`).join("");

function draw({ asked, found, beside, judged, sources, models, rows }) {
  const figure = byId("figure");
  const wide = clip(figure.parentElement.clientWidth, 330, 1000);
  const right = wide - 10;
  figure.replaceChildren();
  const add = (name, attributes, text) => figure.appendChild(svgElement(name, attributes, text));
  const best = found.best.depth;
  const shown = [Math.max(1, best / 7), Math.min(512, Math.max(best * 5, 8))];
  const x = (depth) => LEFT + ((right - LEFT) * Math.log(clip(depth, ...shown) / shown[0])) / Math.log(shown[1] / shown[0]);
  const yours = (equal, answer) => ({
    name: `${wide < 500 ? "At" : "Your network at"} ${EQUAL[equal](asked)}`,
    ...answer.best,
    kind: answer.question.equalTime ? "timely" : "",
  });
  const intervals = [
    yours(asked.equal, found),
    ...(beside === null ? [] : [yours(asked.equalTime ? "total" : "time", beside)]),
    ...sources.filter((one) => Number.isFinite(one.depth)),
  ];
  const costs = [12, 12 + (found.told ? HIGH_COSTS : 0)];
  const strip = costs[1] + UNDER;
  const ratios = [strip + ROW * intervals.length + GAP, strip + ROW * intervals.length + GAP + HIGH_RATIOS];
  figure.setAttribute("viewBox", `0 0 ${wide} ${ratios[1] + 48}`);
  const y = (cost) => costs[1] - ((costs[1] - costs[0]) * Math.min(cost, TOP_COST)) / TOP_COST;
  const write = (px, py, text, anchor = "start", kind = "tick") => add("text", { class: kind, x: px, y: py, "text-anchor": anchor }, text);
  const line = (value, from, to, kind) => add("line", { class: kind, x1: from, x2: to, y1: value, y2: value });

  for (const depth of DEPTH_TICKS.filter((one) => one >= shown[0] && one <= shown[1])) {
    add("line", { class: "grid", x1: x(depth), x2: x(depth), y1: costs[0], y2: ratios[1] });
    write(x(depth), ratios[1] + 18, String(depth), "middle");
  }
  write((LEFT + right) / 2, ratios[1] + 40, "layers", "middle", "");
  const drawn = Array.from({ length: 121 }, (_, i) => shown[0] * (shown[1] / shown[0]) ** (i / 120));

  if (found.told) {
    for (let cost = 0; cost <= TOP_COST + 1e-9; cost += 0.01) {
      line(y(cost), LEFT, right, "grid");
      write(LEFT - 6, y(cost) + 4, cost.toFixed(2), "end");
    }
    line(y(C.WITHIN), LEFT, right, "within");
    const band = found.band(drawn.map(Math.log)).map((one, i) => [x(drawn[i]), ...one.map(y)]);
    add("path", {
      class: "band",
      d: `${path(band.map((one) => [one[0], one[2]]))}${path(band.map((one) => [one[0], one[3]]).reverse()).replace("M", "L")}Z`,
    });
    add("path", { class: "curve", d: path(band.map((one) => [one[0], one[1]]).filter((one) => one[1] > costs[0])) });
    write(LEFT + 4, costs[0] + 12, "excess loss, nats");
    const point = (kind, name, depth, cost, title) => ({ kind, name, cost, title, x: x(depth), y: y(cost) });
    const priced = asked.equalTime ? [] : models.filter((one) => one.cost !== null);
    const points = priced.map((one) => {
      const shape = `${layers(one.depth)} of width ${whole.format(one.width)}`;
      return point("model", one.name, one.depth, one.cost, `${one.name} (${one.year}): ${shape}, ${one.cost.toFixed(3)} nats`);
    });
    if (judged?.cost) {
      const [{ depth }, [cost]] = [judged, judged.cost];
      points.unshift(point("you", model === null ? "" : "your model", depth, cost, `${layers(depth)}: ${cost.toFixed(3)} nats`));
    }
    drawPoints(add, write, points, [LEFT, right, strip - 14]);
  }

  intervals.forEach((one, i) => {
    const top = strip + ROW * i;
    const range = one.blocks && wide >= 500 ? `, from ${one.blocks.map(short).join(" to ")} in blocks` : "";
    const said = one.blocks ? saidBy(one, asked) : ends(one).join(" to ");
    write(LEFT, top + 12, `${one.name}: ${said}${range}`, "start", one.blocks ? "tick" : "");
    line(top + 24, x(one.low), x(one.high), `interval ${one.kind ?? ""}`);
    add("circle", { class: `best ${one.kind ?? ""}`, cx: x(one.depth), cy: top + 24, r: 5 });
  });

  const ratio = (depth) =>
    asked.equalTime ? found.sizeAt(depth) / found.sizeAt(best) : trainingTime(asked, found, depth) / trainingTime(asked, found, best);
  const relative = drawn.map(ratio);
  const low = asked.equalTime ? 0 : Math.min(...relative);
  const high = Math.max(...relative);
  const atRatio = (value) => ratios[1] - ((ratios[1] - ratios[0]) * (value - low)) / (high - low);
  let last = Infinity;
  for (const value of RATIO_TICKS.filter((one) => one >= low && one <= high)) {
    if (last - atRatio(value) < 14) continue;
    line(atRatio(value), LEFT, right, "grid");
    write(LEFT - 6, atRatio(value) + 4, String(value), "end");
    last = atRatio(value);
  }
  write(LEFT, ratios[0] - 8, `${asked.equalTime ? "parameters" : "training time per token"}, over that of the best`);
  add("path", { class: "time", d: path(drawn.map((depth, i) => [x(depth), atRatio(relative[i])])) });
  describe({ asked, found, judged, rows });
}

// What the figure shows, for those who don't see it, and what its parts are, for those who do.
function describe({ asked, found, judged, rows }) {
  let said = "Best depths by source; excess losses can't be told.";
  if (found.told) {
    const points = rows.map(({ depth, cost }) => `${cost[0].toFixed(3)} nats at ${layers(depth)}`);
    said = `Excess loss by depth at ${EQUAL[asked.equal](asked)}, a valley with its floor at ${layers(found.best.depth)}: `;
    said += `${points.join(", ")}.`;
  }
  if (judged?.cost) {
    const name = model === null ? "The layers to judge" : "Your model";
    said += ` ${name}: ${judged.cost[0].toFixed(3)} at ${layers(judged.depth)}.`;
  }
  byId("figure").setAttribute("aria-label", said);
  const top = "Top: loss above the best depth, with its 68% interval; dotted: what counts as nothing. ";
  const circles = "Circles: released models of about this size, each against the best of its own size, vocabulary and tokens. ";
  const middle = "Middle: the best depth and its 68% interval, for your network and by each source. ";
  const bottom = asked.equalTime
    ? `Bottom: parameters of the shapes that are as quick, over those of the best, by ${asked.clock.source}.`
    : `Bottom: training time per token, over that of the best, by ${asked.machine.source}.`;
  say("figure-text", found.told ? top : "", found.told && !asked.equalTime ? circles : "", middle, bottom);
}

// Points with their names where there is room: to the right, to the left, above or below.
function drawPoints(add, write, points, [left, right, bottom]) {
  const inside = points.filter((one) => one.x > left && one.x < right);
  const taken = inside.map((one) => [one.x - 6, one.y - 6, one.x + 6, one.y + 6]);
  const free = (box) =>
    box[0] > left
    && box[2] < right
    && box[1] > 24
    && box[3] < bottom
    && taken.every((one) => box[0] > one[2] || one[0] > box[2] || box[1] > one[3] || one[1] > box[3]);
  for (const one of inside) {
    const name = one.cost > TOP_COST ? `${one.name} (${one.cost.toFixed(2)})` : one.name;
    const text = write(0, 0, name, "middle", one.kind === "you" ? "" : "tick");
    const long = text.getComputedTextLength() + 4;
    const sides = [[8, -7], [-8 - long, -7], ...[-22, 8, -36, 22, -50, 36].map((down) => [-long / 2, down])];
    const box = sides.map(([dx, dy]) => [one.x + dx, one.y + dy, one.x + dx + long, one.y + dy + 14]).find(free);
    if (box === undefined) {
      text.remove();
      continue;
    }
    taken.push(box);
    text.setAttribute("x", (box[0] + box[2]) / 2);
    text.setAttribute("y", box[1] + 11);
  }
  for (const one of inside.reverse())
    add("circle", { class: one.kind, cx: one.x, cy: one.y, r: one.kind === "you" ? 6 : 4.5 }).append(svgElement("title", {}, one.title));
}
