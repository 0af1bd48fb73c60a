"""A model, its optimizer and their progress: one step, one checkpoint, one summary.

Data order, dropout and learning rate are pure functions of (seed, step); a checkpoint holds everything else.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from shapelaw.corpora.token_store import TokenStore
from shapelaw.errors import UserError, reason_of, say
from shapelaw.models.decoder import Decoder, initialise, parameter_groups
from shapelaw.specs.runs import Run, Training
from shapelaw.storage.records import history_schema, padded
from shapelaw.training import checkpoint, hardware
from shapelaw.training.evaluation import EvaluationSet, bits_per_byte, evaluate, load_test_set
from shapelaw.training.journal import Ended, UnderWay
from shapelaw.training.optimizer import Batches, Optimizer, dropout_seed, learning_rate, window_starts

Stores = tuple[TokenStore, TokenStore]  # training, test
CompiledPart = Literal["model", "blocks", "graphs"]
COMPILED_PARTS: tuple[CompiledPart, ...] = get_args(CompiledPart)
# of a run with Llama's blocks: the kernel saves 1 to 2 of 5 to 10 ms of a step at widths 12 to 48, and takes 2.4 s to
# compile where it isn't kept
_KERNEL_STEPS, _KERNEL_FLOPS = 1000, 3e12
_OUT_OF_MEMORY = re.compile("can't allocate memory|out of memory|not enough memory", re.IGNORECASE)
_LESS = (
    "take a smaller width, depth, vocab_size or training.batch_size, or ask for more: "
    "--set-resources RULE:mem_mb=... on a cluster."
)
_UNREAD_STEPS = 16  # most steps of a GPU whose losses the host has not read yet


class CompiledDecoder(nn.Module):
    """The forward pass of a decoder, whose parameters it shares.

    Args:
        model: the decoder, whose parameters are shared.
        part: "model": all hidden states are one graph, which takes as long to compile as the network is deep.
            "blocks": one block is compiled and serves for all. "graphs": the whole model, replayed as CUDA graphs.
    """

    def __init__(self, model: Decoder, part: CompiledPart) -> None:
        super().__init__()
        self.model = model
        self._features: Callable[[Tensor], Tensor] = torch.compile(
            model.features, dynamic=False, mode="reduce-overhead" if part == "graphs" else None
        )
        if part == "blocks":
            blocks = [torch.compile(block, dynamic=False) for block in model.blocks]
            self._features = partial(model.features, blocks=blocks)

    def forward(self, ids_BT: Tensor, targets_BT: Tensor) -> Tensor:
        """Mean cross-entropy of the targets in nats per token, as `Decoder.forward`."""
        return self.model.loss(self._features(ids_BT), targets_BT, compiled=True)


@dataclass(frozen=True)
class Runtime:
    """The execution of a run; nothing here changes the result beyond rounding.

    Attributes:
        device: "auto", "cpu", "cuda" or "cuda:N".
        threads: CPU threads of PyTorch; its own default when None.
        micro_batch: sequences at once on one device; chosen for the free memory when None.
        compile: compile the step with torch.compile; when None, on a GPU (on a CPU it does not pay).
        compiled_part: the part that becomes one graph (see `CompiledDecoder`).
        checkpoint_seconds: time between two checkpoints.
        live_seconds: time between two updates of live.json and the live history.
        wait_seconds: how long to wait for another process that trains the same run.
        keep_weights_of: keys of decoders that leave a checkpoint of their last step, which is deleted otherwise.
        tags: free text that goes into the record (git commit, config hash, job id, ...).
    """

    device: str = "auto"
    threads: int | None = None
    micro_batch: int | None = None
    compile: bool | None = None
    compiled_part: CompiledPart = "model"
    checkpoint_seconds: float = 600.0
    live_seconds: float = 15.0
    wait_seconds: float = 0.0
    keep_weights_of: Set[str] = frozenset()
    tags: Mapping[str, str] = field(default_factory=dict)


class TrainingFailed(Exception):
    """A run can't go on for now (the disk or the memory is full); the message is a sentence."""


@contextmanager
def memory_errors() -> Iterator[None]:
    """Turn memory that runs out into a sentence; PyTorch's allocators raise a RuntimeError.

    Raises:
        TrainingFailed: there is not enough memory.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not _OUT_OF_MEMORY.search(str(error)):
            raise
        raise TrainingFailed(f"There is not enough memory ({reason_of(error)}); {_LESS}") from error


@dataclass
class TrainingProgress:
    """The content of a checkpoint besides the model and the optimizer."""

    step: int = 0
    rows: list[tuple[float, ...]] = field(default_factory=list)
    loss_sum: float = 0.0  # of the steps since the last row
    train_seconds: float = 0.0  # spent in steps, without evaluations and checkpoints
    data_seconds: float = 0.0  # the part of these spent waiting for batches
    wall_seconds: float = 0.0  # of earlier attempts, up to their last checkpoint


class Trainer:
    """A model, its optimizer and their progress."""

    def __init__(
        self, run: Run, stores: Stores, checkpoints: Path, runtime: Runtime, ranks: hardware.Ranks
    ) -> None:
        training, (train_store, test_store) = run.training, stores
        if training.batch_size % ranks.world:
            raise UserError(
                f"training.batch_size is {training.batch_size}, which {ranks.world} processes can't share evenly; "
                f"use a multiple of {ranks.world}."
            )
        self.run, self.ranks = run, ranks
        self.batches = Batches(train_store, run.shape.context_length, ranks.device)
        self.checkpoints, self.identity = checkpoints, identity(run, *stores)
        self.test_set: EvaluationSet = load_test_set(
            test_store, run.shape.context_length, training.test_sequences
        )
        self.model = Decoder(run.shape, training.dropout, training.parametrization)
        initialise(self.model, run.seed)
        self.model.to(ranks.device)
        self.optimizer = make_optimizer(self.model, training)
        self.micro_batch = runtime.micro_batch or hardware.micro_batch_size(
            run.shape, training.batch_size // ranks.world, ranks.device, training.precision
        )
        self.started = time.monotonic()
        self.progress = TrainingProgress()
        self.diverged_at: int | None = None  # the step whose loss is not finite
        compiled = ranks.device.type == "cuda" if runtime.compile is None else runtime.compile
        if not compiled and self._is_worth_a_kernel():
            self.model.use_kernel()
        self._resume()
        self._forward: Any = CompiledDecoder(self.model, runtime.compiled_part) if compiled else self.model
        if ranks.world > 1:
            self._forward = DistributedDataParallel(self._forward)
        self._unread: list[tuple[int, Tensor]] = []  # steps and their losses, on the device
        self._has_ended = False

    def _is_worth_a_kernel(self) -> bool:
        """True for a long run of Llama's blocks on one thread of a CPU."""
        run = self.run
        is_long = run.steps * run.step_flops >= _KERNEL_FLOPS or run.steps >= _KERNEL_STEPS
        one_thread = self.ranks.device.type == "cpu" and torch.get_num_threads() == 1
        return run.shape.block == "llama" and one_thread and is_long

    def _resume(self) -> None:
        """Resume from the newest checkpoint; rank 0 chooses it, so that all ranks resume from the same one.

        Raises:
            UserError: a checkpoint can't be used here.
        """
        state = None
        if self.ranks.first:
            state = checkpoint.load_newest(self.checkpoints, self.identity, say)
        step = self.ranks.max(0 if state is None else state["step"])
        if not step:
            return
        path = checkpoint.checkpoint_path(self.checkpoints, step)
        state = checkpoint.read_checkpoint(path) if state is None else state
        try:
            self._restore(state)
        except (KeyError, RuntimeError, TypeError, ValueError) as error:
            raise UserError(
                f"The checkpoint {path} doesn't fit this version of the code ({str(error).splitlines()[0]}); check "
                f"out the version that wrote it, or train the run from its first step: rm -r {self.checkpoints}"
            ) from error
        if self.ranks.first:
            say(f"resumed {self.run.key} at step {self.progress.step} of {self.run.training.steps}")

    def _restore(self, state: Mapping[str, Any]) -> None:
        if state["setting"] == (now := self._setting()):
            self.micro_batch = state["micro_batch"]
        elif self.ranks.first:
            say(
                f"resumed under another setting ({now}, before {state['setting']}): equal up to rounding only"
            )
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.progress = TrainingProgress(**{name: state[name] for name in vars(self.progress)})
        self.progress.rows = padded(state["rows"].tolist(), history_schema(self.run))
        self.diverged_at = state.get("diverged_at")

    def _setting(self) -> str:
        """The setting that must stay the same for a resumed run to be bit-identical."""
        device, threads = hardware.device_name(self.ranks.device), torch.get_num_threads()
        kernel = ", Llama's kernel" if self.model.by_llama_kernel else ""
        return f"{device}, {self.ranks.world} processes, {threads} threads, torch {torch.__version__}{kernel}"

    @property
    def step_number(self) -> int:
        """The steps that are done."""
        return self.progress.step

    def under_way(self) -> list[UnderWay]:
        """The run, until it has ended."""
        run, progress = self.run, self.progress
        return [] if self._has_ended else [UnderWay(run.key, progress.step, run.steps, progress.rows)]

    def ended(self) -> list[Ended]:
        """The run, after its last step, or once its loss is not finite."""
        if self.diverged_at is not None:
            numbers = {"diverged_at_step": self.diverged_at, **self._execution()}
        elif self.progress.step == self.run.training.steps:
            numbers = self.summary() if self.ranks.first else {}
        else:
            return []
        self._has_ended = True
        return [Ended(self.run.key, self.progress.rows, numbers)]

    def state(self) -> dict[str, Any]:
        """The content of a checkpoint."""
        self._read_losses()
        return {
            "setting": self._setting(),
            "micro_batch": self.micro_batch,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            **vars(self.progress),
            "rows": torch.tensor(self.progress.rows, dtype=torch.float64),
            "wall_seconds": self._wall_seconds(),
            "diverged_at": self.diverged_at,
        }

    def step(self) -> None:
        """One optimizer step; none where the loss was not finite, or after the last one."""
        if self.diverged_at is not None or self.progress.step == self.run.training.steps:
            return
        started = time.perf_counter()
        training, ranks = self.run.training, self.ranks
        step = self.progress.step + 1
        rate = self.optimizer.learning_rate = learning_rate(training, step)
        starts = window_starts(self.run.seed, step, self.batches.windows, training.batch_size)
        local = training.batch_size // ranks.world
        ids = self.batches.gather(starts[ranks.rank * local : (ranks.rank + 1) * local])
        self.progress.data_seconds += time.perf_counter() - started
        self.optimizer.zero_grad()
        losses: list[Tensor] = []
        parts = torch.split(ids, self.micro_batch)
        for index, part in enumerate(parts):
            if training.dropout:
                torch.manual_seed(dropout_seed(self.run.seed, step, ranks.rank * len(parts) + index))
            with self._no_sync(index < len(parts) - 1), self._autocast():
                loss = self._forward(part[:, :-1], part[:, 1:]) * (len(part) / local)
                loss.backward()
            losses.append(loss.detach())
        self._unread.append((step, torch.stack(losses).sum()))
        waits = ranks.device.type == "cuda" and ranks.world == 1 and not self._is_logged(step)
        if not waits or len(self._unread) >= _UNREAD_STEPS:
            self._read_losses()
        if self.diverged_at is not None:
            return
        norm = self._gradient_norm(step)
        self.optimizer.step()
        progress = self.progress
        progress.step = step
        progress.train_seconds += time.perf_counter() - started
        if norm is not None:
            self._log(rate, norm)

    def _read_losses(self) -> None:
        """Add up the losses since the last reading: each reading makes the host and then the device wait."""
        unread, self._unread = self._unread, []
        for step, loss in unread:
            total = self.ranks.sum(float(loss)) / self.ranks.world
            if not math.isfinite(total) and self.diverged_at is None:
                self.diverged_at = step
            self.progress.loss_sum += total

    def _gradient_norm(self, step: int) -> float | None:
        """Clip the gradient, and return its norm where the history or clipping needs it."""
        training = self.run.training
        logged = self._is_logged(step)
        if training.gradient_clip is not None:
            norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), training.gradient_clip)
        elif logged:
            norm = torch.nn.utils.get_total_norm(
                [p.grad for p in self.model.parameters() if p.grad is not None]
            )
        return float(norm) if logged else None

    def _is_logged(self, step: int) -> bool:
        training = self.run.training
        return step % training.log_every == 0 or self._is_evaluated(step)

    def _is_evaluated(self, step: int) -> bool:
        return step % self.run.training.evaluate_every == 0 or step == self.run.training.steps

    def _log(self, rate: float, norm: float) -> None:
        progress = self.progress
        steps = progress.step - int(progress.rows[-1][0] if progress.rows else 0)
        loss = math.nan
        if self._is_evaluated(progress.step):
            with self._autocast():
                loss = evaluate(self.model, self.test_set, self.micro_batch, self.ranks)
            if not math.isfinite(loss):
                self.diverged_at = progress.step
                return
        progress.rows.append((progress.step, progress.loss_sum / steps, rate, norm, loss))
        progress.loss_sum = 0.0

    def _autocast(self) -> Any:
        if self.run.training.precision == "bfloat16":
            return torch.autocast(self.ranks.device.type, torch.bfloat16)
        return nullcontext()

    def _no_sync(self, accumulating: bool) -> Any:
        return self._forward.no_sync() if accumulating and self.ranks.world > 1 else nullcontext()

    def _wall_seconds(self) -> float:
        return self.progress.wall_seconds + time.monotonic() - self.started

    def summary(self) -> dict[str, Any]:
        """The numbers of the finished run."""
        progress, training, shape = self.progress, self.run.training, self.run.shape
        flops = shape.step_flops(training.batch_size)
        peak = self.ranks.world * hardware.peak_flops(self.ranks.device, training.precision)
        final = progress.rows[-1]
        tokens = training.steps * training.batch_size * shape.context_length
        return {
            "test_loss": final[4],
            "bits_per_byte": bits_per_byte(final[4], self.test_set),
            "train_loss": final[1],
            "steps": training.steps,
            "tokens_trained": tokens,
            "total_params": shape.total_params,
            "block_params": shape.block_params,
            "step_flops": flops,
            "train_seconds": progress.train_seconds,
            "model_flops_utilisation": flops * training.steps / progress.train_seconds / peak,
            "peak_flops": peak,
            "data_wait": progress.data_seconds / progress.train_seconds,
            "tokens_per_second": tokens / progress.train_seconds,
            "test_sequences": training.test_sequences,
            "test_tokens": self.test_set.tokens,
            "test_bytes": self.test_set.bytes,
            **self._execution(),
        }

    def _execution(self) -> dict[str, Any]:
        """The machine, and what the run took of it."""
        return {
            "wall_seconds": self._wall_seconds(),
            "micro_batch": self.micro_batch,
            "processes": self.ranks.world,
            **hardware.machine(self.ranks.device),
        }


def identity(run: Run, train_store: TokenStore, test_store: TokenStore) -> str:
    """The spec and data with which a checkpoint or a finished record of this run must agree."""
    return f"{run.digest}-{train_store.sha256[:16]}-{test_store.sha256[:16]}"


def make_optimizer(model: Decoder, training: Training) -> Optimizer:
    """The recipe's optimizer over all parameters, in the groups of the model's parametrization."""
    return Optimizer(
        parameter_groups(model, training.weight_decay, training.optimizer == "muon"),
        training.optimizer != "adam",
        training.learning_rate,
        (training.beta1, training.beta2),
    )
