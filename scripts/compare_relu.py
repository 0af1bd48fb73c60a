"""Train a two-layer ReLU network beside each attention network: equal parameters, the same examples and optimizer.

  python scripts/train_memorization.py --heads 2,4 --examples 100,300 --steps 5000 --value-dim 1 --out DIR
  python scripts/compare_relu.py --runs DIR --out DIR/relu.csv
  python scripts/analyse.py relu --input DIR/relu.csv --out DIR/relu

A ReLU network's input is the context's tokens and the query side by side, (n + 1) d numbers; examples, order,
optimizer, schedule, steps and early stopping are those of the run, so that only the network differs (section 4.3).

Reads the records of memorizers in DIR/runs. Each ReLU network that is trained is kept
beside the checkpoints of its run: started again, the command goes on with the next one. It writes a CSV with one row a
run: what both networks memorized (accuracy, or the mean squared error of a regression), what theorem 1 guarantees
the attention layer, and the most that proposition 3 allows the ReLU network on every data set of the theorem's kind
(Mahdavi et al. 2024; random examples may be easier). Exit codes: 0 done, 1 a loss is not finite, 2 wrong input.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional

from shapelaw.errors import UserError, command_line, say
from shapelaw.report.tables import picked
from shapelaw.specs.kinds import DIVERGED
from shapelaw.specs.memorizers import MemorizationRun
from shapelaw.storage.files import write_text
from shapelaw.storage.pool import read_keys
from shapelaw.storage.records import CHECKPOINTS, RUNS, finished_runs, write_json
from shapelaw.theory.memorization import equal_relu_units, memorizable_examples, relu_examples
from shapelaw.training.driver import exit_code_of
from shapelaw.training.memorizer_pack import NONE, draw_examples, example_order
from shapelaw.training.optimizer import packed_rate
from shapelaw.training.trainer import TrainingFailed

KEPT = "relu.json"


def main() -> int:
    """Parse the command line, train, and write the table."""
    parser = command_line(__doc__)
    parser.add_argument("--runs", type=Path, required=True, metavar="DIR", help="the --out of the training")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the table, as .csv")
    parser.add_argument("--keys", type=Path, metavar="FILE", help="one key a line: the runs (default: all)")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads (default 1)")
    arguments = parser.parse_args()

    def work() -> None:
        torch.set_num_threads(arguments.threads)
        folder = arguments.runs / RUNS
        keys = None if arguments.keys is None else read_keys(arguments.keys)
        every = finished_runs(folder, MemorizationRun, keys)
        found = [(run, summary) for run, summary in every if DIVERGED.name not in summary]
        if not found:
            raise UserError(
                f"{folder} has no finished run of a memorizer; train some with scripts/train_memorization.py."
            )
        rows = []
        for number, (run, summary) in enumerate(found, start=1):
            rows.append(row_of(run, summary, arguments.runs / CHECKPOINTS / run.key / KEPT))
            print(
                f"{number} of {len(found)}: {run.key}: "
                f"attention {rows[-1]['attention']:.3g}, ReLU {rows[-1]['relu']:.3g}",
                flush=True,
            )
        table = pd.DataFrame(rows).sort_values(["task", "context", "heads", "examples", "seed"])
        write_text(arguments.out, table.to_csv(index=False))

    return exit_code_of(work, 0.0)


def relu_of(run: MemorizationRun, units: int, kept: Path) -> ReluResult:
    """The ReLU network of a run, as an earlier call kept it, or trained now and kept.

    Raises:
        TrainingFailed: the loss is not finite.
        UserError: the file can't be written.
    """
    try:
        known = json.loads(kept.read_text(encoding="utf-8"))
    except FileNotFoundError:
        known = {}
    except ValueError:  # files are written whole, so the disk damaged this one; training again repairs it
        say(f"{kept} is damaged; its network is trained again")
        known = {}
    if known.get("spec_digest") == run.digest:
        return ReluResult(**known["result"])
    found = train_relu(run, units)
    write_json(kept, {"spec_digest": run.digest, "result": asdict(found)})
    return found


def row_of(run: MemorizationRun, summary: Mapping[str, Any], kept: Path) -> dict[str, object]:
    """Both networks of one run as a row of the table.

    Args:
        summary: of its record.
        kept: file in which its ReLU network is kept.

    Raises:
        UserError: the attention network's parameters do not pay for one ReLU unit.
    """
    units, m = units_of(run), run.memorizer
    if units < 1:
        raise UserError(
            f"The {m.total_params:,} parameters of {run.key} don't pay for one ReLU unit; take more heads "
            "or less context."
        )
    found = relu_of(run, units, kept)
    classes = run.task == "classification"
    return {
        **picked(run, "task", "context_type"),
        **picked(m, "heads", "context", "head_dim"),
        **picked(run, "examples", "seed", "steps"),
        "attention_params": m.total_params,
        "relu_units": units,
        "relu_params": found.params,
        "measure": "accuracy" if classes else "mean squared error",
        "attention": summary["final_accuracy" if classes else "final_loss"],
        "relu": found.accuracy if classes else found.loss,
        "attention_at_least": memorizable_examples(m.heads, m.context, m.head_dim),
        "relu_at_most": relu_examples(m.context, units, m.outputs),
    }


@dataclass(frozen=True)
class ReluResult:
    """The outcome of a trained ReLU network: loss on all examples, accuracy (None for numbers), steps taken."""

    units: int
    params: int
    loss: float
    accuracy: float | None
    steps: int


def units_of(run: MemorizationRun) -> int:
    """The most hidden units with no more parameters than the run's attention network; 0 if even one has more."""
    m = run.memorizer
    return equal_relu_units(m.total_params, m.context, m.width, m.outputs)


def train_relu(run: MemorizationRun, units: int) -> ReluResult:
    """Train one network of `units` hidden units on a CPU.

    Raises:
        TrainingFailed: the loss is no longer finite.
    """
    inputs_TI, labels_T = flat_examples(run)
    network = _network(inputs_TI.shape[1], units, run)
    optimizer = torch.optim.Adam(network.parameters())
    for step in range(run.steps):
        order_B = example_order(run, step, 1)[0]
        at_B = torch.from_numpy(order_B[order_B != NONE])
        for group in optimizer.param_groups:
            group["lr"] = packed_rate(run, step)
        optimizer.zero_grad()
        torch.autograd.backward(_loss(network(inputs_TI[at_B]), labels_T[at_B]))
        optimizer.step()
        done = step + 1
        if done % run.evaluate_every == 0 or done == run.steps:
            loss, accuracy = _evaluate(network, inputs_TI, labels_T)
            if not math.isfinite(loss):
                raise TrainingFailed(
                    f"The loss of a ReLU network on {run.key} is {loss} at step {done}; lower its learning rate."
                )
            if run.stop_when_memorized and accuracy == 1.0:
                break
    params = sum(parameter.numel() for parameter in network.parameters())
    return ReluResult(units, params, loss, accuracy, done)


def flat_examples(run: MemorizationRun) -> tuple[Tensor, Tensor]:
    """Inputs [T, (n + 1) d], the context's tokens and then the query, and labels [T]."""
    drawn = draw_examples(run)
    contexts = drawn.contexts.flatten(-2)
    if run.context_type == "shared":
        contexts = contexts.expand(run.examples, -1)
    return torch.cat([contexts, drawn.queries], dim=1), drawn.labels


def _network(inputs: int, units: int, run: MemorizationRun) -> nn.Module:
    """A network with PyTorch's own initialisation by the run's seed; the caller's generator is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        network = nn.Sequential(nn.Linear(inputs, units), nn.ReLU(), nn.Linear(units, run.memorizer.outputs))
    return network.to(getattr(torch, run.precision))


def _loss(outputs_Tc: Tensor, labels_T: Tensor) -> Tensor:
    """Cross-entropy in nats for classes, mean squared error for numbers."""
    if labels_T.is_floating_point():
        return (outputs_Tc[:, 0] - labels_T).square().mean()
    return functional.cross_entropy(outputs_Tc, labels_T)


def _evaluate(network: nn.Module, inputs_TI: Tensor, labels_T: Tensor) -> tuple[float, float | None]:
    with torch.no_grad():
        outputs_Tc = network(inputs_TI)
        loss = _loss(outputs_Tc, labels_T).item()
    if labels_T.is_floating_point():
        return loss, None
    return loss, (outputs_Tc.argmax(1) == labels_T).double().mean().item()


if __name__ == "__main__":
    sys.exit(main())
