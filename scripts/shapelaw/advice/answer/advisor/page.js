// Fields, the address, and when what is computed.

const byId = (id) => document.getElementById(id);
const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const say = (id, ...parts) => byId(id).replaceChildren(...parts);

// ---- numbers as people write them ----

const UNITS = { k: 1e3, m: 1e6, b: 1e9, t: 1e12 };

// "1.3B", "6e7", "32k", "1,300,000" as a number; NaN where it is none.
function numberOf(text) {
  const parts = /^(\d+(?:\.\d*)?|\d{1,3}(?:,\d{3})+(?:\.\d*)?)(e[+-]?\d+)?([kmbt])?$/i.exec(text.trim().replace(/_/g, ""));
  return parts ? Number(parts[1].replace(/,/g, "") + (parts[2] ?? "")) * (parts[3] ? UNITS[parts[3].toLowerCase()] : 1) : NaN;
}

function short(value) {
  const number = Number(value.toPrecision(3));
  for (const [name, unit] of Object.entries(UNITS).reverse()) {
    if (number >= unit) return `${Number((number / unit).toPrecision(3))}${name === "k" ? name : name.toUpperCase()}`;
  }
  return String(number);
}

// ---- the state: what is in the fields, and the model; the address has what differs from the beginning ----

let beginning = {};
let model = null;
let leaving = null;
const MODELS_OWN = ["vocab", "tied", "rank", "positions", "depth", "kv"]; // fields that a model fills
const radios = () => [...document.querySelectorAll("input[name=equal]")];

function get(id) {
  if (id === "equal") return radios().find((radio) => radio.checked)?.value ?? "";
  return byId(id).type === "checkbox" ? (byId(id).checked ? "1" : "") : byId(id).value.trim();
}

function set(id, value) {
  if (id === "equal")
    radios().forEach((radio) => {
      radio.checked = radio.value === value;
    });
  else if (byId(id).type === "checkbox") byId(id).checked = value === "1";
  else byId(id).value = value;
}

function readAddress() {
  const address = new URLSearchParams(location.hash.slice(1));
  const text = address.get("model");
  for (const [id, value] of Object.entries(beginning)) set(id, address.get(id) ?? value);
  set("config", "");
  say("config-problem", "");
  let shape = null;
  if (text !== null) {
    const [depth, width, heads] = text.split("x").map(Number);
    const [blocks, params] = ["blocks", "params"].map((name) => Number(address.get(name)));
    if ([depth, width, heads, blocks, params].every(isCount) && blocks <= params)
      shape = { depth, width, heads, block_params: blocks, total_params: params, tied: get("tied") === "1" };
    else
      say(
        "config-problem",
        `The address has model=${text}; it must be layers, width and heads such as model=22x2048x32, with blocks= `
          + "and params=, its parameters.",
      );
  }
  take(shape);
  byId("more").open = get("rank") !== "" || get("positions") !== "";
}

function writeAddress() {
  const address = new URLSearchParams();
  for (const [id, value] of Object.entries(beginning)) if (get(id) !== value) address.set(id, get(id));
  if (model !== null) {
    address.set("model", `${model.depth}x${model.width}x${model.heads}`);
    address.set("blocks", model.block_params);
    address.set("params", model.total_params);
  }
  history.replaceState(null, "", [location.href.split("#")[0], ...(address.size ? [address] : [])].join("#"));
}

// Take a model, whose embeddings are then the question's, or with null none.
function take(shape) {
  model = shape;
  for (const id of MODELS_OWN) for (const field of [byId(id), byId(`${id}-slider`)]) if (field) field.disabled = shape !== null;
  byId("leave-out").hidden = shape === null;
  byId("size").placeholder = shape === null ? "" : "the model's";
  if (shape === null) return say("model-text", "");
  const keys = numberOf(get("kv")) > 0 ? `, ${get("kv")} of keys` : "";
  return say(
    "model-text",
    `${layers(shape.depth)} of width ${whole.format(shape.width)}, ${shape.heads} heads${keys}, `,
    `${shape.tied ? "tied" : "untied"}: ${whole.format(shape.total_params)} parameters, `,
    `${whole.format(shape.block_params)} in blocks. Leave the number of parameters empty for its own.`,
  );
}

function paste() {
  const text = get("config");
  say("config-problem", "");
  try {
    const shape = text === "" ? null : modelOf(text);
    if (shape !== null) {
      const { vocab_size: vocab, tied, positions, kv_heads: kv } = shape;
      const of = { size: "", vocab, tied: tied ? "1" : "", rank: "", depth: "", positions: positions || "", kv: kv ?? "" };
      for (const [id, value] of Object.entries(of)) set(id, String(value));
    }
    leaveOut(shape);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    say("config-problem", error.message);
    leaveOut();
  }
  byId("config").setAttribute("aria-invalid", String(byId("config-problem").textContent !== ""));
  update();
}

// Another model, or none, whose place the size of the last one takes.
function leaveOut(shape = null) {
  if (shape === null && model !== null && get("size") === "") set("size", short(model.total_params));
  take(shape);
}

// ---- the question, from the fields ----

function refuse(id, name, wanted, more = "") {
  const said = get(id) === "" ? "is empty" : `is ${get(id)}`;
  throw new UserError(`${name} ${said}; give a ${wanted}, such as ${byId(id).dataset.such}${more}.`);
}

function read(id, name, [least, most], { optional = false, integer = true } = {}) {
  const value = numberOf(get(id));
  if (optional && get(id) === "") return null;
  if (!(value >= least && value <= most) || (integer && !Number.isInteger(value))) {
    const wanted = `${integer ? "whole " : ""}number from ${short(least)} to ${short(most)}`;
    refuse(id, name, wanted, " (commas separate thousands; use a point for decimals)");
  }
  return value;
}

function withUnit(id, name, units) {
  const unit = Object.keys(units).find((one) => get(id).endsWith(one));
  const value = unit ? numberOf(get(id).slice(0, -unit.length)) : NaN;
  if (!(value > 0)) refuse(id, name, `positive number with its unit (${Object.keys(units).join(", ")})`);
  return value * units[unit];
}

const sizeOf = ({ block_params: blocks, total_params: total, width }, { axis, vocab_size: vocab }) =>
  ({ total, block: blocks, flops: blocks + width * vocab })[axis];

function readQuestion() {
  const equal = get("equal");
  const equalTime = equal === "time" || equal === "latency";
  if (equal === "") throw new UserError("What is compared at equal numbers is not known; choose one of the five.");
  const counting = {
    axis: equalTime ? "total" : equal,
    vocab_size: read("vocab", "The vocabulary", [2, 1e6]),
    tied: get("tied") === "1",
    rank: read("rank", "The rank", [1, 1e5], { optional: true }),
    positions: read("positions", "The number of learned positions", [1, 1e6], { optional: true }) ?? 0,
  };
  if (counting.rank !== null && counting.tied)
    throw new UserError("A factored embedding is not the classifier's matrix; untie it, or leave the rank empty.");
  const own = model !== null && get("size") === "";
  const size = own ? sizeOf(model, counting) : read("size", "The number of parameters", [1e4, 1e13], { integer: false });
  const machine = clockOf(get("machine"));
  return {
    equal,
    equalTime,
    counting,
    size,
    own,
    machine,
    clock: equal === "latency" ? readServing(counting) : machine,
    tokens:
      read("tokens", "The number of tokens", [DATA.evidence.least_tokens, 1e15], { optional: true, integer: false })
      ?? Math.max(C.TOKENS_A_PARAMETER * size, DATA.evidence.least_tokens),
    context: counting.positions || C.CONTEXT,
    askedDepth: null,
    depth: read("depth", "The number of layers", [1, 512], { optional: true }),
  };
}

function readServing({ positions }) {
  const kvHeads = read("kv", "The number of heads of keys", [1, 1e4], { optional: true });
  if (kvHeads !== null && positions) throw new UserError("Heads of keys are of Llama's block; leave them empty, or the learned positions.");
  return serving({
    kvHeads,
    batch: read("batch", "The number of sequences at once", [1, 1e6]),
    context: read("context", "The number of tokens in each cache", [1, 1e9]),
    bandwidth: withUnit("bandwidth", "What the memory reads", C.BANDWIDTHS),
    layerSeconds: withUnit("layer", "The time of a layer's launches", C.SECONDS),
  });
}

const clocks = {};
function clockOf(name) {
  if (!Object.hasOwn(DATA.machines, name)) throw new UserError("The machine of the times is not known; choose one of the list.");
  clocks[name] ??= machineClock(DATA.machines[name]);
  return clocks[name];
}

function commandOf(asked) {
  const { counting, equal } = asked;
  const parts =
    model === null
      ? [`shapelaw shape ${get("size")} --vocab ${counting.vocab_size}`]
      : ["shapelaw shape", ...(asked.own ? [] : [get("size")]), "--model FOLDER"];
  if (equal !== "total") parts.push(`--size ${equal}`);
  if (model === null && counting.tied) parts.push("--tied");
  if (get("tokens") !== "") parts.push(`--tokens ${get("tokens")}`);
  if (asked.depth !== null) parts.push(`--depth ${asked.depth}`);
  if (counting.rank !== null) parts.push(`--rank ${counting.rank}`);
  if (model === null && counting.positions) parts.push(`--block gpt2 --context ${counting.positions}`);
  if (get("machine") !== "mi250x") parts.push(`--machine ${get("machine")}`);
  if (equal === "latency") {
    parts.push(`--serve batch=${get("batch")},context=${get("context")},bandwidth=${get("bandwidth")},layer=${get("layer")}`);
    if (get("kv") !== "") parts.push(`--kv-heads ${get("kv")}`);
  }
  return parts.join(" ");
}

// ---- the answer ----

function show() {
  let asked = null;
  let found = null;
  say("problem", "");
  try {
    asked = readQuestion();
    found = ask(asked);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    say("problem", error.message);
  }
  const equal = get("equal");
  for (const id of ["found", "tables", "elsewhere"]) byId(id).hidden = found === null;
  byId("for-latency").hidden = equal !== "latency";
  byId("for-training").hidden = equal === "latency";
  const best = "Parameters of the best shape";
  const meanings = { block: "Parameters in blocks", flops: "Parameters multiplied for every token", time: best, latency: best };
  say("size-label", meanings[equal] ?? "Parameters in all");
  if (found === null) {
    for (const id of ["answer", "flat", "given", "bottleneck", "command"]) say(id, "");
    return;
  }
  const beside = besideOf(asked, found);
  const judged = judgedOf(asked, found);
  const sources = sourcesOf(asked, found);
  const models = modelsNear(asked);
  const rows = found.told ? costRows(asked, found) : [];
  sayAnswer(asked, found, beside);
  sayJudged(asked, judged);
  sayBottleneck(asked, found);
  byId("costs").hidden = !found.told;
  byId("shipped").hidden = models.length === 0;
  sayTables(asked, found, rows, sources, models);
  say("command", commandOf(asked));
  draw({ asked, found, beside, judged, sources, models, rows });
}

// ---- fields and sliders follow each other ----

const SLIDERS = { size: [10, short], vocab: [2, (value) => String(Math.round(value))], tokens: [10, short] };

function follow(name) {
  const size = numberOf(get("size")) || model?.total_params;
  const value = name === "size" ? size : get(name) === "" ? C.TOKENS_A_PARAMETER * size : numberOf(get(name));
  if (!(value > 0)) return;
  byId(`${name}-slider`).value = Math.log(value) / Math.log(SLIDERS[name][0]);
  byId(`${name}-slider`).setAttribute("aria-valuetext", short(value));
}

function update() {
  for (const name of Object.keys(SLIDERS)) follow(name);
  show();
  clearTimeout(leaving);
  leaving = setTimeout(writeAddress, 200); // browsers slow down pages that write it at every step of a slider
}

function begin() {
  for (const [name, machine] of Object.entries(DATA.machines))
    byId("machine").append(new Option(`${machine.name}: ${machine.source}`, name));
  const network = { size: "1.3B", equal: "total", vocab: "50257", tied: "", tokens: "", depth: "", rank: "", positions: "" };
  const served = { batch: "1", context: "4096", bandwidth: "3.3TB/s", layer: "20us", kv: "" };
  beginning = { ...network, machine: Object.keys(DATA.machines)[0], ...served };
  say("usual", String(C.TOKENS_A_PARAMETER));
  say(
    "source",
    `From public losses: ${DATA.evidence.name}, ${DATA.evidence.blocks.map(short).join(" to ")} parameters in blocks. `,
    "The interval is for your network: it includes what sources differ by.",
  );
  document.addEventListener("input", ({ target }) => {
    if (target.type === "range") {
      const name = target.id.replace("-slider", "");
      const [base, text] = SLIDERS[name];
      set(name, text(base ** Number(target.value)));
    }
    if (target.id === "config") paste();
    else update();
  });
  byId("leave-out").addEventListener("click", () => {
    set("config", "");
    paste();
    byId("config").focus();
  });
  byId("question").addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("resize", show);
  window.addEventListener("hashchange", () => {
    readAddress();
    update();
  });
  readAddress();
  update();
}
