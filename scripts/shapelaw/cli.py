"""One command to remember: `shapelaw shape 1.3B`, `shapelaw fit runs.csv`, `shapelaw run`, and the rest of `COMMANDS`.

Each is a script of the project, and takes the script's arguments. Nothing heavy is imported before the script is known.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shapelaw.errors import COMMAND_VARIABLE, UserError, exit_code, nearest

PACKAGE = Path(__file__).resolve().parent
SCRIPTS = PACKAGE.parent if (PACKAGE.parent / "analyse.py").is_file() else PACKAGE / "commands"
ADVICE = PACKAGE / "advice" / "commands"
SNAKEMAKE = "snakemake"


@dataclass(frozen=True)
class Command:
    """A command of the user.

    Attributes:
        script: the script, without its ending; or `snakemake`.
        about: one line for `shapelaw --help`.
        extra: arguments that go before the user's.
    """

    script: str
    about: str
    extra: tuple[str, ...] = ()


COMMANDS = {
    "shape": Command(
        "shape", "what each shape of a size costs, and the best: shapelaw shape 1.3B --vocab 32k"
    ),
    "advisor": Command("advisor_page", "the same for every size, as a page with sliders: advisor.html"),
    "speed": Command("speed", "how long a step of each shape of a size takes here: shapelaw speed 1.3B"),
    "fit": Command(
        "fit_surface", "best depth and the cost of each shape, of your runs: shapelaw fit runs.csv"
    ),
    "transitions": Command(
        "fit_transitions",
        "where one depth overtakes another, of grids of runs: shapelaw transitions runs.csv",
    ),
    "evidence": Command(
        "evidence", "fit public losses anew, which `shape` rests on: shapelaw evidence gemstones.csv"
    ),
    "predict": Command(
        "predict", "what `shape` tells of public runs that it has not seen: shapelaw predict runs.csv"
    ),
    "bottlenecks": Command(
        "bottlenecks",
        "what binds in an architecture: vocabulary, rank, patch, attention: shapelaw bottlenecks T5-11B",
    ),
    "rank": Command("separation_rank", "the exact separation rank of a small network"),
    "capacity": Command(
        "memorization_capacity", "how many examples the theorems guarantee to attention heads"
    ),
    "perplexity": Command("perplexity", "stride-1 perplexity and bits per byte of a model"),
    "plan": Command(SNAKEMAKE, "what the studies of config.yaml would cost", ("plan",)),
    "run": Command(
        SNAKEMAKE,
        "train and analyse the studies; --profile slurm on a cluster, --config scale=laptop for larger ones",
    ),
    "status": Command("status", "progress of the runs"),
    "ui": Command("browse_runs", "the runs in MLflow's UI", ("--config", "config.yaml")),
    "report": Command(SNAKEMAKE, "page of what was submitted last", ("--report", "results/report.html")),
}
WORKFLOW_HELP = """\
usage: shapelaw {name} [TARGET ...] [OPTIONS]      (in a clone; the same as: {same})

{about}.

  --config KEY=VALUE ...   in place of config.yaml's, such as scale=laptop results=results-laptop (docs/config.md)
  --configfile FILE        on top of config.yaml, such as workflow/examples/grid.yaml
  --profile slurm          on a cluster (docs/cluster.md)
  -n --quiet rules         count the jobs, run none; what they cost: shapelaw plan
All options are Snakemake's: snakemake --help"""


def help_text() -> str:
    """A line for each command."""
    width = max(map(len, COMMANDS))
    lines = [
        "usage: shapelaw COMMAND [ARGUMENTS] [OPTIONS]      (options: shapelaw COMMAND --help)",
        "",
    ]
    lines += [f"  {name:<{width}}  {command.about}" for name, command in COMMANDS.items()]
    return "\n".join(lines)


def run(name: str, given: Sequence[str]) -> int:
    """Run a command in this process, or Snakemake in its place.

    Raises:
        UserError: Snakemake's command is asked for outside of a clone of the project, or with a wrong config.
    """
    command = COMMANDS[name]
    arguments = [*command.extra, *given]
    if command.script == SNAKEMAKE:
        return _run_snakemake(name, arguments)
    script = next(path for folder in (ADVICE, SCRIPTS) if (path := folder / f"{command.script}.py").is_file())
    sys.argv = [str(script), *arguments]
    os.environ[COMMAND_VARIABLE] = name
    runpy.run_path(str(script), run_name="__main__")  # ends with its own code
    return 0


def _run_snakemake(name: str, arguments: Sequence[str]) -> int:
    if not {"-h", "--help"}.isdisjoint(arguments):
        about, same = COMMANDS[name].about.capitalize(), " ".join([SNAKEMAKE, *COMMANDS[name].extra])
        print(WORKFLOW_HELP.format(name=name, same=same, about=about))
        return 0
    if not Path("Snakefile").is_file():
        raise UserError(
            f"There is no Snakefile in {Path.cwd()}; studies run in a clone of the project: cd to it and try again."
        )
    from shapelaw.settings.command_line import command_line_problems  # imports YAML

    if problems := command_line_problems(arguments):
        raise UserError("\n".join(problems))
    beside = Path(sys.executable).with_name(SNAKEMAKE)  # that of this environment, where it has one
    return os.execvp(str(beside) if beside.exists() else SNAKEMAKE, [SNAKEMAKE, *arguments])


def main(given: Sequence[str] | None = None) -> int:
    """Run the command that the command line names; 2 where it names none."""
    words = list(sys.argv[1:] if given is None else given)

    def work() -> int:
        if not words or words[0] in ("-h", "--help", "help"):
            print(help_text())
            return 0 if words else 2
        if words[0] not in COMMANDS:
            near = nearest(words[0], COMMANDS)
            meant = f"did you mean {near}? It" if near else "it"
            raise UserError(f"{words[0]!r} is not a command of shapelaw; {meant} has {', '.join(COMMANDS)}.")
        return run(words[0], words[1:])

    return exit_code(work)


if __name__ == "__main__":
    sys.exit(main())
