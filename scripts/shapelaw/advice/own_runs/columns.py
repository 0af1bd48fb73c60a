"""Which column of a table of runs is which: depth, width, loss and the rest by their usual names."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import pandas as pd

from shapelaw.errors import UserError
from shapelaw.specs.runs import AXES


def names_in(text: str) -> tuple[str, ...]:
    """The names in a text, separated by spaces."""
    return tuple(text.split())


# a role, which is also the name that a column gets, and the names under which it is known; in our tables the first
ROLES: Mapping[str, tuple[str, ...]] = {
    **{name: AXES[name].names for name in ("depth", "width", "seed")},
    "loss": names_in(
        "test_loss val_loss final_loss loss validation_loss valid_loss eval_loss heldout_loss "
        "held_out_loss final_val_loss final_test_loss best_val_loss"
    ),
    "tokens": names_in(
        "tokens_trained tokens train_tokens training_tokens total_tokens n_tokens num_tokens tokens_seen "
        "n_train_tokens"
    ),
    "block_params": names_in(
        "block_params non_embedding_params non_emb_params nonembedding_params params_non_embedding "
        "n_params_non_embedding params_non_emb"
    ),
    "total_params": names_in("total_params params_total n_params_total all_params"),
    # of either kind
    "params": names_in(
        "params n_params num_params parameters n_parameters num_parameters model_params param_count "
        "params_active_precise model_size"
    ),
    "step_flops": names_in("step_flops flops_per_step"),
    # where a row, or a run, ends
    "step": names_in(
        "step last_step global_step trainer_global_step train_global_step eval_step train_step iteration "
        "iter num_updates updates epoch"
    ),
    "state": names_in("state run_state status finished completed"),
    "run": names_in("run_id id run run_name name"),
}
# what runs may differ in, by the names of our own tables, and the names under which it is known
SETTINGS: Mapping[str, tuple[str, ...]] = {
    **{axis.name: axis.names for axis in AXES.values() if axis.name not in ("depth", "width", "seed")},
    "min_lr": names_in("min_lr final_lr"),
    "epochs": names_in("epochs num_epochs n_epochs max_epochs"),
}
KNOWN = frozenset(name for names in (*ROLES.values(), *SETTINGS.values()) for name in names)
HELPERS = ("step", "state", "run")  # of several the first is taken
NEEDED = ("depth", "width", "loss")
# settings that are words even where they look like numbers
TEXTS = tuple(axis.name for axis in AXES.values() if axis.kind is str)
# words in the names of columns that say on how many tokens a run trained; those that may say how long it did, and
# others beside which these mean something else
OF_TOKENS = frozenset(
    names_in("tokens n num number count train training trained total seen processed consumed max target")
)
OF_LENGTH = frozenset(
    names_in(
        "step steps iteration iterations iter iters update updates epoch epochs tokens samples sequences budget"
    )
)
NO_LENGTH = frozenset(
    names_in(
        "warmup warm decay cooldown accumulation accumulate log logging eval evaluate evaluation save saving test val "
        "validation per batch micro every interval frequency freq context window vocab vocabulary seed time second "
        "seconds best rank"
    )
)
# where tools put what a user logged
PREFIXES = names_in("config summary params metrics model args hparams hyperparameters final test")
# units of a loss, and how many of each are a nat; words in the name of a column that say bits
NATS, BITS = "nats", "bits"
PER_NAT = {NATS: 1.0, BITS: 1.0 / math.log(2.0)}
OF_BITS = frozenset(names_in("bit bits bpb bpc bpw bpt"))


def find_columns(table: pd.DataFrame, source: str, given: Mapping[str, str]) -> dict[str, str]:
    """The column of each role that the table has; `given` names some, role -> column.

    Raises:
        UserError: a given role or column doesn't exist; depth, width or loss is not there, or several columns could
            be one role.
    """
    names = [str(name) for name in table.columns]
    if unknown := sorted(set(given) - set(ROLES) - set(SETTINGS)):
        raise UserError(f"--column {unknown[0]}=... names no role; the roles are {', '.join(ROLES)}.")
    for role, name in given.items():
        if name not in names:
            raise UserError(
                f"{source} has no column {name!r} for the {role}; it has the columns {', '.join(names)}."
            )
    found = {role: name for role, name in given.items() if role in ROLES}
    missing, unclear = [], []
    for role, known in ROLES.items():
        if role in found:
            continue
        free = [name for name in names if name not in given.values()]
        candidates = [name for name in free if plain_name(name) in known]
        if role == "tokens" and not candidates:
            candidates = [name for name in free if is_tokens(plain_name(name))]
        by_name = sorted(candidates, key=lambda name: [*known, plain_name(name)].index(plain_name(name)))
        ours = [name for name in by_name if role in HELPERS or plain_name(name) == known[0]]
        candidates = ours[:1] or candidates
        if len(candidates) > 1 and not table[candidates].nunique(axis=1, dropna=False).gt(1).any():
            candidates = candidates[:1]  # the same values twice
        if len(candidates) > 1:
            unclear.append((role, candidates))
        elif candidates:
            found[role] = candidates[0]
        elif role in NEEDED:
            missing.append(role)
    if missing:
        usual = "; ".join(f"{role} is usually {', '.join(ROLES[role][:4])}" for role in missing)
        raise UserError(
            f"{source} lacks {', '.join(missing)} ({usual}); it has the columns {', '.join(names)}. "
            f"Name {'it' if len(missing) == 1 else 'each'} with --column {missing[0]}=COLUMN."
        )
    if unclear:
        role, candidates = unclear[0]
        raise UserError(
            f"{source} has several columns that could be the {role}: {', '.join(candidates)}; "
            f"choose one with --column {role}={candidates[0]}."
        )
    return found


def is_tokens(name: str) -> bool:
    """Whether a plain name says on how many tokens a run trained, in whatever words: `num_train_tokens`."""
    words = set(name.split("_"))
    return "tokens" in words and words <= OF_TOKENS


def is_length(name: str) -> bool:
    """Whether a plain name may say how long a run trained: `max_updates`, `n_epochs`, `token_budget`."""
    words = set(name.split("_"))
    return bool(words & OF_LENGTH) and not words & NO_LENGTH


def setting_named(name: str) -> str:
    """The setting that a column's name means; another name as it is."""
    known = (setting for setting, names in SETTINGS.items() if name == setting or plain_name(name) in names)
    return next(known, name)


def settings_of(table: pd.DataFrame, given: Mapping[str, str], *, taken: Sequence[str]) -> pd.DataFrame:
    """What the runs may differ in, by the names of our own tables: heads, vocabulary, block, rates and others.

    Args:
        given: the columns of some, setting -> column.
        taken: columns that are something else.
    """
    found: dict[str, pd.Series] = {}
    for setting, known in SETTINGS.items():
        free = [name for name in map(str, table.columns) if name not in (*taken, *given.values())]
        names = [given[setting]] if setting in given else [name for name in free if plain_name(name) in known]
        if names:
            column = table[names[0]]
            numbers = pd.to_numeric(column, errors="coerce")
            found[setting] = column if setting in TEXTS or numbers.isna().all() else numbers
    return pd.DataFrame(found, index=table.index)


def unit_of_loss(name: str) -> str:
    """The unit of a column of losses: bits where its name has a word for them, such as `val_bpb`, else nats."""
    return NATS if OF_BITS.isdisjoint(plain_name(name).split("_")) else BITS


def plain_name(name: str) -> str:
    """`config.model/nLayer ` -> `n_layer`: lower case, one sign between words, without the tool's prefixes."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    parts = [re.sub(r"[^a-z0-9]+", "_", part.lower()).strip("_") for part in re.split(r"[./:]", words)]
    parts = [part for part in parts if part]
    while len(parts) > 1 and "_".join(parts) not in KNOWN and parts[0] in PREFIXES:
        parts = parts[1:]
    return "_".join(parts)
