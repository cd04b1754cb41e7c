"""`python -m bench`: choose what to measure, measure it, show it, keep it in `.bench/results/`."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from bench import appends, report
from bench.ingest import FRAMES, HOMES, LAYOUTS, Measure, measure_all
from bench.places import CHECKOUT
from bench.setup import ensure_environments, ensure_lineitem
from bench.startup import measure_startup

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

QUICK_SCALE = 0.1
WIDTH_OF_A_LOG = 120
console = Console(width=None if sys.stdout.isatty() else WIDTH_OF_A_LOG)
progress = Console(stderr=True)


def main() -> None:
    arguments = parser().parse_args()
    if arguments.peers:
        ensure_environments()
    arguments.run(arguments)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    top.add_argument("--quick", action="store_true", help="a sanity run: scale 0.1, one round")
    top.set_defaults(
        peers=True, run=run_all, rounds=3, scale=3.0, only=list(HOMES), layouts=list(LAYOUTS), name="ingest"
    )
    commands = top.add_subparsers(metavar="COMMAND")
    ingest = commands.add_parser("ingest", help="load TPC-H lineitem")
    ingest.set_defaults(run=run_ingest)
    ingest.add_argument("--rounds", type=int, default=3)
    ingest.add_argument("--scale", type=float, default=3.0)
    ingest.add_argument("--only", type=chosen_from(HOMES), default=list(HOMES), help=",".join(HOMES))
    ingest.add_argument("--layouts", type=chosen_from(LAYOUTS), default=list(LAYOUTS), help=",".join(LAYOUTS))
    ingest.add_argument("--name", default="ingest", help="of the result file")
    frames = commands.add_parser("dataframe", help="write lineitem as a DataFrame, against Iceberg's Java runtime")
    frames.set_defaults(run=run_ingest)
    frames.add_argument("--rounds", type=int, default=3)
    frames.add_argument("--scale", type=float, default=3.0)
    frames.add_argument("--only", type=chosen_from(FRAMES), default=list(FRAMES), help=",".join(FRAMES))
    frames.add_argument("--layouts", type=chosen_from(LAYOUTS), default=list(LAYOUTS), help=",".join(LAYOUTS))
    frames.add_argument("--name", default="dataframe", help="of the result file")
    several = commands.add_parser("appends", help="8 processes append 20 times each to one table")
    several.add_argument("--rounds", type=int, default=1)
    several.add_argument("--only", type=chosen_from(("pyiceberg", "frazil")), default=["pyiceberg", "frazil"])
    several.set_defaults(run=run_appends)
    publish = commands.add_parser("publish", help="publish 100,000 data files that are already in manifests")
    publish.add_argument("--rounds", type=int, default=3)
    publish.set_defaults(run=run_publish)
    text = commands.add_parser("text", help="load CSV and JSON lines")
    text.add_argument("--rounds", type=int, default=3)
    text.set_defaults(run=run_text)
    postgres = commands.add_parser("postgres", help="a PostgreSQL table, against COPY by two connections")
    postgres.add_argument("--rounds", type=int, default=3)
    postgres.add_argument("--scale", type=float, default=1.0)
    postgres.set_defaults(run=run_postgres)
    read = commands.add_parser("read", help="read lineitem into Spark, and write a stream")
    read.add_argument("--rounds", type=int, default=3)
    read.add_argument("--scale", type=float, default=1.0)
    read.set_defaults(run=run_read)
    registering = commands.add_parser("register", help="5,000 small files join a table as they are")
    registering.add_argument("--rounds", type=int, default=3)
    registering.set_defaults(run=run_register)
    catalogs = commands.add_parser("catalog", help="catalogs: load, commit, list and create tables")
    catalogs.add_argument("--rounds", type=int, default=3)
    catalogs.add_argument("--seconds", type=float, default=2.0, help="of each operation of each contender, each round")
    catalogs.set_defaults(run=run_catalogs, peers=False)
    encoding = commands.add_parser("encoding", help="encode manifest entries")
    encoding.set_defaults(run=run_encoding)
    return top


def chosen_from(known: Collection[str]) -> Callable[[str], list[str]]:
    """The type of an option that takes some of these names, separated by commas."""

    def parse(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(known)}")
        return names

    return parse


def run_all(arguments: argparse.Namespace) -> None:
    """Everything, one after the other, when no command is named."""
    run_ingest(arguments)
    if arguments.quick:
        return
    run_appends(argparse.Namespace(only=["pyiceberg", "frazil"], rounds=1))
    run_publish(argparse.Namespace(rounds=3))
    run_postgres(argparse.Namespace(rounds=3, scale=1.0))
    run_encoding(arguments)


def run_ingest(arguments: argparse.Namespace) -> None:
    scale, rounds = (QUICK_SCALE, 1) if arguments.quick else (arguments.scale, arguments.rounds)
    sources = sorted(str(path) for path in ensure_lineitem(scale).glob("*.parquet"))
    content: dict[str, Any] = {"scale": scale, "rounds": rounds}
    name = "quick" if arguments.quick else arguments.name
    measures: list[Measure] = []
    for measure in measure_all(sources, arguments.only, arguments.layouts, rounds):
        progress.out(measure.layout, measure.contender, measure.failure or f"{measure.seconds:.2f} s", highlight=False)
        measures.append(measure)
        save(name, {**content, **report.as_json(measures)})  # a run that is stopped keeps what it has measured
    if "frazil" in arguments.only:
        content["startup"] = measure_startup(sources[0], rounds)
    report.show(measures, content.get("startup"), console)
    console.print(f"kept in {save(name, {**content, **report.as_json(measures)})}")


def run_appends(arguments: argparse.Namespace) -> None:
    results = appends.measure_appends(arguments.only, arguments.rounds)
    appends.show(results, console)
    console.print(f"kept in {save('appends', appends.as_json(results))}")


def run_publish(arguments: argparse.Namespace) -> None:
    from bench.publish import measure_publish  # imports Frazil, which the other benchmarks do not need

    result = measure_publish(arguments.rounds)
    for name, value in result["medians"].items():
        console.print(f"{name}: {value:.3f} s")
    console.print(f"{result['data_files']:,} data files cost {result['extra']:.3f} s more than an empty commit")
    console.print(f"kept in {save('publish', result)}")


def run_postgres(arguments: argparse.Namespace) -> None:
    from bench.postgres import measure_postgres  # imports the drivers, which the other benchmarks do not need

    result = measure_postgres(arguments.scale, arguments.rounds)
    console.print(f"frazil ingest: {result['medians']['frazil']:.2f} s")
    for form, ratio in result["ratios"].items():
        console.print(
            f"COPY as {form} by two connections: {result['medians'][form]:.2f} s; frazil takes {ratio:.2f} x as long"
        )
    console.print(f"kept in {save('postgres', result)}")


def run_read(arguments: argparse.Namespace) -> None:
    from bench.read import measure_read, sources_in  # imports Frazil, as above

    result = measure_read(sources_in(ensure_lineitem(arguments.scale)), arguments.rounds)
    for name, seconds in result["medians"].items():
        console.print(f"{name}: {seconds:.2f} s")
    for name, milliseconds in result["micro-batch"].items():
        console.print(f"micro-batch, {name}: {milliseconds:.0f} ms")
    console.print(f"kept in {save('read', result)}")


def run_register(arguments: argparse.Namespace) -> None:
    from bench.register import measure_register  # imports Frazil, as above

    result = measure_register(arguments.rounds)
    for name, seconds in result["medians"].items():
        console.print(f"{name}: {seconds:.2f} s")
    console.print(f"{result['over_floor']:.2f} x the floor, {result['times_pyiceberg']:.1f} x as fast as add_files")
    console.print(f"kept in {save('register', result)}")


def run_catalogs(arguments: argparse.Namespace) -> None:
    from bench.catalog import measure_catalogs, show  # imports Frazil, as above

    result = measure_catalogs(arguments.rounds, arguments.seconds)
    show(result, console)
    console.print(f"kept in {save('catalog', result)}")


def run_encoding(_: argparse.Namespace) -> None:
    from bench.manifest_encoding import main as measure_encoding  # imports Frazil, as above

    measure_encoding()


def run_text(arguments: argparse.Namespace) -> None:
    from bench.text_ingest import main as measure_text  # imports DuckDB, as above

    measure_text(ensure_lineitem(3.0), arguments.rounds)


def save(name: str, content: dict[str, Any]) -> Path:
    path = report.save(name, {"finished": datetime.now(UTC).isoformat(timespec="seconds"), **content})
    return path.relative_to(CHECKOUT)


if __name__ == "__main__":
    main()
