"""The command ``python -m benchmarks app``: what people wait for, beside the search itself.

A lake of made-up names is indexed and served by a process of its own. A browser pastes tables and
moves a slider, and tells how long each page and list was on its way; the same search is run in turn
by the service, in the process that measures.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.origin import environment_with_this_code
from benchmarks.report import RESULTS, write_result

SYLLABLES = "ba do ki lo mu ne pa ri so tu va ze gal mon ter vin"
STARTS = 5
"""Servers that are started to measure the first page; the last of them is asked the rest."""

ROWS = 1000
"""Of each table of the lake, and of those that are pasted."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

DOMAINS, NAMES = 5, 1200
"""Lists of names that tables draw from, and names of each: columns of one list join."""


def write_lake(folder: Path, n_values: int, seed: int) -> np.ndarray:
    """Write tables of `ROWS` names each; return the names (DOMAINS, NAMES)."""
    draws = np.random.default_rng(seed)
    parts = draws.choice(SYLLABLES.split(), (2 * DOMAINS * NAMES, 5))
    every = list(dict.fromkeys(f"{''.join(one[:3])} {''.join(one[3:])}" for one in parts))
    names = np.array(every[: DOMAINS * NAMES]).reshape(DOMAINS, NAMES)
    folder.mkdir(parents=True)
    for number in range(max(1, n_values // ROWS)):
        table = own_table(draws, names[number % DOMAINS])
        (folder / f"table{number}.csv").write_text(table, encoding="utf-8")
    return names


def own_table(draws: np.random.Generator, names: np.ndarray) -> str:
    """Return a table of `ROWS` of some names."""
    rows = (f"{name},{at}" for at, name in enumerate(draws.choice(names, ROWS, replace=False)))
    return "\n".join(["name,number", *rows, ""])


@contextmanager
def serving(index: Path) -> Iterator[tuple[str, float]]:
    """Serve an index; give the link, and the moment at which the process was begun."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "pexeso", "serve", str(index), "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        env=environment_with_this_code(),
    )
    try:
        if process.stderr is None:
            raise click.ClickException("The server says nothing.")
        token_line = next((line for line in process.stderr if "token=" in line), "")
        if not token_line:
            raise click.ClickException("The server ended before it answered.")
        yield next(word for word in token_line.split() if "token=" in word), started
    finally:
        process.terminate()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


@contextmanager
def a_page() -> Iterator[Any]:
    """Start Chromium without a window; give a page of it."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        raise click.ClickException(f"There is no browser here (one of {', '.join(BROWSERS)}).")
    with sync_playwright() as driver:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []  # root's browser has none
        browser = driver.chromium.launch(executable_path=path, args=arguments)
        try:
            yield browser.new_page()
        finally:
            browser.close()


SLIDE = """(value) => new Promise((answered) => {
  const slider = document.getElementById("max_distance");
  const begun = performance.now();
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.requestConfig.elt.tagName === "FORM")
      answered((performance.now() - begun) / 1000);
  }, { signal: AbortSignal.timeout(60000) });
  slider.value = value;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
})"""
"""Move the slider; the seconds until the new list stands in the page."""

LOADED = """() => performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd / 1000"""
"""Seconds from the click that led to a page to what a person can read and use."""


def measured(index: Path, names: np.ndarray, rounds: int, seed: int) -> dict[str, Any]:
    """Ask in a browser and by the service in turn, `rounds` times; return milliseconds, ratios."""
    from pexeso.service.requests import SearchRequest
    from pexeso.service.verbs import Service

    draws = np.random.default_rng(seed)
    service = Service(keep_open=True)
    with tempfile.TemporaryDirectory() as folder, a_page() as page:
        table_path = Path(folder) / "own.csv"
        table_path.write_text(own_table(draws, names[0]), encoding="utf-8")
        times: dict[str, list[float]] = {"first_page": []}

        def opened(link: str, started: float) -> str:
            page.goto(link, wait_until="domcontentloaded")
            times["first_page"].append(time.perf_counter() - started)
            return page.url

        for _ in range(STARTS - 1):
            with serving(index) as served:
                opened(*served)
        with serving(index) as served:
            first = opened(*served)

            def pasted() -> float:
                page.goto(first)
                page.fill("#text", own_table(draws, names[1]))
                page.get_by_role("button", name="Choose a column").click()
                column = page.get_by_role("link", name="name", exact=True)
                column.wait_for()
                page.wait_for_load_state()
                seconds = page.evaluate(LOADED)
                column.click()
                page.locator("#found").wait_for()
                page.wait_for_load_state()
                return seconds + page.evaluate(LOADED)

            pasted()

            def slid(distance: float) -> float:
                page.locator("#found tbody svg").first.wait_for()  # the page is at rest
                return page.evaluate(SLIDE, f"{distance:.2f}")

            def searched(distance: float) -> float:
                begun = time.perf_counter()
                service.run(
                    SearchRequest.of(
                        index=str(index),
                        query=f"{table_path}:#0",
                        max_distance=distance,
                        min_joinability=0.6,
                    )
                )
                return time.perf_counter() - begun

            ways = {"search": searched, "slider": slid, "paste": lambda distance: pasted()}
            for number in range(rounds + 2):  # the first two compile and fill caches
                distance = round(0.05 + 0.3 * (number % 17) / 17, 2)
                for name, way in ways.items():
                    seconds = way(distance)
                    if number > 1:
                        times.setdefault(name, []).append(seconds)
    return summary_of(times)


def summary_of(times: dict[str, list[float]]) -> dict[str, Any]:
    """Return the median and the 95 % quantile of seconds, and of ratios to the search."""
    result: dict[str, Any] = {
        name: {
            "median_ms": round(1000 * statistics.median(seconds), 1),
            "q95_ms": round(1000 * float(np.quantile(seconds, 0.95)), 1),
        }
        for name, seconds in times.items()
    }
    for name in ("slider", "paste"):
        if name in times:
            ratios = [one / other for one, other in zip(times[name], times["search"], strict=True)]
            result[f"{name}_over_search"] = {
                "median": round(statistics.median(ratios), 2),
                "q95": round(float(np.quantile(ratios, 0.95)), 2),
            }
    return result


@click.command("app", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--values", default=100_000, show_default=True, type=click.IntRange(ROWS * 2))
@click.option("--rounds", default=30, show_default=True, type=click.IntRange(1))
@click.option("--seed", default=0, show_default=True)
@click.option("--index", type=click.Path(path_type=Path), help="Keep the index, or use it again.")
@click.option("--write", is_flag=True, help="Keep the result in benchmarks/results.")
def app_command(values: int, rounds: int, seed: int, index: Path | None, write: bool) -> None:
    """Measure what people wait for in the app, as ratios to the search itself."""
    import torch

    from benchmarks.machine import describe_machine
    from pexeso.index import build_index

    with tempfile.TemporaryDirectory(prefix="pexeso-app-") as folder:
        names = write_lake(Path(folder) / "lake", values, seed)
        path = index or Path(folder) / "lake.pexeso"
        if not path.exists():
            build_index(Path(folder) / "lake", path)
        result = measured(path, names, rounds, seed)
    result |= {"values": values, "rounds": rounds, "pasted_rows": ROWS}
    for name, numbers in result.items():
        click.echo(f"{name}: {json.dumps(numbers)}")
    if write:
        result["machine"] = describe_machine(torch.device("cpu"))
        write_result(RESULTS / "app.json", result)
