"""Type the mistakes that users make and print what is last on the terminal, as a table.

    python benchmarks/wrong_input.py [NUMBER ...] [--json FILE]

Each mistake is made in a fresh copy of the project, by the command that a user types; none may start training. A row
has what was said before (2026-11-22), the exit code now and the last line. About 3 minutes of one core.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MINE = "corpus='{name: mine, sources: [\"folder:texts\"]}'"
SMALL = (
    "training='{steps: 20, batch_size: 2, warmup_steps: 2, evaluate_every: 20, test_sequences: 5}' "
    "studies='[depth_width]' extras='[]' "
    "depth_width='{vocab_size: 257, context_length: 16, widths: {1: [4, 8]}, repeated: {}}'"
)
BY_HAND = (
    "python scripts/train_memorization.py --heads 1 --context 4 --head-dim 4 --width 8 --examples 8 --out out"
)
OLDER = """python - <<'END'
import mlflow, sqlalchemy
from alembic import command, config
from mlflow.store.tracking.dbmodels.initial_models import Base
engine, alembic = sqlalchemy.create_engine("sqlite:///theirs.db"), config.Config()
Base.metadata.create_all(engine)
alembic.set_main_option("script_location", mlflow.__path__[0] + "/store/db_migrations")
with engine.begin() as connection:
    alembic.attributes["connection"] = connection
    command.upgrade(alembic, "acf3f17fdcc7")
    connection.exec_driver_sql("INSERT INTO experiments VALUES (1, 'shapes', '/tmp', 'active', 1, 1)")
END
"""
# the number of tables of theirs.db
TABLES = (
    """python -c "import sqlalchemy as s; engine = s.create_engine('sqlite:///theirs.db'); """
    """print(len(s.inspect(engine).get_table_names()), 'tables')\""""
)
ENCODER = """mkdir m; python - <<'END'
import json, tokenizers, transformers
config = transformers.BertConfig(
    vocab_size=257, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
)
config.architectures = ["BertLMHeadModel"]
transformers.BertLMHeadModel(config).save_pretrained("m")
letters = tokenizers.pre_tokenizers.ByteLevel.alphabet()
vocabulary = {letter: number for number, letter in enumerate(sorted(letters))} | {"[UNK]": 256}
tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, "[UNK]"))
tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
    [tokenizers.pre_tokenizers.ByteLevel(False), tokenizers.pre_tokenizers.Split("", "isolated")]
)
transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]").save_pretrained("m")
END
python scripts/prepare_corpus.py --kind folder --path texts --out documents.parquet
"""
# commands of Slurm that answer as a cluster with a limit of one job does
SLURM = """mkdir bin; printf '#!/bin/sh\necho "MaxJobCount = 1"\n' > bin/scontrol; printf '#!/bin/sh\n' > bin/squeue
cp bin/squeue bin/sacctmgr; chmod +x bin/*; """
# 40 texts, alike and of ASCII: a cut through another character would be a mistake that the row does not mean
ASCII = "head -c 4000 docs/log.md | tr -cd '\\0-\\177'"
TEXTS = f"mkdir texts; for i in $(seq 40); do {ASCII} | tail -c $((90 * i)) > texts/$i.txt; done; "


@dataclass(frozen=True)
class Mistake:
    """Something wrong that a user does.

    Attributes:
        what: in words.
        before: what came of it on 2026-11-22.
        command: what is typed.
        made: shell that makes the mistake where the command alone does not.
    """

    what: str
    before: str
    command: str
    made: str = ""


def _in_config(keys: str) -> str:
    return f"snakemake -n --config {keys}"


def _fit(given: str, shown: str = "") -> str:
    """The command that fits a table of tests/faults, of whose output the last line with some words is shown."""
    show = f" | grep '{shown}' | tail -1" if shown else ""
    return f"python scripts/fit_surface.py --runs tests/faults/{given} --draws 300 --out out{show}"


def _model(config: str, command: str = "shape.py 124M") -> dict[str, str]:
    """A model's config, and the command that is asked about it."""
    made = f"mkdir m; echo '{config}' > m/config.json"
    return {"command": f"python scripts/{command} --model m | head -1", "made": made}


def _corpus(lines: str, shown: str = "") -> dict[str, str]:
    """A folder of 40 texts with something beside them, and the command that collects them."""
    command = "python scripts/prepare_corpus.py --kind folder --path texts --out documents.parquet"
    return {"command": command + shown, "made": TEXTS + lines}


def _store(uri: str, made: str = ":") -> dict[str, str]:
    """A store of MLflow's, and the command that fits what is in it."""
    return {
        "command": f"python scripts/fit_surface.py --mlflow '{uri}' --experiment shapes --out out",
        "made": made,
    }


MISTAKES = (
    # --- the command line and the file
    Mistake(
        "a job fails under the options of `make demo`",
        "`CalledProcessError ... 'set -euo pipefail; ...'`",
        "snakemake --cores 2 --quiet rules reason host --show-failed-logs "
        f"results/corpora/mine/documents.parquet --config {MINE}",
        "mkdir texts; head -c 200000 /dev/zero > texts/a.parquet",
    ),
    Mistake(
        "config.yaml in UTF-16",
        "traceback",
        "snakemake -n",
        "iconv -t utf-16 config.yaml > c; mv c config.yaml",
    ),
    Mistake("config.yaml in latin-1", "traceback", "snakemake -n", r"printf '# caf\xe9\n' >> config.yaml"),
    Mistake("config.yaml is no YAML", "no line named", "snakemake -n", "echo 'a: [1' >> config.yaml"),
    Mistake("a key twice", "the second wins", "snakemake -n", "echo 'scale: gpu' >> config.yaml"),
    Mistake("`--config` unquoted", "traceback", "snakemake -n --config depth_width={widths: {1: [16, 34]}}"),
    Mistake("`--config` without a value", "traceback", _in_config("scale")),
    Mistake("the same, with `=`", "traceback", _in_config("scale=")),
    Mistake("a dotted key", "traceback", _in_config("training.steps=2000")),
    Mistake("an absent `--configfile`", "traceback", "snakemake -n --configfile nowhere.yaml"),
    Mistake("`--cores 0`", "silent", "snakemake --cores 0"),
    # --- targets and folders
    Mistake(
        "a run that is not in the grid",
        "traceback",
        "snakemake -n results/runs/wiki-V500-L9-d16-H2-t400-s0/summary.json",
    ),
    Mistake(
        "results of a study that is off",
        "`MissingInputException`",
        "snakemake -n results/block_degree/fit.json",
    ),
    Mistake("`results` is a file", "traceback", "snakemake -n", "rm -rf results; touch results"),
    Mistake(
        "`results` is read-only",
        "traceback",
        "unshare --mount sh -c 'mount -t tmpfs -o ro none results && snakemake --cores 1'",
    ),
    Mistake(
        "the folder of text vanishes",
        "traceback",
        f"snakemake --cores 1 --config {MINE} depth_width='{{vocab_size: 257}}' studies='[depth_width]'",
    ),
    Mistake(
        "`make ui PORT=99999`",
        "traceback",
        "python scripts/browse_runs.py --results results --config config.yaml --port 99999",
    ),
    Mistake(
        "`make ui` on a port in use",
        "exit code 0",
        "python scripts/browse_runs.py --results results --config config.yaml --port 45871",
        "timeout 900 python -m http.server 45871 --bind 127.0.0.1 >/dev/null 2>&1 & sleep 5",
    ),
    # --- grids
    Mistake(
        "a width of 200,000",
        "traceback of the allocator",
        _in_config("depth_width='{widths: {1: [200000], 2: [16]}, repeated: {}}'"),
    ),
    Mistake("one depth", "silent", _in_config("depth_width='{widths: {1: [16, 24]}, repeated: {1: [16]}}'")),
    Mistake(
        "two widths a depth",
        "silent",
        _in_config("depth_width='{widths: {1: [16, 32], 2: [12, 24]}, repeated: {1: [16]}}'"),
    ),
    Mistake("no repeats", "silent", _in_config("depth_width='{repeated: {}}'")),
    Mistake(
        "sizes that don't overlap",
        "silent",
        _in_config("depth_width='{widths: {1: [8, 10, 12, 14], 2: [48, 64, 80, 96]}, repeated: {1: [8]}}'"),
    ),
    Mistake(
        "the same in `todays_decoder`",
        "silent",
        _in_config(
            "studies='[todays_decoder]' todays_decoder='{grids: [{budget: {steps: 100}, "
            "widths: {1: [8, 12, 16, 20], 2: [48, 64, 80, 96]}, repeated: {1: [8]}}]}'"
        ),
    ),
    Mistake(
        "an oversized rank grid",
        "silent",
        _in_config('separation_rank="[{depth: [$(seq -s, 100)], width: [$(seq -s, 200)], tokens: [2]}]"'),
    ),
    # --- numbers
    Mistake("10^15 steps", "silent", _in_config("training='{steps: 1e15}'")),
    Mistake("a batch of 10^9", "waits", _in_config("training='{batch_size: 1000000000}'")),
    Mistake("a context of 10^9", "silent", _in_config("depth_width='{context_length: 1000000000}'")),
    Mistake("a vocabulary of 300,000", "silent", _in_config("depth_width='{vocab_size: 300000}'")),
    Mistake("a learning rate of 1000", "silent", _in_config("training='{learning_rate: 1000}'")),
    Mistake("9,999 threads", "silent", _in_config("execution='{threads: 9999}'")),
    Mistake("99 threads", "silent", _in_config("execution='{threads: 99}'")),
    Mistake("`evaluate_every` above the steps", "silent", _in_config("training='{evaluate_every: 1000}'")),
    # --- texts and trackers
    Mistake("`folder:` without a name", "silent", _in_config("corpus='{sources: [\"folder:\"]}'")),
    Mistake(
        "a bad option of a source",
        "silent",
        _in_config("corpus='{sources: [\"folder:texts,text_colum=body\"]}'"),
    ),
    Mistake(
        "kinds of files that are skipped",
        "silent",
        f"snakemake -n --config {MINE} {SMALL}",
        TEXTS + "touch texts/a.pdf texts/b.pdf texts/c.docx",
    ),
    Mistake("`MLFLOW_TRACKING_URI=banana`", "told after training", "MLFLOW_TRACKING_URI=banana snakemake -n"),
    Mistake(
        "a tracker that does not answer",
        "told in a log only",
        _in_config("studies='[separation_rank]' extras='[]' tracking='{uri: \"http://127.0.0.1:9\"}'"),
    ),
    # --- commands
    Mistake(
        "other `--steps` into the same `--out`",
        "silent",
        f"{BY_HAND} --steps 20",
        f"{BY_HAND} --steps 10",
    ),
    Mistake("`--hours -1`", "silent", "python scripts/write_specs.py --hours -1 --out specs"),
    Mistake(
        "`--study nothing`",
        "silent",
        "python scripts/import_runs.py --results results --study nothing --out runs.parquet",
    ),
    Mistake(
        "`separation_rank.py --depth 6 --width 64 --tokens 100`",
        "9 minutes without output",
        "python scripts/separation_rank.py --depth 6 --width 64 --tokens 100",
    ),
    # --- files that were changed
    Mistake(
        "100 wrong bytes in a token store",
        "silent",
        f"snakemake --cores 1 --quiet rules reason host --config {MINE} {SMALL}",
        f"{TEXTS} snakemake results/corpora/mine/V257/train.json --cores 1 --config {MINE} {SMALL}; "
        "head -c 100 /dev/zero | dd of=results/corpora/mine/V257/train.bin conv=notrunc bs=1 seek=200 status=none; "
        "touch -r results/corpora/mine/V257/train.json results/corpora/mine/V257/train.bin",
    ),
    Mistake(
        "an edited `summary.json`",
        "silent",
        "python scripts/import_runs.py --results results --study depth_width --out runs.parquet",
        "tar -xJf tests/golden/finished.tar.xz results; "
        'sed -i \'s/"test_loss": [0-9]/"test_loss": 1/\' results/runs/*/summary.json',
    ),
    # --- wording
    Mistake("a number for a section", "`instance of TrainingConfig`", _in_config("training=5")),
    Mistake("an empty list", "`after validation, not 0`", _in_config("studies='[]'")),
    Mistake("a study's name misspelled", "`studies.0`", _in_config("studies='[depth_widht]'")),
    Mistake(
        "a key that does not suit the scale's",
        "not said to be the scale's",
        _in_config("depth_width='{heads: 5}'"),
    ),
    # --- tables of runs: what was said on 2026-11-25
    Mistake(
        "a sweep of rates, no seeds",
        "rates are seeds: 2.8 (2.2 to 3.4)",
        _fit("tables/sweep.csv"),
    ),
    Mistake(
        "its best runs",
        "not possible without seeds",
        _fit("tables/sweep.csv --best-of learning_rate", "1.87M"),
    ),
    Mistake("curves that end in NaN", "the last finite value", _fit("wandb-diverged", "left out")),
    Mistake("runs of one name", "all get one curve's last value", _fit("wandb-somename")),
    Mistake("thousands separators", "sizes from 49.2 to 885", _fit("tables/thousands.tsv", "shapes from")),
    Mistake(
        "a column D of tokens",
        "D is the width",
        _fit("tables/tokens_as_D.csv --column depth=numl"),
    ),
    Mistake("tokens 0.1% apart", "no column of seeds", _fit("tables/tokens_nearly.csv", "every run")),
    Mistake("290 times of size", "depth makes no difference", _fit("tables/wide.csv", "best depth")),
    Mistake("constant losses", "traceback", _fit("curvefit/constant.csv")),
    Mistake(
        "transitions off their line",
        "traceback",
        "python scripts/fit_transitions.py --transitions tests/faults/curvefit/scattered.csv --out out | grep '^Proj'",
    ),
    Mistake(
        "unusable rows",
        "the first column's alone",
        "python scripts/fit_surface.py --runs runs.csv --out out",
        "printf 'depth,width,loss\\n1,64,4\\n2,wide,3\\n0,64,2\\n4,32.5,3\\n' > runs.csv",
    ),
    Mistake(
        "a study's own runs, some of them unusable",
        "refused, or the noise is 1.3",
        "python scripts/analyse.py depth_width --input runs.csv --out out --draws 100 | grep -c 'left out'",
        """python -c '
import pandas as pd
runs = pd.read_parquet("docs/results/laptop_depth_width.parquet")
runs.loc[3, "test_loss"], runs.loc[5, "status"], runs.loc[7, "test_loss"] = None, "RUNNING", 9.87
runs.to_csv("runs.csv", index=False)'""",
    ),
    # --- models' configs
    Mistake("gpt2", '"untied", 22 x 522', **_model('{"model_type": "gpt2"}')),
    Mistake(
        "OPT, whose `word_embed_proj_dim` is its width",
        "a factored embedding of rank 768",
        **_model('{"model_type": "opt", "hidden_size": 768, "word_embed_proj_dim": 768}'),
    ),
    Mistake(
        "ALBERT-xxlarge", "11.7 times its size", **_model('{"model_type": "albert", "hidden_size": 4096}')
    ),
    Mistake(
        "an image model",
        "less two vocabularies of 50,257",
        **_model('{"model_type": "vit"}'),
    ),
    Mistake(
        "image and text",
        "blocks of one part, a width of the other",
        **_model('{"model_type": "clip", "text_config": {"hidden_size": 512}, "vision_config": {}}'),
    ),
    Mistake(
        "latent attention",
        "0.04 of its size, H d_a = 7,168",
        **_model('{"model_type": "deepseek_v3"}', "bottlenecks.py"),
    ),
    Mistake(
        "a nested config without a head dimension",
        "3,584, nothing binds",
        **_model(
            '{"model_type": "vlm", "text_config": {"model_type": "gemma2", "hidden_size": 3584, '
            '"num_attention_heads": 16, "num_hidden_layers": 42}}',
            "bottlenecks.py",
        ),
    ),
    Mistake("a mixture of experts", "a dense decoder", **_model('{"model_type": "mixtral"}')),
    Mistake("Mamba", "a dense decoder", **_model('{"model_type": "mamba"}')),
    Mistake("T5", "a dense decoder", **_model('{"model_type": "t5"}')),
    Mistake(
        "a family that nobody knows",
        "its blocks are guessed",
        **_model(
            '{"model_type": "mine", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}'
        ),
    ),
    Mistake(
        "sizes that are texts",
        "traceback",
        **_model('{"model_type": "llama", "hidden_size": "2048", "num_hidden_layers": "16"}'),
    ),
    # --- data
    Mistake(
        "an older MLflow's store is read",
        "16 tables become 65",
        _store("sqlite:///theirs.db")["command"] + f"; {TABLES}",
        OLDER,
    ),
    Mistake(
        "an older MLflow's store is imported into",
        "16 tables become 65",
        "python scripts/import_runs.py --results results --study depth_width --out runs.parquet "
        "--uri sqlite:///theirs.db",
        OLDER + "tar -xJf tests/golden/finished.tar.xz results",
    ),
    Mistake('`--mlflow ""`', "traceback", **_store("")),
    Mistake("an empty store", "traceback", **_store("sqlite:///theirs.db", ": > theirs.db")),
    Mistake("a plain path", "traceback", **_store("theirs.db", OLDER)),
    Mistake("`./mlruns`", "traceback", **_store("./mlruns", "mkdir mlruns")),
    Mistake("`file://`", "traceback", **_store("file://$PWD/mlruns", "mkdir mlruns")),
    Mistake(
        "texts that differ in line ends alone",
        "each test text has a copy in train",
        **_corpus("for f in texts/*; do sed 's/$/\\r/' $f > ${f%.txt}-dos.txt; done"),
    ),
    Mistake(
        "a null text",
        "refused",
        **_corpus("""printf '{"text": null}\n{"text": "one"}\n' > texts/a.jsonl"""),
    ),
    Mistake("an empty .jsonl", "silent", **_corpus("rm texts/*; : > texts/a.jsonl")),
    Mistake(
        "the perplexity of an encoder",
        "1.09 a token",
        "python scripts/perplexity.py --model m --documents documents.parquet --start '[UNK]'",
        TEXTS + ENCODER,
    ),
    # --- odd places
    Mistake(
        "a folder of texts with a comma",
        "can't be named",
        "snakemake results/corpora/mine/documents.parquet --cores 1 --quiet all --config "
        "corpus='{name: mine, sources: [\"folder:letters, poems\"]}' && ls results/corpora/mine/documents.parquet",
        TEXTS + "mv texts 'letters, poems'",
    ),
    Mistake(
        "a file's name that is not UTF-8",
        "traceback",
        **_corpus("echo one > $'texts/\\xe9.txt'"),
    ),
    Mistake(
        "a checkout with blanks and quotes in its path",
        "fails in every job",
        'cd "it\'s mine" && snakemake results/corpora/mine/documents.parquet --cores 1 --quiet all '
        f"--config {MINE} && ls results/corpora/mine/documents.parquet",
        TEXTS
        + 'mkdir "it\'s mine"; cp -r Snakefile config.yaml scripts workflow profiles envs texts "it\'s mine"',
    ),
    Mistake(
        "a checkout with braces in its path",
        "fails in every job",
        "cd 'br{a}ces' && snakemake -n",
        "mkdir 'br{a}ces'; cp -r Snakefile config.yaml scripts workflow profiles envs 'br{a}ces'",
    ),
    Mistake(
        "a full temporary folder",
        "Snakemake's traceback",
        "unshare --mount sh -c 'mount -t tmpfs -o size=64k none full && (cat /dev/zero > full/all 2> /dev/null; "
        "TMPDIR=$PWD/full snakemake results/corpora/mine/documents.parquet --cores 1 --quiet all "
        f'--config "$0") && ls results/corpora/mine/documents.parquet\' {MINE}',
        TEXTS + "mkdir full",
    ),
    Mistake(
        "a group's checkout, umask 002",
        "mlflow.db is 644: others wait 600 s",
        "umask 002; python scripts/import_runs.py --results results --study depth_width --out runs.parquet; "
        "stat -c '%n is %a' results/mlflow.db",
        "tar -xJf tests/golden/finished.tar.xz results; chmod 2775 results",
    ),
    # --- the scheduler
    Mistake(
        "a refusal of Slurm's",
        "six attempts in a second, the run is lost",
        f"PATH=$PWD/bin:$PATH timeout 60 snakemake --profile slurm --quiet all --config {MINE} {SMALL} 2>&1"
        " | grep MaxJobCount",
        TEXTS + SLURM,
    ),
    # --- wording, again
    Mistake(
        "a wrong scale and a wrong key", "the key is not told", _in_config("scale=dmeo training='{stps: 5}'")
    ),
)


def last_words(said: str) -> str:
    """The last line that is not empty, or all warnings where it is one."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    last = lines[-1:]
    return " ".join(
        [line for line in lines if line.startswith("Warning: ")] if "Warning: " in "".join(last) else last
    )


def try_out(mistake: Mistake) -> dict[str, object]:
    """Make a mistake in a fresh copy, and return its row."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "200"}
    environment.pop("MLFLOW_TRACKING_URI", None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        for one in (
            "Snakefile",
            "config.yaml",
            "scripts",
            "workflow",
            "profiles",
            "slurm",
            "envs",
            "docs",
            "tests/golden",
            "tests/faults",
        ):
            source, to = ROOT / one, folder / one
            (shutil.copytree if source.is_dir() else shutil.copy)(source, _made(to))
        (folder / "results").mkdir()
        start = time.perf_counter()
        script = f"(:\n{mistake.made}\n) >/dev/null 2>&1; exec 2>&1\n{mistake.command}"
        done = subprocess.run(
            ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )  # fmt: skip
        said = done.stdout.replace(name, ".")
    return {
        **asdict(mistake),
        "code": done.returncode,
        "traceback": "Traceback" in said,
        "last": last_words(said),
        "seconds": round(time.perf_counter() - start, 1),
    }


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def main() -> None:
    """Try the mistakes and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("numbers", nargs="*", type=int, help="rows, from 1 (default: all)")
    parser.add_argument("--json", type=Path, help="file for everything, a line a row")
    arguments = parser.parse_args()
    numbers = arguments.numbers or range(1, len(MISTAKES) + 1)
    print("| input | before | exit code | now, last on the terminal |\n|---|---|---|---|")
    for number in numbers:
        row = try_out(MISTAKES[number - 1])
        said = str(row["last"]).removeprefix("- ").replace("|", "\\|")
        mark = " (a traceback)" if row["traceback"] else ""
        print(f"| {row['what']} | {row['before']} | {row['code']} | {said}{mark} |", flush=True)
        if arguments.json is not None:
            with arguments.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"number": number, **row}) + "\n")


if __name__ == "__main__":
    main()
