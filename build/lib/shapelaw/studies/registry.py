"""The list of studies, over which every other place loops. A new study is a folder here and a line in ROOMS."""

from importlib import import_module

from shapelaw.studies.study import Study

ROOMS = (
    "decoders",
    "memorization",
    "block_degree",
    "separation_rank",
    "assumptions",
)
STUDIES: dict[str, Study] = {
    study.name: study for room in ROOMS for study in import_module(f"shapelaw.studies.{room}.study").STUDIES
}
