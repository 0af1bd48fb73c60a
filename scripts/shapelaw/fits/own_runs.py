"""A table of runs as people have it: columns by their usual names, seeds or none, sizes of either kind."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from shapelaw.errors import UserError
from shapelaw.fits.inputs import numbers_of, refuse
from shapelaw.fits.size_rule import size_rule

# a role, which is also the name that a column gets, and the names under which it is known; in our tables the first
ROLES: Mapping[str, tuple[str, ...]] = {
    "depth": (
        *("depth", "n_layer", "n_layers", "layers", "num_layers", "num_hidden_layers"),
        *("n_blocks", "num_blocks", "nlayers", "l"),
    ),
    "width": (
        *("width", "d_model", "n_embd", "hidden_size", "n_embed", "embed_dim", "model_dim", "hidden_dim"),
        *("dim", "dmodel", "d"),
    ),
    "loss": (
        *("test_loss", "val_loss", "final_loss", "loss", "validation_loss", "valid_loss", "eval_loss"),
        *("heldout_loss", "held_out_loss", "final_val_loss", "final_test_loss", "best_val_loss"),
    ),
    "seed": ("seed", "random_seed", "rng_seed"),
    "tokens": (
        *("tokens_trained", "tokens", "train_tokens", "training_tokens", "total_tokens", "n_tokens"),
        *("num_tokens", "tokens_seen", "n_train_tokens"),
    ),
    "block_params": (
        *("block_params", "non_embedding_params", "non_emb_params", "nonembedding_params"),
        *("params_non_embedding", "n_params_non_embedding", "params_non_emb"),
    ),
    "total_params": ("total_params", "params_total", "n_params_total", "all_params"),
    # of either kind
    "params": (
        *("params", "n_params", "num_params", "parameters", "n_parameters", "num_parameters"),
        *("model_params", "param_count", "params_active_precise", "model_size"),
    ),
    "step_flops": ("step_flops", "flops_per_step"),
}
NEEDED = ("depth", "width", "loss")
# what runs may differ in, by the names of our own tables, and the names under which it is known
SETTINGS: Mapping[str, tuple[str, ...]] = {
    "corpus": ("corpus", "dataset"),
    "vocab_size": ("vocab_size", "n_vocab"),
    "patch_embedding": ("patch_embedding",),
    "embedding_rank": ("embedding_rank",),
    "positional_rank": ("positional_rank",),
    "context_length": ("context_length", "seq_len", "seq_length", "n_ctx", "max_seq_len"),
    "block": ("block",),
    "heads": ("heads", "n_head", "n_heads", "num_heads", "num_attention_heads"),
    "attention_dim": ("attention_dim", "head_dim", "d_head", "head_size"),
    "kv_heads": ("kv_heads", "n_kv_heads", "num_key_value_heads", "n_query_groups"),
    "ff_width": ("ff_width", "d_ff", "ffn_dim", "intermediate_size", "ffn_hidden_size"),
    "gelu": ("gelu",),
    "tied": ("tied", "tie_word_embeddings", "tied_embeddings"),
    "attention_degree": ("attention_degree",),
    "parametrization": ("parametrization",),
    "base_width": ("base_width",),
    "schedule": ("schedule", "lr_schedule"),
    "batch_size": ("batch_size", "global_batch_size"),
    "budget": ("budget",),
    "steps": ("steps", "train_steps", "max_steps"),
    "learning_rate": ("learning_rate", "lr", "peak_lr", "max_lr"),
    "test_sequences": ("test_sequences",),
}
NUMBERED = ("heads", "attention_dim", "kv_heads", "ff_width", "batch_size", "steps", "learning_rate")
# where tools put what a user logged
PREFIXES = frozenset(
    ("config", "summary", "params", "metrics", "model", "args", "hparams", "hyperparameters", "final", "test")
)
EMBEDDED = 0.02  # of a size: a greater share in embeddings means that it counts them


@dataclass(frozen=True)
class OwnRuns:
    """Rows with `depth, width, seed, loss`, the sizes, tokens and settings that were found; `notes` says how."""

    table: pd.DataFrame
    notes: tuple[str, ...]


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
        candidates = [name for name in names if name not in given.values() and _plain(name) in known]
        first = [name for name in candidates if _plain(name) == known[0]]
        if len(candidates) > 1 and first:
            candidates = first[:1]
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


def own_runs(
    table: pd.DataFrame, source: str, given: Mapping[str, str] | None = None, *, some_incomplete: bool = False
) -> OwnRuns:
    """The runs of a table, by its columns' usual names, or those in `given`.

    Without a column of seeds the rows of one shape (at one number of tokens) are numbered. With `some_incomplete` rows
    without depth, width or loss are left out, since a tracker has other runs too.

    Raises:
        UserError: a column can't be told (see `find_columns`), a number is none, or it can't be told which
            parameters a column counts.
    """
    columns = find_columns(table, source, given or {})
    notes: list[str] = []
    shown = table.rename(columns={name: role for role, name in columns.items()})
    if some_incomplete:
        whole = shown[list(NEEDED)].notna().all(axis=1)
        if not whole.any():
            raise UserError(f"{source} has no run with depth, width and loss together.")
        if not whole.all():
            notes.append(f"{int((~whole).sum())} runs without depth, width or loss are left out")
        shown = shown[whole]
    roles = [role for role in columns if role != "seed"]
    runs = numbers_of(shown, roles, source)
    for role in roles:
        refuse(runs, runs[role] <= 0, source, f"{columns[role]} must be above zero")
    notes += [
        f"{role} is the column {name!r}"
        for role, name in columns.items()
        if name not in (role, ROLES[role][0])
    ]
    settings = settings_of(shown, given or {}, taken=[*columns, *columns.values()])
    runs = runs.join(settings)
    key = [name for name in ("depth", "width", "tokens", *settings) if name in runs]
    if "seed" in columns:
        runs["seed"] = numbers_of(shown, ["seed"], source)["seed"]
    else:
        runs["seed"] = runs.groupby(key, dropna=False).cumcount()
        if runs["seed"].any():
            notes.append("no column of seeds, so rows of one shape count as repeats with other seeds")
        _refuse_copies(runs, key, source)
    if "params" in runs:
        role, note = _which_params(runs, columns["params"], source)
        runs = runs.drop(columns="params") if role in runs else runs.rename(columns={"params": role})
        notes.append(note)
    return OwnRuns(runs, tuple(notes))


def settings_of(table: pd.DataFrame, given: Mapping[str, str], *, taken: Sequence[str]) -> pd.DataFrame:
    """What the runs may differ in, by the names of our own tables: heads, vocabulary, block, rates and others.

    Args:
        given: the columns of some, setting -> column.
        taken: columns that are something else.
    """
    found: dict[str, pd.Series] = {}
    for setting, known in SETTINGS.items():
        free = [name for name in map(str, table.columns) if name not in (*taken, *given.values())]
        names = [given[setting]] if setting in given else [name for name in free if _plain(name) in known]
        if names:
            column = table[names[0]]
            numbers = pd.to_numeric(column, errors="coerce")
            found[setting] = numbers if setting in NUMBERED and numbers.notna().any() else column
    return pd.DataFrame(found, index=table.index)


def _refuse_copies(runs: pd.DataFrame, key: list[str], source: str) -> None:
    copies = runs.duplicated([*key, "loss"], keep=False)
    refuse(runs, copies, source, "rows of one shape have the same loss; give each run one row")


def _which_params(runs: pd.DataFrame, name: str, source: str) -> tuple[str, str]:
    """The kind of size that a column of parameters counts, `block_params` or `total_params`, and why."""
    if "total_params" in runs:
        return "block_params", f"{name!r} counts the blocks, since all parameters have a column of their own"
    if "block_params" in runs:
        return (
            "total_params",
            f"{name!r} counts all parameters, since those of the blocks have their own column",
        )
    shapes = runs.drop_duplicates(["depth", "width"])
    depth, width, size = (shapes[column].to_numpy() for column in ("depth", "width", "params"))
    rule = size_rule(depth, width, size)
    if len(shapes) < 4 or not rule.exact:
        raise UserError(
            f"It can't be told whether the column {name!r} of {source} counts all parameters or those of the blocks; "
            f"say it with --column total_params={name} or --column block_params={name}."
        )
    share = float(np.max(rule.table_share(depth, width)))
    if share > EMBEDDED:
        why = f"up to {share:.0%} of them grow as {rule.table:,.0f} d, as embeddings do"
        return "total_params", f"{name!r} counts all parameters: {why}"
    return "block_params", f"{name!r} counts the blocks: it grows as {rule.blocks:.3g} L d²"


def _plain(name: str) -> str:
    """`config.model/nLayer ` -> `n_layer`: lower case, one sign between words, without the tool's prefixes."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    parts = [re.sub(r"[^a-z0-9]+", "_", part.lower()).strip("_") for part in re.split(r"[./:]", words)]
    parts = [part for part in parts if part]
    known = {alias for aliases in (*ROLES.values(), *SETTINGS.values()) for alias in aliases}
    while len(parts) > 1 and "_".join(parts) not in known and parts[0] in PREFIXES:
        parts = parts[1:]
    return "_".join(parts)
