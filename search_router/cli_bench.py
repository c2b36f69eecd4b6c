"""The commands that measure. Like `cli`, they only translate; each prints a table, or one JSON object with --json."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from search_router.cli_bench_runs import compare_benchmarks, fixtures, run_benchmark
from search_router.cli_frame import json_option, load_or_die, run_blocking

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)
set_option = click.option("--set", "flags", multiple=True, metavar="KEY=VALUE", help="Override one configuration value in every arm.")


def _split_names(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for each in given for name in each.split(",") if name)


def data_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--questions, --repositories, --checkouts, --only: see docs/benchmarks.md for the files."""
    for option in (
        click.option(
            "--only",
            "--repos",
            "only",
            multiple=True,
            metavar="NAME[,NAME]",
            callback=_split_names,
            help="Only these repositories; repeatable.",
        ),
        click.option("--checkouts", type=FOLDER, required=True, help="Folder with a checkout a repository, by name."),
        click.option("--repositories", type=FILE, required=True, help="JSON list of {name, language, root}."),
        click.option("--questions", type=FILE, required=True, help="JSON lines of questions with known targets."),
    ):
        command = option(command)
    return command


@click.group()
def bench() -> None:
    """Measurements of this machine and this code. Times are milliseconds."""


bench.add_command(fixtures)
bench.add_command(run_benchmark)
bench.add_command(compare_benchmarks)


@bench.command("overhead")
@click.option("--requests", type=click.IntRange(10), default=400, show_default=True)
@json_option
def bench_overhead(requests: int, as_json: bool) -> None:
    """The router's own share of a request with four scripted experts of 50 hits each."""
    from search_router.benchmark import overhead
    from search_router.benchmark.timing import print_result

    print_result(overhead.run(requests), as_json)


@bench.command("enrichment")
@click.option("--events", type=click.IntRange(0), default=100_000, show_default=True, help="Events that are there already.")
@click.option("--requests", type=click.IntRange(1), default=2000, show_default=True)
@click.option("--root", type=FOLDER, help="Ask the default experts about this checkout, in place of scripted ones.")
@json_option
def bench_enrichment(events: int, requests: int, root: Path | None, as_json: bool) -> None:
    """What events, cache and hints cost a request, beside a router without them."""
    from search_router.benchmark import enrichment
    from search_router.benchmark.timing import print_result

    print_result(enrichment.run(events, requests, root=root), as_json)


@bench.command("startup")
@click.option("--rounds", type=click.IntRange(1), default=7, show_default=True)
@json_option
def bench_startup(rounds: int, as_json: bool) -> None:
    """Process start to first answer, beside a bare server of the same SDK."""
    from search_router.benchmark import startup
    from search_router.benchmark.timing import print_result

    print_result(startup.run(rounds), as_json)


@bench.command("latency")
@click.option("--root", type=FOLDER, default=".", help="A checkout.")
@click.option("--count", type=click.IntRange(3), default=90, show_default=True, help="Questions.")
@json_option
def bench_latency(root: Path, count: int, as_json: bool) -> None:
    """Warm questions to grep, symbols and history together, made from the checkout itself."""
    from search_router.benchmark import latency
    from search_router.benchmark.timing import print_result

    print_result(latency.run(root, count), as_json)


@bench.command("receipts")
@click.option("--seconds", type=click.FloatRange(0.1, 60), default=3.0, show_default=True, help="For each number of clients.")
@json_option
def bench_receipts(seconds: float, as_json: bool) -> None:
    """Receipts a second, and what a client waits for one, at 1, 10, 50 and 100 clients of one store."""
    from search_router.benchmark import receipts as benchmark
    from search_router.benchmark.timing import print_result

    print_result(benchmark.run(seconds), as_json)


@bench.command("load")
@click.option("--clients", type=click.IntRange(1, 1000), default=100, show_default=True, help="At once.")
@click.option("--requests", type=click.IntRange(1), default=20, show_default=True, help="Of each client, one after another.")
@json_option
def bench_load(clients: int, requests: int, as_json: bool) -> None:
    """Many HTTP clients on one real server process with scripted experts. Exit code 1 when an answer or a receipt is missing."""
    from search_router.benchmark import load
    from search_router.benchmark.timing import print_result

    result = load.run(clients, requests)
    print_result(result, as_json)
    sys.exit(0 if not result["errors"] and result["verified"] and result["answers"] == result["receipts"] else 1)


@bench.command("soak")
@click.option("--root", type=FOLDER, default=".", help="A checkout.")
@click.option("--seconds", type=click.FloatRange(1, 86_400), default=180.0, show_default=True, help="Of the soak; 3600 in full.")
@click.option("--step-seconds", type=click.FloatRange(0.5, 600), default=10.0, show_default=True, help="Of each step of the ladders.")
@set_option
@json_option
def bench_soak(root: Path, seconds: float, step_seconds: float, flags: Sequence[str], as_json: bool) -> None:
    """Ladders of 1 to 100 clients over HTTP and stdio, then a soak at half of what it bears. Exit code 1 when one is lost or it drifts."""
    from search_router.benchmark import soak
    from search_router.benchmark.report import write_json

    result = soak.run(root, seconds, step_seconds, flags)
    write_json(result) if as_json else soak.print_soak(result)
    sys.exit(0 if result["ok"] else 1)


@bench.command("quality")
@data_options
@click.option("--arm", "arms", multiple=True, metavar="NAME[:KEY=VALUE;…]", help="A known arm or one of your own; repeatable.")
@click.option("--ablate", is_flag=True, help="Every signal, stage, damping and expert off, every signal alone; with vectors and without.")
@click.option("--minutes", type=click.FloatRange(0, min_open=True), help="No arm is begun that would probably end later than this.")
@click.option("--cross-validate", is_flag=True, help="What fitted weights would get out of fold, against the shipped ones.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the rankings here, as JSON lines.")
@set_option
@json_option
def bench_quality(
    questions: Path,
    repositories: Path,
    checkouts: Path,
    only: Sequence[str],
    arms: Sequence[str],
    ablate: bool,
    minutes: float | None,
    cross_validate: bool,
    out: Path | None,
    flags: Sequence[str],
    as_json: bool,
) -> None:
    """NDCG@10 on questions with known targets: overall, by group, spread, latency."""
    from search_router.benchmark import cross_validation, quality
    from search_router.benchmark.report import write_json

    data = quality.Data(questions, repositories, checkouts, tuple(only))
    if cross_validate:
        fitted = run_blocking(lambda: cross_validation.run(data, flags))
        write_json(fitted) if as_json else cross_validation.print_folds(fitted)
        return
    result = run_blocking(lambda: quality.run(data, arms, flags, ablate=ablate, out=out, seconds=minutes and minutes * 60))
    write_json(result) if as_json else quality.print_figures(result)


@bench.command("tokens")
@data_options
@click.option("--arm", "arms", multiple=True, metavar="NAME[:KEY=VALUE;…]", help="Such as `short:output.snippet_lines=3`; repeatable.")
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="Items of evidence asked for.")
@set_option
@json_option
def bench_tokens(
    questions: Path,
    repositories: Path,
    checkouts: Path,
    only: Sequence[str],
    arms: Sequence[str],
    limit: int,
    flags: Sequence[str],
    as_json: bool,
) -> None:
    """Share of questions whose target stands within the first N tokens of the answer's text."""
    from search_router.benchmark import quality, tokens
    from search_router.benchmark.report import write_json

    data = quality.Data(questions, repositories, checkouts, tuple(only))
    result = run_blocking(lambda: tokens.run(data, arms, flags, limit=limit))
    write_json(result) if as_json else tokens.print_shares(result)


@bench.command("peers")
@click.option("--suite", help="`fixtures`, or a suite's folder: each question in its own project; in place of the three data options.")
@click.option("--built", type=click.Path(path_type=Path, file_okay=False), help="Where the suite's code is, or will be.")
@click.option("--count", type=click.IntRange(1), help="Only so many questions of the suite, drawn evenly by class and half.")
@click.option("--questions", type=FILE, help="JSON lines of questions with known targets.")
@click.option("--repositories", type=FILE, help="JSON list of {name, language, root}.")
@click.option("--checkouts", type=FOLDER, help="Folder with a checkout a repository, by name.")
@click.option("--only", "--repos", multiple=True, metavar="NAME[,NAME]", callback=_split_names, help="Only these repositories; repeatable.")
@click.option("--semble-python", type=FILE, help="Interpreter of an environment with semble.")
@click.option("--semble-model", type=FOLDER, help="A model2vec folder. Without one, semble runs without vectors, and the table says so.")
@click.option("--chunkhound", type=FILE, help="A chunkhound to compare with; it runs without an embedder.")
@click.option("--rg", help="A ripgrep to compare with.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Keep figures, page and plot (SVG and PNG) here.")
@set_option
@json_option
def bench_peers(
    suite: str | None,
    built: Path | None,
    count: int | None,
    questions: Path | None,
    repositories: Path | None,
    checkouts: Path | None,
    only: Sequence[str],
    semble_python: Path | None,
    semble_model: Path | None,
    chunkhound: Path | None,
    rg: str | None,
    out: Path | None,
    flags: Sequence[str],
    as_json: bool,
) -> None:
    """Ourselves beside other engines: index time, query latency and NDCG@10 on the same questions, in one run."""
    from search_router.benchmark import peers, quality, suite_data
    from search_router.benchmark.report import write_json

    data: peers.Questions
    if suite is not None:
        data = suite_data.SuiteData(suite, built, tuple(only), count)
    elif questions is not None and repositories is not None and checkouts is not None:
        data = quality.Data(questions, repositories, checkouts, tuple(only))
    else:
        raise click.UsageError("Name a --suite, or all of --questions, --repositories and --checkouts.")
    others = peers.Others(semble_python, semble_model, rg, chunkhound)
    result = run_blocking(lambda: peers.run(data, others, flags=flags, out=out))
    write_json(result) if as_json else peers.print_systems(result)


@bench.command("index")
@click.option("--root", "roots", multiple=True, required=True, type=FOLDER, help="Directory whose text files are copied; repeatable.")
@click.option("--lines", default="10000,100000", show_default=True, metavar="N,N", help="Sizes of the corpora.")
@click.option("--saves", type=click.IntRange(0, 1000), default=30, show_default=True, help="Saved files, a question after each.")
@click.option("--switched", type=click.IntRange(0, 100_000), default=500, show_default=True, help="Files that the other branch changes.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Keep figures, page, plots and benchmark events here.")
@set_option
@json_option
def bench_index(
    roots: Sequence[Path], lines: str, saves: int, switched: int, out: Path | None, flags: Sequence[str], as_json: bool
) -> None:
    """Build speed, memory, disk and latency of a server by size of the repository, and what saves and branch switches cost."""
    from search_router.benchmark import index_growth
    from search_router.benchmark.report import write_json

    sizes = [int(size) for size in lines.split(",") if size.strip().isdecimal()]
    if len(sizes) != len(lines.split(",")):
        raise click.BadParameter(f"{lines!r} is not a list of numbers such as 10000,100000.", param_hint="--lines")
    result = run_blocking(lambda: index_growth.run(roots, sizes, flags, saves=saves, switched=switched, out=out))
    write_json(result) if as_json else index_growth.print_sizes(result)


@bench.command("vectors")
@click.option("--root", type=click.Path(path_type=Path, exists=True, file_okay=False), default=".", help="A checkout.")
@click.option("--questions", type=click.IntRange(1, 10_000), default=200, show_default=True)
@click.option("--copies", type=click.IntRange(1, 1000), default=1, show_default=True, help="Search so many times the chunks, with noise.")
@json_option
def bench_vectors(root: Path, questions: int, copies: int, as_json: bool) -> None:
    """What the search over bytes finds of the exact best ten chunks, how long it takes, and what it keeps in memory."""
    from search_router.benchmark import vectors
    from search_router.benchmark.timing import print_result

    print_result(vectors.run(root, questions, copies), as_json)


@bench.command("impact")
@click.option("--index", type=FILE, required=True, help="The oracle: an index.scip of ROOT.")
@click.option("--root", type=FOLDER, default=".", help="A checkout.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="Functions asked about.")
@set_option
@json_option
def bench_impact(index: Path, root: Path, limit: int, flags: Sequence[str], as_json: bool) -> None:
    """Who calls X: callers found, against an index by another engine, with and without typed experts."""
    from search_router.benchmark import impact
    from search_router.benchmark.timing import print_result

    print_result(impact.run(index, root, limit, flags=flags), as_json)


@bench.command("chaos")
@click.option("--clients", type=click.IntRange(1, 200), default=20, show_default=True, help="At once.")
@click.option("--whole", is_flag=True, help="Every fault; without it a choice of them.")
@json_option
def bench_chaos(clients: int, whole: bool, as_json: bool) -> None:
    """Faults of remote servers over stdio and HTTP while many clients ask. Exit code 1 when a rule did not hold."""
    from search_router.benchmark import chaos
    from search_router.benchmark.timing import print_result

    result = chaos.run(clients, whole=whole)
    print_result(result, as_json)
    sys.exit(0 if result["ok"] else 1)


@bench.command("adapter")
@click.option("--calls", type=click.IntRange(10), default=300, show_default=True)
@json_option
def bench_adapter(calls: int, as_json: bool) -> None:
    """A warm call through the MCP adapter beside the SDK's bare client."""
    from search_router.benchmark import adapter
    from search_router.benchmark.timing import print_result

    print_result(adapter.run(calls), as_json)


@bench.command("history")
@click.option("--root", type=click.Path(path_type=Path, exists=True, file_okay=False), default=".", help="A checkout with its history.")
@click.option(
    "--questions", type=click.Path(path_type=Path, exists=True, dir_okay=False), required=True, help="JSON lines, see docs/knowledge.md."
)
@click.option("--kind", "kinds", multiple=True, help="Only questions of this kind; several may be named.")
@click.option("--prefix", default="", help="Only questions whose id begins with it.")
@json_option
def bench_history(root: Path, questions: Path, kinds: tuple[str, ...], prefix: str, as_json: bool) -> None:
    """Labelled questions about the past: how often the right commit, or file, is among the first, and MRR@10."""
    from search_router.benchmark import history
    from search_router.benchmark.timing import print_result

    print_result(history.run(root, questions, kinds=kinds, prefix=prefix), as_json)


@bench.command("history-growth")
@click.option("--commits", type=click.IntRange(100), default=100_000, show_default=True)
@click.option("--questions", type=click.IntRange(3), default=50, show_default=True)
@click.option("--added", type=click.IntRange(1, 10), default=5, show_default=True, help="New commits, each followed by a question.")
@json_option
def bench_history_growth(commits: int, questions: int, added: int, as_json: bool) -> None:
    """The first reading of a long made-up history, warm questions, and questions right after one new commit."""
    from search_router.benchmark import history_growth
    from search_router.benchmark.timing import print_result

    print_result(history_growth.run(commits, questions, added), as_json)


@bench.command("knowledge")
@click.option("--chunks", type=click.IntRange(100), default=100_000, show_default=True)
@click.option("--questions", type=click.IntRange(3), default=200, show_default=True)
@click.option("--edits", type=click.IntRange(1), default=20, show_default=True)
@click.option("--vectors", is_flag=True, help="Find them by vectors too.")
@json_option
def bench_knowledge(chunks: int, questions: int, edits: int, vectors: bool, as_json: bool) -> None:
    """Warm questions to made-up documents, and questions right after an edit."""
    from search_router.benchmark import knowledge
    from search_router.benchmark.timing import print_result

    print_result(knowledge.run(chunks, questions, edits, vectors=vectors), as_json)


@bench.command("knowledge-quality")
@click.option("--archives", type=click.Path(path_type=Path, file_okay=False), help="Folder that keeps the downloaded archives.")
@click.option("--arm", "arms", multiple=True, metavar="NAME[:KEY=VALUE;…]", help="A known arm or one of your own; repeatable.")
@click.option("--half", type=click.Choice(["dev", "held-out"]), help="Only this half; rules are tuned on dev alone.")
@click.option("--hints/--no-hints", default=True, show_default=True, help="Whether the caller tells the intent.")
@set_option
@json_option
def bench_knowledge_quality(
    archives: Path | None, arms: Sequence[str], half: str | None, hints: bool, flags: Sequence[str], as_json: bool
) -> None:
    """Labelled questions over documents and history of real projects, which pip and npm download: NDCG@10, MRR@10, Recall@10 by class."""
    from search_router.benchmark import knowledge_quality
    from search_router.benchmark.report import write_json

    result = run_blocking(lambda: knowledge_quality.run(archives, arms, flags, half=half, hints=hints))
    write_json(result) if as_json else knowledge_quality.print_figures(result)


@bench.command("docs")
@json_option
def bench_docs(as_json: bool) -> None:
    """Questions about the APIs of libraries that are installed here: how often the right symbol and version is among the first three."""
    from search_router.benchmark import docs
    from search_router.benchmark.timing import print_result

    print_result(docs.run(), as_json)


@bench.command("flywheel")
@click.option("--root", type=FOLDER, default=".", help="A checkout, which is copied.")
@click.option("--questions", type=click.IntRange(4, 10_000), default=200, show_default=True)
@click.option("--edits", type=click.IntRange(0, 1000), default=10, show_default=True, help="Files that change between the passes.")
@click.option("--during", type=click.IntRange(1, 1000), default=10, show_default=True, help="Parts of the second pass, an edit after each.")
@click.option("--seed", type=int, default=7, show_default=True)
@set_option
@json_option
def bench_flywheel(root: Path, questions: int, edits: int, during: int, seed: int, flags: Sequence[str], as_json: bool) -> None:
    """Questions asked twice with edits in between: calls saved by cache and hints, nDCG@10, stale items. Exit code 1 when a line fails."""
    from search_router.benchmark import flywheel
    from search_router.benchmark.timing import print_result

    result = run_blocking(lambda: flywheel.run(root, questions, edits, during, seed, flags))
    print_result(result, as_json)
    sys.exit(0 if flywheel.verdict(result) else 1)


@bench.command("bandit")
@click.option("--sessions", type=click.IntRange(1, 10_000), default=40, show_default=True)
@click.option("--seed", type=int, default=7, show_default=True)
@set_option
@json_option
def bench_bandit(sessions: int, seed: int, flags: Sequence[str], as_json: bool) -> None:
    """The session bandit in a simulation whose best expert changes, and against liars. Exit code 1 when regret does not fall by half."""
    from search_router.benchmark import session_bandit
    from search_router.benchmark.timing import print_result

    result = session_bandit.run(load_or_die((), flags).config, sessions, seed)
    print_result(result, as_json)
    sys.exit(0 if session_bandit.verdict(result) else 1)
