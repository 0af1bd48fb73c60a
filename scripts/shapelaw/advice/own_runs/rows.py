"""A table of runs as people have it: the rows that can be used, and the sizes that can be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pandas as pd

from shapelaw.advice.own_runs.budgets import budget_labels, size_rule
from shapelaw.advice.own_runs.columns import (
    HELPERS,
    ROLES,
    SETTINGS,
    find_columns,
    is_length,
    names_in,
    plain_name,
    setting_named,
    settings_of,
)
from shapelaw.advice.own_runs.exports import LAST
from shapelaw.errors import UserError
from shapelaw.fits import inputs
from shapelaw.fits.projection import standard_params
from shapelaw.specs.axes import axes_of
from shapelaw.specs.runs import Training
from shapelaw.specs.sizes import number_of
from shapelaw.studies.study_runs import (
    NOT_FINITE,
    empty,
    infinite,
    left_out,
    refuse_none,
    without,
    without_told_diverged,
    without_unfinished,
)

BUDGET = "budget of tokens"
# what no seed explains and no kind of network: at one shape it takes one value
RECIPE = (
    *(name for name, axis in axes_of(Training).items() if axis.column and (axis.follows or not axis.splits)),
    *("min_lr", "epochs"),
)
SIZED = 3.0  # blocks have 8 to 15 L d² parameters: within this factor of 12
LARGEST = {"depth": 10_000, "width": 1_000_000, "loss": 1_000}
FEWEST_TOKENS = 1_000
SHOWN = 8  # values in a sentence
FEW_VALUES = 12  # a column with more is no setting
FOLLOWED = ("tokens", "block_params", "total_params", "params", "steps")
SAME_STEPS = 0.02  # last steps closer than this in log are one
# words in the names of columns of trackers and measurements, which differ between runs anyway
OUTCOMES = names_in(
    "acc accuracy loss ppl perplexity bits bpb bpc time runtime timestamp seconds hours speed second "
    "flops memory gb bytes norm score user notes tags group sweep created updated date host hostname "
    "node gpu device torch commit path url file entity project key digest comment duration job best idx "
    "index unnamed name id state status"
)
# and words in the names of what a trainer is told, which no number of values makes a measurement
TOLD = names_in("lr batch warmup warm decay dropout momentum epsilon eps")
LEAST_STEPS = 4  # rows of a shape that can show that they are steps
HISTORY = -0.8  # a rank correlation of losses with the order of rows, below which these are steps of a run
EMBEDDED = 0.02  # of a size: a greater share in embeddings means that it counts them


@dataclass(frozen=True)
class OwnRuns:
    """Rows with `depth, width, seed, loss`, the sizes, tokens and settings that were found; `notes` says how.

    Attributes:
        recipe: columns of which a shape's runs take one value, unless one is chosen: rates and the like, and what else
            differs within shapes where no column says seed.
    """

    table: pd.DataFrame
    notes: tuple[str, ...]
    recipe: tuple[str, ...] = RECIPE


def own_runs(
    table: pd.DataFrame,
    source: str,
    given: Mapping[str, str] | None = None,
    *,
    only: Mapping[str, str] | None = None,
    keep: bool = False,
) -> OwnRuns:
    """The runs of a table, by its columns' usual names, or those in `given`.

    Runs that did not finish, have no finite loss or lack depth or width are left out by name. Of several steps of a
    run the last one counts. Without a column of seeds the rows of one shape (at one number of tokens) are numbered.

    Args:
        only: column or setting -> the value of the runs that count.
        keep: runs that ended early count too.

    Raises:
        UserError: a column can't be told (see `find_columns`); rows have numbers that can't be, all of them named at
            once; runs ended at different steps; or it can't be told which parameters a column counts.
    """
    columns = find_columns(table, source, given or {})
    notes = [
        f"{role} is the column {name!r}"
        for role, name in columns.items()
        if name not in (role, ROLES[role][0]) and role not in HELPERS
    ]
    for name, value in (only or {}).items():
        table = _only(table, {**(given or {}), **columns}, name, value, source)
    hidden = [role for role, name in columns.items() if role in table and name != role]
    shown = table.drop(columns=hidden).rename(columns={name: role for role, name in columns.items()})
    settings = settings_of(shown, given or {}, taken=[*columns, *columns.values()])
    shown = shown.drop(columns=[name for name in settings if name in shown]).join(settings)
    shown, left = _usable(shown, source, keep, [*settings], columns.get("state", ""))
    runs = _plausible(shown, columns, source).join(shown[[*settings]])
    shape = ["depth", "width", *settings]
    if "tokens" in runs:
        shape.append(BUDGET)
        runs[BUDGET] = budget_labels(runs["tokens"])
    others = _unexplained(shown, [*columns, *settings], runs, shape)
    runs, shape = runs.join(shown[others]), [*shape, *others]
    if "seed" not in runs:
        runs, note = _numbered(runs, shape, source)
        notes += note
    if not keep:
        _refuse_lengths(shown, runs, [*columns, "seed"], source)
    runs, early = _whole(runs, source, keep)
    if "params" in runs:
        role, note_of_size = _which_params(runs, columns["params"], source)
        runs = runs.drop(columns="params") if role in runs else runs.rename(columns={"params": role})
        notes.append(note_of_size)
    kept = runs.drop(columns=["step", BUDGET], errors="ignore")
    return OwnRuns(kept, (*notes, *left, *early), (*RECIPE, *others))


def _numbered(runs: pd.DataFrame, shape: Sequence[str], source: str) -> tuple[pd.DataFrame, list[str]]:
    """The runs with seeds that number those of one shape, and a sentence that says so.

    Raises:
        UserError: rows are copies of each other, or fall one after the other as those of one training do.
    """
    groups = runs.groupby(list(shape), dropna=False)
    numbered = runs.assign(seed=groups.cumcount())
    if not numbered["seed"].any():
        return numbered, []
    copies = runs.duplicated([*shape, "loss"], keep=False)
    inputs.refuse(runs, copies, source, "rows of one shape have the same loss; give each run one row")
    places = pd.DataFrame(
        {"row": numbered["seed"], "loss": groups["loss"].rank(), "of": groups["loss"].transform("size")}
    )
    several = places[places["of"] >= LEAST_STEPS]
    if len(several) and several["row"].corr(several["loss"], method="spearman") < HISTORY:
        raise UserError(
            f"{source}: the losses of one shape fall from row to row, as those of the steps of one run do, and no "
            "column says step or seed; name it (--column step=COLUMN, --column seed=COLUMN), or keep the last rows."
        )
    return numbered, ["no column of seeds, so rows of one shape count as repeats with other seeds"]


def _only(
    table: pd.DataFrame, columns: Mapping[str, str], name: str, value: str, source: str
) -> pd.DataFrame:
    """The rows that have one value in a column, which may be named by its role or setting, of `columns`.

    Raises:
        UserError: there is no such column, or no row has the value.
    """
    known = SETTINGS.get(setting_named(name), ())
    same = [one for one in map(str, table.columns) if one == name or plain_name(one) in known]
    column = columns.get(name) or next(iter(same), None)
    if column is None:
        there = ", ".join(map(str, table.columns))
        raise UserError(f"--only {name}={value}: {source} has no column {name}; it has {there}.")
    texts = table[column].map(str)
    alike = texts.str.lower() == value.lower()
    with suppress(ValueError):  # of a word, which is compared as one
        alike |= np.isclose(inputs.read_numbers(table[column]), number_of(value), rtol=1e-9, atol=0.0)
    if not alike.any():
        there = ", ".join(texts.unique()[:SHOWN])
        raise UserError(f"--only {name}={value}: no row of {source} has it; its values are {there}.")
    return table[alike]


def _usable(
    table: pd.DataFrame, source: str, keep: bool, settings: Sequence[str], state: str
) -> tuple[pd.DataFrame, list[str]]:
    """The rows of finished runs with depth, width and a finite loss, and sentences that name the others.

    Args:
        keep: runs that did not finish count too; those that diverged never do.
        settings: columns that the runs may differ in; of several steps of a run the last one counts.
        state: the name of the column of states, if there is one.

    Raises:
        UserError: there is none, or it can't be told which finished.
    """
    notes: list[str] = []
    table = without_unfinished(without_told_diverged(table, notes), "state", keep, notes, source, state)
    table = without(table, empty(table["depth"]) | empty(table["width"]), "without depth or width", notes)
    table = without(table, empty(table["loss"]), "without a loss", notes)
    table, note = _last_steps(table, settings)
    notes += note
    table = without(table, infinite(table["loss"]), NOT_FINITE, notes)
    refuse_none(table, source, notes)
    return table, notes


def _last_steps(table: pd.DataFrame, settings: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """Of rows at several steps of one run the last one, and a sentence that says so."""
    if "step" not in table:
        return table, []
    by = [name for name in ("depth", "width", "seed", "tokens", "run", *settings) if name in table]
    steps = inputs.read_numbers(table["step"])
    last = steps.groupby([table[name] for name in by], dropna=False).transform("max")
    kept = table[(steps == last) | steps.isna()]
    if len(kept) == len(table):
        return table, []
    return kept, [f"of several steps of a run the last one counts: {len(kept)} of {len(table)} rows"]


def _plausible(table: pd.DataFrame, columns: Mapping[str, str], source: str) -> pd.DataFrame:
    """The numbers of the roles, by their roles.

    Raises:
        UserError: some can't be; the message names all of their rows.
    """
    measured = [role for role in columns if role in table and role not in HELPERS]
    runs = inputs.as_numbers(table, measured)
    wrong: dict[str, pd.Series[bool]] = {}
    for role in measured:
        whole = [inputs.WHOLE] if role in ("depth", "width", "seed") else []
        positive = [inputs.POSITIVE] if role != "seed" else []
        wrong |= inputs.broken_rules(
            runs[role], columns[role], [inputs.FINITE, *whole, *positive], table[role]
        )
        if role in LARGEST:
            above = np.isfinite(runs[role]) & (runs[role] > LARGEST[role])
            rule = f"{columns[role]} can't be above {LARGEST[role]:,}, so it is no {role}"
            wrong[rule + inputs.example(table[role], above)] = above
    inputs.refuse_all(runs, source, wrong)
    if (runs["depth"] > runs["width"]).all():
        raise UserError(
            f"{source}: every network is deeper than wide; are {columns['depth']} and {columns['width']} exchanged?"
        )
    _check_sizes(runs, columns, source)
    for name in ("step", f"{columns['loss']}{LAST}"):
        if name in table:
            runs["step"] = inputs.read_numbers(table[name])
    return runs


def _check_sizes(runs: pd.DataFrame, columns: Mapping[str, str], source: str) -> None:
    """Refuse sizes and tokens that can't be: blocks have about 12 L d² parameters, and all parameters are more."""
    blocks = standard_params(runs["depth"], runs["width"])
    wrong = {}
    for role in ("block_params", "total_params", "params", "step_flops"):
        if role in runs:
            blocks_alone = role == "block_params"
            off = ~(runs[role] / blocks).between(1 / SIZED, SIZED if blocks_alone else math.inf)
            bound = "within a factor of 3 of" if blocks_alone else "at least a third of"
            rule = f"{columns[role]} must be {bound} 12 L d² by the depth and the width"
            wrong[rule + inputs.example(runs[role], off)] = off
    if "tokens" in runs:
        rule = f"{columns['tokens']} must be tokens, not millions or billions of them"
        wrong[rule] = runs["tokens"] < FEWEST_TOKENS
    inputs.refuse_all(runs, source, wrong)


def _unexplained(
    table: pd.DataFrame, known: Sequence[str], runs: pd.DataFrame, shape: Sequence[str]
) -> list[str]:
    """Other columns that differ within a shape that has no seed for each: recipes, or few values of several shapes."""
    by = [name for name in (*shape, "seed") if name in runs]
    if not runs.duplicated(by).any():
        return []
    groups = runs.groupby(by, dropna=False).ngroup()
    found = []
    for name in table.columns:
        plain = plain_name(str(name))
        words = set(plain.split("_"))
        if (
            name in known
            or plain in ROLES["step"]
            or (words.intersection(OUTCOMES) and not words.intersection(TOLD))
        ):
            continue
        values = table[name].astype(str)
        shapes = groups.groupby(values).nunique()
        few = 1 < len(shapes) <= FEW_VALUES and shapes.min() > 1
        if (few or words.intersection(TOLD)) and values.groupby(groups).nunique().max() > 1:
            found.append(name)
    return found


def _follows(lengths: pd.Series[float], runs: pd.DataFrame) -> bool:
    """Whether lengths of training are the same for all runs, or go as their tokens, their size or their steps."""
    blocks = pd.Series(standard_params(runs["depth"], runs["width"]), index=runs.index)
    every = [pd.Series(1.0, index=runs.index), blocks]
    every += [runs[name] for name in FOLLOWED if name in runs]
    return any(np.ptp(np.log(lengths / one)) <= SAME_STEPS for one in every if one.gt(0).all())


def _refuse_lengths(table: pd.DataFrame, runs: pd.DataFrame, known: Sequence[str], source: str) -> None:
    """Refuse runs that a column says to have trained for lengths of their own, where no tokens tell what is equal.

    Raises:
        UserError: there is such a column; the sentence has its values and what to do.
    """
    if "tokens" in runs:
        return
    for name in (str(name) for name in table if name not in known and is_length(plain_name(str(name)))):
        lengths = inputs.read_numbers(table[name].loc[runs.index])
        of_shape = lengths.groupby([runs["depth"], runs["width"]]).nunique().max() == 1
        others = runs.drop(columns=name, errors="ignore")
        if of_shape and lengths.gt(0).all() and not _follows(lengths, others):
            there = ", ".join(f"{length:,.6g}" for length in np.sort(lengths.unique())[:SHOWN])
            raise UserError(
                f"{source}: the column {name!r} differs between shapes ({there}), and losses after trainings of "
                f"different lengths can't be compared. Name the tokens (--column tokens=COLUMN), keep the runs of "
                f"one length (--only {name}={lengths.iloc[0]:.12g}), or, where it says nothing of the kind, add --keep."
            )


def _whole(runs: pd.DataFrame, source: str, keep: bool) -> tuple[pd.DataFrame, list[str]]:
    """The runs that end at a common last step, and a sentence that names the others.

    Steps may follow the tokens, the size or the steps that a run was to have.

    Raises:
        UserError: they end at different steps, and none is that of most.
    """
    if "step" not in runs or keep or runs["step"].isna().any() or (runs["step"] <= 0).any():
        return runs, []
    if _follows(runs["step"], runs):
        return runs, []
    steps = np.log(runs["step"])
    if "steps" in runs and runs["steps"].gt(0).all():
        early = steps < np.log(runs["steps"]) - SAME_STEPS
    else:
        labels = budget_labels(runs["step"])
        counts = labels.value_counts()
        if 2 * counts.iloc[0] <= len(runs):
            there = ", ".join(f"{step:,.6g}" for step in np.sort(runs["step"].unique())[:SHOWN])
            raise UserError(
                f"{source}: the runs end at different steps ({there}), and losses after different numbers of steps "
                "can't be compared; name the tokens with --column tokens=COLUMN, or add --keep."
            )
        early = labels != counts.index[0]
    if not early.any():
        return runs, []
    common = runs["step"][~early].median()
    return runs[~early], [left_out(runs.index[early], f"with another last step than {common:,.6g}")]


def _which_params(runs: pd.DataFrame, name: str, source: str) -> tuple[str, str]:
    """The kind of size that a column of parameters counts, `block_params` or `total_params`, and why."""
    if "total_params" in runs:
        return "block_params", f"{name!r} counts the blocks, since all parameters have a column of their own"
    if "block_params" in runs:
        why = f"{name!r} counts all parameters, since those of the blocks have their own column"
        return "total_params", why
    shapes = runs.drop_duplicates(["depth", "width"])
    depth, width, size = (shapes[column].to_numpy() for column in ("depth", "width", "params"))
    rule = size_rule(depth, width, size)
    if len(shapes) < 4 or rule.error > EMBEDDED:
        raise UserError(
            f"It can't be told whether the column {name!r} of {source} counts all parameters or those of the blocks; "
            f"say it with --column total_params={name} or --column block_params={name}."
        )
    share = float(np.max(rule.table_share(depth, width)))
    if share > EMBEDDED:
        why = f"up to {share:.0%} of them grow as {rule.table:,.0f} d, as embeddings do"
        return "total_params", f"{name!r} counts all parameters: {why}"
    return "block_params", f"{name!r} counts the blocks: it grows as {rule.blocks:.3g} L d²"
