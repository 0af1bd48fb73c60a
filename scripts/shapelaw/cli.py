"""One command to remember: `shapelaw shape 1.3B`, `shapelaw fit runs.csv`, `shapelaw run`, and the rest of `COMMANDS`.

Each is a script of the project, and takes the script's options; the first argument may be what it is about. Nothing
heavy is imported before the script is known.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shapelaw.errors import UserError, exit_code

PACKAGE = Path(__file__).resolve().parent
SCRIPTS = PACKAGE.parent if (PACKAGE.parent / "shape.py").is_file() else PACKAGE / "commands"
SNAKEMAKE = "snakemake"


@dataclass(frozen=True)
class Command:
    """A command of the user.

    Attributes:
        script: the script, without its ending; or `snakemake`.
        about: one line for `shapelaw --help`.
        first: the option that a first argument without a dash is for.
        extra: arguments that go before the user's.
        out: with a first argument and no `--out`: the results go to a folder of the file's name and this ending.
    """

    script: str
    about: str
    first: str = ""
    extra: tuple[str, ...] = ()
    out: str = ""


COMMANDS = {
    "shape": Command(
        "shape", "what each shape of a size costs, and the best: shapelaw shape 1.3B --vocab 32k"
    ),
    "advisor": Command(
        "advisor_page",
        "the same for every size, as a page with sliders: shapelaw advisor --out advisor.html",
    ),
    "speed": Command(
        "speed", "how long a step of each shape of a size takes here: shapelaw speed 1.3B", "--size"
    ),
    "fit": Command(
        "fit_surface",
        "best depth and the cost of each shape, of your runs: shapelaw fit runs.csv",
        "--runs",
        out="_fit",
    ),
    "transitions": Command(
        "fit_transitions", "where one depth overtakes another, of grids of runs", "--runs", out="_transitions"
    ),
    "evidence": Command("evidence", "fit public losses anew, which `shape` rests on", "--table"),
    "bottlenecks": Command(
        "bottlenecks", "what binds in an architecture: vocabulary, rank, patch, attention"
    ),
    "rank": Command("separation_rank", "the exact separation rank of a small network"),
    "capacity": Command(
        "memorization_capacity", "how many examples the theorems guarantee to attention heads"
    ),
    "perplexity": Command("perplexity", "stride-1 perplexity and bits per byte of a model"),
    "plan": Command(SNAKEMAKE, "what the studies of config.yaml would cost", extra=("plan",)),
    "run": Command(
        SNAKEMAKE, "run them; --profile slurm on a cluster, --config scale=laptop for another scale"
    ),
    "status": Command("status", "how far the runs are"),
    "ui": Command(
        "browse_runs", "the runs in MLflow's UI", extra=("--results", "results", "--config", "config.yaml")
    ),
    "report": Command(SNAKEMAKE, "one page of all results", extra=("--report", "results/report.html")),
}


def help_text() -> str:
    """A line for each command."""
    width = max(map(len, COMMANDS))
    lines = [
        "usage: shapelaw COMMAND [ARGUMENT] [OPTIONS]      (shapelaw COMMAND --help has the options)",
        "",
    ]
    lines += [f"  {name:<{width}}  {command.about}" for name, command in COMMANDS.items()]
    return "\n".join(lines)


def arguments_of(command: Command, given: Sequence[str]) -> list[str]:
    """The arguments of a command's script."""
    rest = list(given)
    if command.first and rest and not rest[0].startswith("-"):
        what = rest.pop(0)
        rest = [command.first, what, *rest]
        if command.out and "--out" not in rest:
            rest += ["--out", f"{Path(what).stem}{command.out}"]
    return [*command.extra, *rest]


def run(command: Command, given: Sequence[str]) -> int:
    """Run a command in this process, or Snakemake in its place.

    Raises:
        UserError: Snakemake's command is asked for outside of a clone of the project, or with a wrong config.
    """
    arguments = arguments_of(command, given)
    if command.script == SNAKEMAKE:
        if not Path("Snakefile").is_file():
            raise UserError(
                f"There is no Snakefile in {Path.cwd()}; studies run in a clone of the project: cd to it and try again."
            )
        from shapelaw.settings.command_line import command_line_problems  # imports YAML

        if problems := command_line_problems(arguments):
            raise UserError("\n".join(problems))
        beside = Path(sys.executable).with_name(SNAKEMAKE)  # that of this environment, where it has one
        os.execvp(str(beside) if beside.exists() else SNAKEMAKE, [SNAKEMAKE, *arguments])
    script = SCRIPTS / f"{command.script}.py"
    sys.argv = [str(script), *arguments]
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    return 0


def main(given: Sequence[str] | None = None) -> int:
    """Run the command that the command line names; 2 where it names none."""
    words = list(sys.argv[1:] if given is None else given)
    if not words or words[0] in ("-h", "--help", "help"):
        print(help_text())
        return 0 if words else 2

    def work() -> int:
        command = COMMANDS.get(words[0])
        if command is None:
            raise UserError(f"{words[0]!r} is not a command of shapelaw; it has {', '.join(COMMANDS)}.")
        return run(command, words[1:])

    return exit_code(work)


if __name__ == "__main__":
    sys.exit(main())
