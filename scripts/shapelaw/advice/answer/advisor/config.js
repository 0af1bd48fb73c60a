// The model of a pasted config.json of transformers: what config_json.py counts, by the same table of families.

const DENSE = ", and the depth that is best was measured for dense decoders";

const isCount = (value) => Number.isInteger(value) && value >= 1;

function parsed(text) {
  let config;
  try {
    config = JSON.parse(text);
  } catch (error) {
    throw new UserError(`This is not JSON (${error.message}); paste the whole config.json, from { to }.`);
  }
  if (config === null || typeof config !== "object" || Array.isArray(config))
    throw new UserError("A config.json is a JSON object, as transformers writes it; paste the whole file, from { to }.");
  return config;
}

// Why no family of the table is that of a config.
function refusal(config) {
  const named = [config.architectures ?? []].flat().join(", ");
  const family = config.model_type ?? "";
  const what = named || family;
  const decoder = /(CausalLM|LMHeadModel)$/.test(named);
  const elsewhere = "shapelaw shape --model FOLDER says what it is";
  if (what === "") return "This config names no model_type, such as llama; paste the config.json of a model of transformers.";
  if (config.is_encoder_decoder) return `${what} is an encoder with a decoder${DENSE}.`;
  if (C.FIELDS.experts.some((name) => config[name] > 1)) return `${what} is a mixture of experts${DENSE}.`;
  if (named && !decoder) return `${named} is no causal decoder${DENSE}; ${elsewhere}.`;
  return `Parameters of ${what} are not counted here, but those of ${Object.keys(C.PLAIN).join(", ")}; ${elsewhere}.`;
}

// Depth, width, heads, heads of keys, parameters and embeddings of a config.
function modelOf(text) {
  const config = parsed(text);
  const family = config.model_type;
  const gpt2 = family === "gpt2";
  const named = [config.architectures ?? []].flat();
  const plain = Object.hasOwn(C.PLAIN, family) ? C.PLAIN[family] : null;
  if (plain === null || (named.length > 0 && (named.length > 1 || named[0] !== plain.builds))) throw new UserError(refusal(config));
  const unusual = C.UNUSUAL.find((name) => config[name] && family !== "gpt_neox");
  if (unusual !== undefined)
    throw new UserError(`Its ${unusual} adds parameters that are not counted here; shapelaw shape --model FOLDER counts them.`);

  const number = (name, usual = null) => {
    const value = config[name] ?? usual;
    if (value === null) throw new UserError(`This config of ${family} has no ${name}, without which its parameters can't be counted.`);
    if (!isCount(value)) throw new UserError(`${name} is ${JSON.stringify(value)}; it must be a whole number of at least 1.`);
    return value;
  };
  const [width, depth, heads, vocab] = C[gpt2 ? "GPT2_NAMES" : "LLAMA_NAMES"].slice(0, 4).map((name) => number(name));
  const ffWidth = gpt2 ? number("n_inner", 4 * width) : number("intermediate_size");
  const ungated = plain.biases === "all";
  const kvHeads = ungated ? heads : number("num_key_value_heads", plain.needs_kv_heads ? null : heads);
  const positions = gpt2 ? number("n_positions", C.GPT2_POSITIONS) : 0;
  const ownDim = ungated ? null : (config.head_dim ?? plain.head_dim);
  if (ownDim === null && width % heads)
    throw new UserError(`${heads} heads do not divide a width of ${width}; head_dim must be given, or one of them changed.`);
  if (heads % kvHeads)
    throw new UserError(`${kvHeads} heads of keys can't be shared out among ${heads} heads; their number must divide that of the heads.`);
  const headDim = ownDim === null ? width / heads : number("head_dim", plain.head_dim);

  const tied = config.tie_word_embeddings ?? plain.tied;
  const queries = heads * headDim;
  const keys = kvHeads * headDim;
  const norms = { "": 0, head: 2 * headDim, heads: queries + keys }[plain.qk_norm] + plain.norms * width;
  const biases = { "": 0, qkv: queries + 2 * keys, all: queries + 2 * keys + ffWidth + 4 * width }[plain.biases];
  const block = width * (2 * queries + 2 * keys + plain.maps * ffWidth) + norms + biases;
  const last = plain.norms > 0 ? width * (ungated ? 2 : 1) : 0;
  return {
    depth,
    width,
    heads,
    vocab_size: vocab,
    tied: Boolean(tied),
    positions,
    kv_heads: kvHeads === heads ? null : kvHeads,
    block_params: depth * block,
    total_params: depth * block + last + width * (vocab * (tied ? 1 : 2) + positions),
  };
}
