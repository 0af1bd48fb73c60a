"""Columns of the recipe in tables of runs, the same for all and then not."""

import pandas as pd

ONE_RECIPE = {
    "corpus": "wiki",
    "vocab_size": 500,
    "context_length": 128,
    "steps": 4000,
    "learning_rate": 0.002,
    "test_sequences": 600,
    "batch_size": 16,
    # empty stands for the usual one
    **dict.fromkeys(
        ("schedule", "gelu", "block", "tied", "base_width", "attention_degree", "parametrization")
    ),
}


def with_recipe(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with one value of each column of a recipe that they lack."""
    return runs.assign(**{name: value for name, value in ONE_RECIPE.items() if name not in runs})


def with_another(runs: pd.DataFrame, name: str, same: "pd.Series[bool]") -> pd.DataFrame:
    """The runs with another value of a column, but for those of `same`."""
    other = runs[name].max() + 1 if pd.api.types.is_numeric_dtype(runs[name]) else "other"
    return runs.assign(**{name: runs[name].where(same, other)})
