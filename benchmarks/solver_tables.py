"""Tables and sentences about the solver and resistances."""

from __future__ import annotations

from benchmarks.measure import Figure
from benchmarks.results import Results, digits, ending, memory, seconds, table

GRAPHS = {
    "grid_1000x1000": "grid 1000²",
    "grid_100x100x100": "grid 100³",
    "knn10_random_order": "kNN, k = 10, random order",
    "preferential_attachment": "preferential attachment",
    "fem_wave": "finite elements in space, n = 156,317",
    "fem_wing": "dual of a mesh in space, n = 62,032",
    "fem_4elt": "finite elements in the plane, n = 15,606",
    "road_luxembourg_osm": "roads of Luxembourg, n = 114,599",
    "snap_email_enron": "e-mail, n = 33,696",
    "condmat2005_weighted": "co-authors, n = 36,458",
    "internet_as2006": "Internet, n = 22,963",
}
README_GRAPHS = ("grid_1000x1000", "knn10_random_order", "preferential_attachment")
SOLVERS = {
    "ohmlearn": "ohmlearn",
    "apxchol": "apxchol",
    "approx-chol": "approx-chol",
    "pyamg": "pyamg",
    "pyamgcl": "AMGCL",
}
FAIR = ("ok", "projected")
THREADED = (("ohmlearn", 1), ("ohmlearn", 16), ("apxchol", 1), ("pyamgcl", 1))


def total(figure: Figure) -> float:
    """Return the CPU seconds of set-up and solves."""
    return float(figure["setup_cpu_s"] + figure["solve_cpu_s"])


def short_name(graph: str) -> str:
    """Return the name of a graph without its size."""
    return GRAPHS.get(graph, graph).split(", n =")[0]


def graphs_of(results: Results) -> tuple[str, ...]:
    """Return all graphs of the solver benchmark."""
    return tuple(dict.fromkeys(f["graph"] for f in results.figures("solver")))


def solver_table(results: Results, graphs: tuple[str, ...] = ()) -> str:
    """CPU time of set-up plus one / sixteen right-hand sides, and memory, for each solver."""
    rows = []
    for graph in graphs or graphs_of(results):
        cells = [_solver_cell(results, graph, name) for name in SOLVERS]
        rows.append([GRAPHS.get(graph, graph), *cells])
    return table(["", *SOLVERS.values()], rows)


def _solver_cell(results: Results, graph: str, name: str) -> str:
    wanted = {"graph": graph, "solver": name, "threads": 1}
    one, many = (results.one("solver", **wanted, rhs=rhs) for rhs in (1, 16))
    if "solve_cpu_s" not in one:  # a missing solver has one line for all numbers of sides
        return ending(one or results.one("solver", **wanted))
    shown = [digits(total(f)) if "solve_cpu_s" in f else "–" for f in (one, many)]
    mark = "" if one["status"] in FAIR else " (target missed)"
    used = one["rss_peak_mib"] - one["rss_baseline_mib"]
    return f"{' / '.join(shown)} s, {memory(used)}{mark}"


def thread_table(results: Results) -> str:
    """Time by the clock on one thread and on two, of ours and of peers that use threads."""
    rows = []
    for graph in graphs_of(results):
        cells = [
            _threads_cell(results, graph=graph, solver=solver, rhs=rhs) for solver, rhs in THREADED
        ]
        if cells[0] and any(cells[2:]):
            rows.append([short_name(graph), *cells])
    if not rows:
        return "\nThe stored run does not include two threads."
    heads = [f"{SOLVERS[solver]}, {'sixteen' if rhs > 1 else 'one'}" for solver, rhs in THREADED]
    return table(["", *heads], rows)


def _threads_cell(results: Results, **wanted: object) -> str:
    both = [results.one("solver", **wanted, threads=threads) for threads in (1, 2)]
    if not all("solve_wall_s" in f and f["status"] in FAIR for f in both):
        return ""
    one, two = (f["setup_wall_s"] + f["solve_wall_s"] for f in both)
    return f"{seconds(one)}, {seconds(two)}: {one / two:.2f}"


def solver_losses(results: Results) -> list[tuple[float, Figure, Figure]]:
    """Return the cases where a peer took less CPU time: ratio, its figure, ours; largest first."""
    found = []
    for f in results.figures("solver", threads=1):
        if f.get("solver") in (None, "ohmlearn") or f["status"] not in FAIR:
            continue
        ours = results.one("solver", graph=f["graph"], solver="ohmlearn", threads=1, rhs=f["rhs"])
        if "solve_cpu_s" in ours and total(f) < total(ours):
            found.append((total(ours) / total(f), f, ours))
    return sorted(found, key=lambda loss: -loss[0])


def loss_sentence(results: Results) -> str:
    """Return a sentence about the cases where a peer is faster."""
    losses = solver_losses(results)
    if not losses:
        return "No peer is faster on any of these graphs."
    parts = []
    for rhs, title in ((1, "With one right-hand side"), (16, "With sixteen")):
        where: dict[str, list[str]] = {}
        for _, f, _ in losses:
            if f["rhs"] == rhs:
                name = SOLVERS.get(f["solver"], "scipy's CG")
                where.setdefault(name, []).append(short_name(f["graph"]))
        parts.append(f"{title}, {_list_faster(where)}.")
    ratio, f, ours = losses[0]
    return (
        f"{' '.join(parts)} The largest ratio is {ratio:.1f}: "
        f"{seconds(total(f))} compared with {seconds(total(ours))} for ohmlearn."
    )


def _list_faster(where: dict[str, list[str]]) -> str:
    """Name the peers that are faster, and the graphs on which they are.

    Examples
    --------
    >>> _list_faster({"pyamg": ["e-mail", "Internet"], "AMGCL": ["grid 1000²"]})
    'pyamg is faster on 2 graphs (e-mail, Internet), AMGCL on 1 (grid 1000²)'
    """
    named = []
    for name, graphs in where.items():
        verb = "" if named else " is faster"
        noun = "" if named else " graph" + "s" * (len(graphs) > 1)
        named.append(f"{name}{verb} on {len(graphs)}{noun} ({', '.join(graphs)})")
    return ", ".join(named) or "no peer is faster"


def readme_sentences(results: Results) -> str:
    """Return the text below the table in the README."""
    return "\n".join([loss_sentence(results), resistance_sentence(results)])


def resistance_sentence(results: Results) -> str:
    """Compare ours with NetworKit on the 300² grid."""
    ours, peer = (
        results.one("resistance", graph="grid_300x300", solver=name)
        for name in ("ohmlearn", "networkit")
    )
    if "cpu_s" not in ours or "cpu_s" not in peer:
        return ""
    return (
        f"Resistances of all edges of a 300² grid take {seconds(ours['cpu_s'])} with a mean error "
        f"of {ours['error_mean']:.1%}. NetworKit takes {seconds(peer['cpu_s'])} with a mean error "
        f"of {peer['error_mean']:.1%}."
    )


def resistance_table(results: Results) -> str:
    """All grids and tools."""
    rows = []
    for f in results.figures("resistance"):
        cells = ["", "", "", ending(f)]
        if "cpu_s" in f:
            used = f["rss_peak_mib"] - f["rss_baseline_mib"]
            cells = [seconds(f["cpu_s"]), f"{f['error_mean']:.1%}", f"{f['error_q95']:.1%}"]
            cells.append(memory(used))
        grid = f["graph"].removeprefix("grid_").replace("x", " × ")
        rows.append([grid, f"{f['solver']}, {f['asked'].removeprefix('--')}", *cells])
    return table(["grid", "", "CPU", "mean error", "95% quantile", "memory"], rows)
