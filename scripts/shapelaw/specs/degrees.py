"""A run of the study `block_degree`: a network whose layers are polynomials of chosen degrees, and its task.

Navon 2021, "Attention is optimal building block", sections 2 and 3: at a fixed budget of parameters, which degree of a
layer is best?
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from shapelaw.errors import UserError
from shapelaw.specs.runs import Keyed

# raise it when a change of the code changes what a spec trains to
DEGREE_VERSION = 1
CONVERGED_VERSION = 2  # of runs until_converged
Target = Literal["separable", "signs", "digits"]
Activation = Literal["none", "relu", "gelu"]
Normalization = Literal["example", "batch"]
THRESHOLDS: dict[Target, tuple[float, ...]] = {  # held-out losses, for the steps to them
    "separable": (0.5, 0.2, 0.1),
    "signs": (0.5, 0.3, 0.1),
    "digits": (1.0, 0.5, 0.2),
}
MIXER_MATRICES = 3  # of a Mixer's layer: its two maps over tokens have as many numbers as two
HALF = 0.5  # the share of the last factor that a mixture begins with by default
# share by which the last half of the steps lowers the loss of a network that has not converged
CONVERGED = 0.05
LEAST = 1 / 4  # of the most steps, before which nothing has converged: some losses begin on a plateau
FALL = 0.25  # of the steps before, in which the rate then falls
BLOCK = ("activation", "residual", "normalization", "heads")  # options of a layer
DIGITS = (64, 10)  # inputs and outputs of the target "digits": 8 x 8 pixels, ten classes


@dataclass(frozen=True)
class ProductShape:
    """Layers `h + norm(product over k of (W_k norm(h) + b_k)) / sqrt(depth)` between a linear embedding and read-out.

    With the other options a layer is the note's `activation(norm(sum over heads of products))`, with or without h.

    Attributes:
        degrees: number of linear maps that each layer multiplies, first layer to last (comment 3.1).
        width: d, the same in every layer.
        inputs: number of inputs.
        outputs: number of outputs.
        mixture: each layer multiplies its last factor in by a learned share m in (0, 1), as
            `1 - m + m (W_k norm(h) + b_k)`: a layer of degree 3 is then one of degree 2 + m (task 3).
        initial_share: m before training.
        activation: after each layer's normalized product (equation 6).
        residual: whether h is added to each layer.
        normalization: `example` scales each vector to mean square 1; `batch` gives each of its entries mean 0 and
            variance 1 over the examples at hand, held-out ones by their own.
        heads: products that a layer adds up, each of its own maps. (Products that are concatenated are one product of
            concatenated maps.)
        mixer_tokens: N of an MLP-Mixer of degree 2 (task 4); 0 for layers of products. The inputs are cut into N
            tokens that are embedded alike, a layer has `W (V_1 norm(X) + b)^2 V_2` in place of the product, with
            width^2 / N units between V_1 and V_2, and the mean of the tokens is read out.
    """

    degrees: tuple[int, ...]
    width: int
    inputs: int
    outputs: int
    mixture: bool = False
    initial_share: float = HALF
    activation: Activation = "none"
    residual: bool = True
    normalization: Normalization = "example"
    heads: int = 1
    mixer_tokens: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "degrees", tuple(self.degrees))  # of JSON a list
        N = self.mixer_tokens
        if N and (self.inputs % N or self.width**2 % N):
            raise UserError(
                f"a Mixer of {N} tokens can't cut {self.inputs} inputs and {self.width}^2 numbers of a matrix evenly; "
                "give a number that divides both"
            )

    @property
    def mixer_units(self) -> int:
        """Hidden units of a Mixer's MLP over tokens: it has as many numbers as two square matrices."""
        return self.width**2 // self.mixer_tokens

    @property
    def block(self) -> str:
        """What sets its layers apart from `h + norm(product)`, in words; empty where nothing does."""
        return block_words(self.activation, self.residual, self.normalization, self.heads)

    @property
    def depth(self) -> int:
        """Number of layers."""
        return len(self.degrees)

    @property
    def matrices(self) -> int:
        """Square matrices in all layers: the budget in the note's unit, B / N_d (eq. 4)."""
        return MIXER_MATRICES * self.depth if self.mixer_tokens else self.heads * sum(self.degrees)

    @property
    def layer_params(self) -> int:
        """Parameters of the layers: a matrix and a bias for each map, and a share for each layer of a mixture."""
        if self.mixer_tokens:
            return self.matrices * self.width**2 + self.depth * self.mixer_units
        return self.matrices * self.width * (self.width + 1) + (self.depth if self.mixture else 0)

    @property
    def total_params(self) -> int:
        """All parameters, with the embedding, the read-out and their biases."""
        inputs = self.inputs // max(self.mixer_tokens, 1)
        return (inputs + 1) * self.width + self.layer_params + (self.width + 1) * self.outputs

    @property
    def multiplications(self) -> int:
        """Multiplications by parameters for one example: a Mixer's are used for each token or channel."""
        N, d = self.mixer_tokens, self.width
        if not N:
            return self.total_params
        layer = 2 * d * N * self.mixer_units + N * d**2
        return self.inputs * d + self.depth * layer + d * self.outputs


@dataclass(frozen=True)
class DegreeRun(Keyed):
    """One network and its task, trained by Adam with a linear warm-up and a cosine to zero.

    Attributes:
        target: "separable", a sum of products g(A) g'(B) of the two halves of the inputs, fresh inputs every step,
            mean squared error; "signs", whether such a sum is positive, cross-entropy; or "digits", scikit-learn's
            images of digits, cross-entropy.
        target_rank: R, products in the sum; 0 for digits.
        steps: optimizer steps, at most.
        warmup: share of the steps.
        evaluate_every: steps between two test losses.
        until_converged: the rate stays at its peak until the last half of the steps has lowered the least held-out loss
            by less than `CONVERGED`, and then falls to zero over a quarter of the steps so far; a cosine otherwise.
    """

    network: ProductShape
    target: Target
    target_rank: int
    steps: int
    seed: int
    batch_size: int = 256
    learning_rate: float = 3e-3
    warmup: float = 0.05
    evaluate_every: int = 250
    until_converged: bool = False
    KIND = "degree"
    VERSION = DEGREE_VERSION
    PARTS: ClassVar = {"network": ProductShape}
    LATER = ("until_converged", "initial_share", *BLOCK, "mixer_tokens")

    @property
    def label(self) -> str:
        """What a person looks for, degrees as `k3x4` (equal ones) or `k2.3.2`; two runs can share it."""
        n = self.network
        equal = len(set(n.degrees)) == 1
        layers = f"k{n.degrees[0]}x{n.depth}" if equal else "k" + ".".join(map(str, n.degrees))
        sizes = [f"i{n.inputs}", f"R{self.target_rank}"] if self.target_rank else []
        parts = [self.target, *sizes, layers]
        if n.mixture:
            parts.append("mix" if n.initial_share == HALF else f"mix{n.initial_share:g}")
        parts += [] if n.activation == "none" else [n.activation]
        parts += [
            word for word, said in (("plain", not n.residual), ("bn", n.normalization == "batch")) if said
        ]
        parts += [f"H{n.heads}"] if n.heads > 1 else []
        parts += [f"mixer{n.mixer_tokens}"] if n.mixer_tokens else []
        most = f"{'c' if self.until_converged else 't'}{self.steps}"
        return "-".join([*parts, f"d{n.width}", f"lr{self.learning_rate:g}", most, f"s{self.seed}"])

    @property
    def total_params(self) -> int:
        """All trained numbers."""
        return self.network.total_params

    @property
    def step_flops(self) -> int:
        """Operations of the matrix products of one training step: six a multiplication and example."""
        return 6 * self.batch_size * self.network.multiplications

    @property
    def memory_numbers(self) -> int:
        """Numbers in memory: a few copies of the parameters, and a batch's activations for the backward pass."""
        n = self.network
        vectors = n.matrices + n.depth
        if n.mixer_tokens:
            vectors = n.depth * (2 * n.mixer_units + 4 * n.mixer_tokens)
        return 8 * self.total_params + 4 * self.batch_size * n.width * vectors

    @property
    def history_rows(self) -> int:
        """Rows of its history, at most."""
        return self.steps // self.evaluate_every + 1

    @property
    def group(self) -> tuple[object, ...]:
        """A value that is equal for runs that can be trained as one pack."""
        return self.network, self.target, self.batch_size

    @property
    def family(self) -> tuple[object, ...]:
        """The same as `group`: product networks are not filled up to a common shape."""
        return self.group

    @property
    def examples_key(self) -> tuple[int, int]:
        """A value that is equal for runs of a group that see the same examples at the same step."""
        return self.seed, self.target_rank

    def to_dict(self) -> dict[str, Any]:
        """The run as plain JSON values."""
        version = {"training_version": CONVERGED_VERSION} if self.until_converged else {}
        return super().to_dict() | version

    def flat(self) -> dict[str, Any]:
        """The run without sections, with the sizes that follow from it."""
        n, spec = self.network, self.to_dict() | {"total_params": self.total_params}
        del spec["network"]
        degrees = ".".join(map(str, n.degrees))
        later = {"until_converged": self.until_converged}
        return spec | asdict(n) | later | {"degrees": degrees, "layer_params": n.layer_params}


def block_words(activation: Activation, residual: bool, normalization: Normalization, heads: int) -> str:
    """What sets a layer of these options apart from `h + norm(product)`; empty where nothing does."""
    parts = [
        {"none": "", "relu": "ReLU", "gelu": "GELU"}[activation],
        "" if residual else "no residual",
        "batch norm" if normalization == "batch" else "",
        f"{heads} heads" if heads > 1 else "",
    ]
    return ", ".join(filter(None, parts))


def layers_of_budget(degree: int, matrices: int, heads: int = 1) -> tuple[int, ...]:
    """The degrees of a network of `matrices // (degree * heads)` equal layers (eq. 4).

    Raises:
        UserError: the degree does not divide the budget.
    """
    if degree < 1 or matrices % (degree * heads):
        of_heads = f" with {heads} heads" if heads > 1 else ""
        raise UserError(
            f"{matrices} matrices can't be layers of degree {degree} each{of_heads}; 12 can, for degrees 1, 2, 3, 4 "
            "and 6 with one head."
        )
    return (degree,) * (matrices // (degree * heads))
