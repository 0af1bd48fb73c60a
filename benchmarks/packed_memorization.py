"""Model-steps a CPU-second of packed memorizers, against one model at a time.

    PYTHONPATH=scripts python benchmarks/packed_memorization.py [--rounds 7] [--device cpu] [--peer FOLDER]

A model-step is one Adam step of one model on 256 examples, its batch picked from its examples. In one process, on one
thread, by turns; medians of CPU time (of wall time on a GPU). Packs are compiled where a compiler is, as training's
longer ones. The peers:

- naive: keys for every example, an output for every token, autograd, torch.optim.Adam
- public: the model of the paper's public code, from a checkout of smahdavi4/attention-memorization that --peer names,
  with its loss and torch.optim.Adam; its data loader, scheduler and logging are left out, which take time too
- one at a time: the same folded algebra as the pack's, one model, autograd, torch.optim.Adam, eager

The second table is a step of models of several shapes: in a pack for each shape, and in one pack, filled up with zeros.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from statistics import median

import torch
from machine import alternate, machine, markdown
from peers import Step, from_checkout
from torch import Tensor, nn

from shapelaw.errors import UserError, command_line
from shapelaw.jobs.resources import filled_up
from shapelaw.models import memorizer
from shapelaw.models.memorizer import Parameters, positions
from shapelaw.specs.memorizers import MemorizationRun, Memorizer
from shapelaw.training.hardware import keep_freed_memory
from shapelaw.training.memorizer_pack import MemorizerPack, draw_examples, example_order
from shapelaw.training.packs import can_compile

SHARED, EACH = "shared", "per_example"
SIZES = [(4, 64, 550), (20, 64, 2000), (30, 8, 2000)]
CASES = [(*sizes, context_type) for context_type in (SHARED, EACH) for sizes in SIZES]
SEVERAL = (1, 5, 10, 20, 30)  # heads of models in one pack
LEAST_SECONDS = 0.3  # of a measurement


class NaiveMemorizer(nn.Module):
    """The memorizer as one would first write it; takes tokens [B, n + 1, d], the query first, and gives outputs [B, c].

    Equal to `shapelaw.models.memorizer` to rounding (a test holds it to that). The shape of the computation is that of
    the paper's public code: all tokens of an example go through the whole layer, the query is masked as a key, and only
    its output is read.
    """

    def __init__(self, m: Memorizer, p: Parameters) -> None:
        super().__init__()
        d, heads, k, v = m.width, m.heads, m.head_dim, m.values
        self.scale = m.scale
        dtype = p["bias"].dtype
        self.embedding, self.read_out = nn.Linear(d, d, dtype=dtype), nn.Linear(d, m.outputs, dtype=dtype)
        with torch.no_grad():
            self.embedding.weight.copy_(p["embedding"].T)
            self.embedding.bias.copy_(p["embedding_bias"])
            self.read_out.weight.copy_(p["w_d"].T)
            self.read_out.bias.copy_(p["bias"])
        self.w_q = nn.Parameter(p["w_q"].clone())
        self.w_k = nn.Parameter(p["w_k"].view(d, heads, k).transpose(0, 1).contiguous())
        self.w_v = nn.Parameter(p["w_v"].view(d, heads, v).transpose(0, 1).contiguous())
        self.w_o = nn.Parameter(p["w_o"].clone())
        self.register_buffer("places", positions(m, dtype))

    def forward(self, tokens: Tensor) -> Tensor:
        """Outputs of the queries."""
        x = self.embedding(tokens) + self.places
        q, k, v = (x[:, None] @ w for w in (self.w_q, self.w_k, self.w_v))  # [B, H, n + 1, ...]
        logits = q @ k.transpose(2, 3) * self.scale
        logits[..., 0] = -torch.inf
        out = torch.softmax(logits, -1) @ v
        out = out.transpose(1, 2).flatten(2) @ self.w_o  # [B, n + 1, d]
        outputs: Tensor = self.read_out(out)[:, 0]
        return outputs


def public_memorizer(folder: Path, m: Memorizer, p: Parameters) -> nn.Module:
    """The model of smahdavi4/attention-memorization (as of commit 34305e9), with parameters of ours.

    It takes tokens [B, n + 1, d], the query first, and gives outputs [B, n + 1, c], of which the first is read.

    Raises:
        UserError: the folder has no src/attn_models.py with BaselineAttention, or m is not of its kind.
    """
    if m.values != 1 or m.logit_scale != "width" or m.attend_to_query:
        raise UserError("The public code has value_dim 1, logit_scale width, and a query that is no key.")
    (kind,) = from_checkout(folder, "src/attn_models.py", "attention-memorization", "BaselineAttention")
    model: nn.Module = kind(m.width, m.outputs, m.width, m.heads, m.head_dim)
    by_head = {name: p[name].view(m.width, m.heads, -1).transpose(0, 1) for name in ("w_k", "w_v")}
    ours = {
        "embedding.weight": p["embedding"].T,
        "embedding.bias": p["embedding_bias"],
        "attention.Wq": p["w_q"],
        "attention.Wk": by_head["w_k"],
        "attention.Wv": by_head["w_v"],
        "attention.Wo": p["w_o"],
        "decoder.weight": p["w_d"].T,
        "decoder.bias": p["bias"],
    }
    model.load_state_dict({**model.state_dict(), **ours})
    return model


def run_of(heads: int, head_dim: int, examples: int, context_type: str, seed: int = 0) -> MemorizationRun:
    """A run of the paper's grid, with the conventions of its authors' code."""
    m = Memorizer(heads, 32, head_dim, value_dim=1, logit_scale="width")
    return MemorizationRun(m, "classification", context_type, examples, 50_000, seed)  # type: ignore[arg-type]


def initial(run: MemorizationRun) -> Parameters:
    """The parameters that a run begins with."""
    return memorizer.initial_parameters(run.memorizer, run.seed, torch.float32)


def naive(run: MemorizationRun, device: torch.device) -> Step:
    """A step of the naive model."""
    model = NaiveMemorizer(run.memorizer, initial(run))
    return step_on_tokens(model, model, run, device)


def public(run: MemorizationRun, device: torch.device, folder: Path) -> Step:
    """A step of the public code's model, which is seen to give our outputs."""
    m, p = run.memorizer, initial(run)
    model, ours = public_memorizer(folder, m, p), NaiveMemorizer(m, p)

    def outputs(tokens: Tensor) -> Tensor:
        every: Tensor = model(tokens, None)[0]
        return every[:, 0]

    tokens = torch.rand(8, m.context + 1, m.width)
    torch.testing.assert_close(outputs(tokens), ours(tokens), rtol=0, atol=1e-4)
    return step_on_tokens(model, outputs, run, device)


def step_on_tokens(
    model: nn.Module, outputs: Callable[[Tensor], Tensor], run: MemorizationRun, device: torch.device
) -> Step:
    """A step of a model that takes tokens [B, n + 1, d] of each example."""
    examples = draw_examples(run)
    contexts = examples.contexts.expand(run.examples, -1, -1)
    tokens = torch.cat([examples.queries[:, None], contexts], 1).to(device)
    labels = examples.labels.to(device)
    return adam_step(
        run,
        model.to(device).parameters(),
        lambda at: nn.functional.cross_entropy(outputs(tokens[at]), labels[at]),
        device,
    )


def alone(run: MemorizationRun, device: torch.device) -> Step:
    """A step of one model with the folded algebra."""
    m, examples = run.memorizer, draw_examples(run)
    parameters = {name: value[None].to(device).requires_grad_() for name, value in initial(run).items()}
    place = positions(m, torch.float32).to(device)
    queries, labels, contexts = (x.to(device) for x in (examples.queries, examples.labels, examples.contexts))

    def loss(at: Tensor) -> Tensor:
        context = contexts if run.context_type == SHARED else contexts[at]
        outputs = memorizer.forward(parameters, m, place, queries[at][None], context[None])[0]
        return memorizer.losses(outputs, labels[at][None]).sum()

    return adam_step(run, parameters.values(), loss, device)


def adam_step(
    run: MemorizationRun,
    parameters: Iterable[Tensor],
    loss: Callable[[Tensor], Tensor],
    device: torch.device,
) -> Step:
    """A step by autograd and torch.optim.Adam on a loss of the next batch's examples."""
    optimizer = torch.optim.Adam(parameters, lr=run.learning_rate)
    batches = itertools.cycle(torch.from_numpy(example_order(run, 0, 64)).to(device))

    def step() -> None:
        optimizer.zero_grad()
        loss(next(batches)).backward()
        optimizer.step()

    return step


def packed(runs: list[MemorizationRun], device: torch.device) -> Step:
    """A step of a pack."""
    return MemorizerPack(runs, device, can_compile(device)).step


def milliseconds(steps: Mapping[str, Step], rounds: int, device: torch.device) -> dict[str, list[float]]:
    """Milliseconds of a step of each in each round."""
    for step in steps.values():  # compiles
        step()
        step()
    on_gpu = device.type == "cuda"
    seconds = alternate(
        *steps.values(),
        rounds=rounds,
        clock=time.perf_counter if on_gpu else time.process_time,
        least_seconds=LEAST_SECONDS,
        finish=torch.cuda.synchronize if on_gpu else lambda: None,
    )
    return {name: [1000 * s for s in times] for name, times in zip(steps, seconds, strict=True)}


def ratio(slow: list[float], fast: list[float]) -> float:
    """The median of the rounds' ratios."""
    return median(s / f for s, f in zip(slow, fast, strict=True))


def against_peers(
    case: tuple[int, int, int, str], sizes: list[int], rounds: int, device: torch.device, peer: Path | None
) -> list[dict[str, object]]:
    """A row for each peer and size of pack: milliseconds a model-step, and how many times faster than each peer."""
    run = run_of(*case)
    peers = {"naive": naive(run, device)}
    if peer is not None:
        peers["public"] = public(run, device, peer)
    peers["one at a time"] = alone(run, device)
    packs = {size: packed([run_of(*case, seed) for seed in range(size)], device) for size in sizes}
    steps = peers | {f"pack of {size}": step for size, step in packs.items()}
    models = [1] * len(peers) + sizes
    times = milliseconds(steps, rounds, device)
    times = {what: [t / n for t in times[what]] for what, n in zip(steps, models, strict=True)}
    setting = dict(zip(("H", "d_h", "T", "context"), case, strict=True))
    return [
        {**setting, "what": what, "ms": f"{median(own):.2f}"}
        | {f"x {name}": f"{ratio(times[name], own):.3g}" for name in peers}
        for what, own in times.items()
    ]


def several_shapes(models: int, rounds: int, device: torch.device) -> dict[str, object]:
    """A row: milliseconds of a step of so many models of each of `SEVERAL` heads, in packs apart and in one pack."""
    packs = [[run_of(heads, 64, 2000, SHARED, seed) for seed in range(models)] for heads in SEVERAL]
    runs = [run for pack in packs for run in pack]
    apart = [packed(pack, device) for pack in packs]
    steps = {"apart": lambda: [step() for step in apart], "in one": packed(runs, device)}
    times = milliseconds(steps, rounds, device)
    alone, filled = (sum(run.step_flops for run in some) for some in (runs, filled_up(runs)))
    return {
        "models of each": models,
        **{f"ms {name}": f"{median(own):.2f}" for name, own in times.items()},
        "times faster": f"{ratio(*times.values()):.2f}",
        "times the operations": f"{filled / alone:.2f}",
    }


def main() -> None:
    """Measure and print the tables."""
    parser = command_line(__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--cases", type=int, nargs="+", default=range(len(CASES)), help="places in the list of cases"
    )
    parser.add_argument("--models", type=int, nargs="+", default=[1, 4, 8], help="sizes of packs")
    parser.add_argument(
        "--several", type=int, nargs="*", default=[1, 4], help="models of each shape in the second table"
    )
    parser.add_argument("--peer", type=Path, help="a checkout of the paper's public code")
    arguments = parser.parse_args()
    device, rounds = torch.device(arguments.device), arguments.rounds
    torch.set_num_threads(1)
    keep_freed_memory()
    print(f"{machine()}, 1 thread, torch {torch.__version__}, {device}\n")
    print("Milliseconds a model-step, and how many times faster than each peer.")
    for case in (CASES[place] for place in arguments.cases):
        rows = against_peers(case, arguments.models, rounds, device, arguments.peer)
        print(f"\n{markdown(rows)}", flush=True)
    if arguments.several:
        heads = ", ".join(map(str, SEVERAL))
        print(
            f"\nA step of models with {heads} heads (d_h = 64, T = 2000, shared): in packs apart, in one.\n"
        )
        print(markdown([several_shapes(models, rounds, device) for models in arguments.several]))


if __name__ == "__main__":
    main()
