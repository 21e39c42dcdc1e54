"""Tables about the machine, the sparsifier and streams."""

from __future__ import annotations

import numpy as np

from benchmarks import machine
from benchmarks.results import Results, digits, ending, memory, seconds, table

FORMS = {"arrow": "Arrow", "csv": "CSV", "ndjson": "NDJSON"}


def machine_table(results: Results) -> str:
    """The machine, the installed packages, and the time that each suite took."""
    machines, ends = results.machines(), results.ends()
    if not machines:
        return "Not recorded."
    first = next(iter(machines.values()))
    rows = [
        ["processor", f"{first['cpu']}, {first['cores']} cores"],
        ["memory", f"{first['memory_gib']:g} GiB"],
        ["system", first["os"]],
        ["Python", first["python"]],
    ]
    for name in (*machine.OWN, *machine.PEERS):
        kind = machine.PEERS.get(name)
        suites = [m for s, m in machines.items() if kind is None or s in machine.SUITES[kind]]
        found = sorted({m["packages"].get(name, "**missing**") for m in suites})
        if found:
            rows.append([name, ", ".join(found) + (f" ({kind})" if kind else "")])
    took = [
        [
            name,
            m["form"],
            f"{ends[name]['wall_s'] / 60:.1f} min",
            m.get("commit", ""),
            f"{ends[name]['others']:g}" if "others" in ends[name] else f"load {m['load']:g}",
        ]
        for name, m in machines.items()
        if name in ends
    ]
    parts = [
        table(["", ""], rows),
        table(["suite", "form", "took", "commit", "cores used by others"], took),
    ]
    keys = ("cpu", "cores", "memory_gib", "python")
    other = [name for name, m in machines.items() if any(m[key] != first[key] for key in keys)]
    if other:
        parts.append(f"These suites ran on another machine: {', '.join(other)}.")
    return "\n\n".join(parts)


def pass_table(results: Results) -> str:
    """A pass over the paper's graph compared with scipy's conversion, and the edges kept."""
    rows = [
        [f["way"], f"{f['n_edges']:,}", seconds(f["cpu_s"])]
        for f in results.figures("sparsifier", case="paper")
        if "user_s" in f
    ]
    text = table(["", "edges", "CPU"], rows)
    seen = results.one("sparsifier", case="paper", way="certificate")
    if seen:
        text += (
            f"\n\nThe sparsifier keeps {seen['rows_share']:.2%} of the edges. `certify` estimates "
            f"epsilon as {seen['epsilon']:.2f} and bounds it by {seen['epsilon_bound']:.2f}."
        )
    return text


def memory_table(results: Results) -> str:
    """Memory and cost per edge for longer and longer streams."""
    rows = [
        [f"{f['n_nodes']:,}", f"{f['n_edges']:,}", f"{f['ns_per_edge']:.0f}",
         memory(f["rss_peak_mib"])]
        for f in results.figures("sparsifier")
        if f["case"] in ("flat", "million") and "rss_peak_mib" in f
    ]  # fmt: skip
    return table(["nodes", "edges", "CPU ns per edge", "peak memory of the process"], rows)


def hindsight_table(results: Results) -> str:
    """Measured epsilon at equal rows, for each family of graphs."""
    figures = results.figures("hindsight")
    rows = []
    for family in dict.fromkeys(f["family"] for f in figures):
        chosen = [f for f in figures if f["family"] == family]
        means = [
            f"{np.mean([f['epsilon_' + way] for f in chosen]):.3f}"
            for way in ("stream", "merged", "exact", "uniform")
        ]
        apart = sum(f["disconnected"]["uniform"] for f in chosen)
        rows.append([family, *means, f"{apart} of {sum(f['seeds'] for f in chosen)}"])
    header = ["family", "one pass", "eight merged", "one-shot, exact resistances", "uniform",
              "uniform disconnected"]  # fmt: skip
    return table(header, rows)


def stream_table(results: Results) -> str:
    """Speed of reading, compared with plain reading."""
    rows = []
    for f in results.figures("streams"):
        cells = ["", "", ending(f)]
        if "cpu_s" in f:
            ratio = f"{f['times_peer']:.2f}" if "times_peer" in f else ""
            speed = f"{digits(1e3 / f['ns_per_edge'])} M edges/s"
            cells = [speed, memory(f["rss_growth_mib"]), ratio]
        rows.append([f["case"], f.get("what", ""), *cells])
    return table(["source", "", "speed", "memory", "CPU time / peer's"], rows)


def neighbors_table(results: Results) -> str:
    """Time and memory of exact neighbours, beside scikit-learn's."""
    rows = []
    for ours in results.figures("neighbors", package="ohmlearn"):
        case = {key: ours[key] for key in ("set", "dtype", "threads")}
        peer = results.one("neighbors", package="scikit-learn", **case)
        points = f"{ours['points']:,} × {ours['features']}"
        cells = [f"{ours['set']}, {points}", ours["dtype"], str(ours["threads"])]
        if "cpu_s" in ours and "cpu_s" in peer:
            ratio = f"{ours['cpu_s'] / peer['cpu_s']:.2f}"
            times = [seconds(ours["cpu_s"]), seconds(peer["cpu_s"]), ratio]
            sizes = [memory(figure["rss_growth_mib"]) for figure in (ours, peer)]
            rows.append([*cells, *times, *sizes])
        else:
            rows.append([*cells, ending(ours), ending(peer), "", "", ""])
    header = ["points", "type", "threads", "CPU time", "scikit-learn", "ratio", "memory",
              "scikit-learn"]  # fmt: skip
    return table(header, rows)


def smoothing_table(results: Results) -> str:
    """Time, memory and error of smoothing, by method."""
    rows = []
    for f in results.figures("smoothing"):
        cells = [f["graph"], f"{f['nodes']:,}", f"{f['edges']:,}", str(f["columns"])]
        cells += [f["method"], str(f["threads"])]
        if "cpu_s" in f:
            error = f"{f['error']:.0e}" if "error" in f else ""
            cells += [seconds(f["wall_s"]), seconds(f["cpu_s"]), memory(f["rss_growth_mib"]), error]
        else:
            cells += [ending(f), "", "", ""]
        rows.append(cells)
    header = ["graph", "nodes", "edges", "columns", "", "threads", "by the clock", "CPU time",
              "memory", "error"]  # fmt: skip
    return table(header, rows)


def edge_log_table(results: Results) -> str:
    """Speed of a log of edges, beside reading Parquet."""
    rows = []
    for f in results.figures("edge_log"):
        if f["what"] == "append one edge":
            rows.append([f["case"], f["what"], f"{f['per_s']:.0f} per second", "", ""])
            continue
        ratio = f"{f['times_parquet']:.1f}" if "times_parquet" in f else ""
        speeds = [f"{digits(f[name])} M/s" for name in ("million_per_s", "million_per_cpu_s")]
        rows.append([f["case"], f["what"], *speeds, ratio])
    return table(["columns", "", "edges by the clock", "by CPU time", "times Parquet"], rows)


def serve_ingest_table(results: Results) -> str:
    """Edges per second over HTTP, by form of the body."""
    rows = []
    for f in results.figures("serve", case="ingest"):
        ids = "texts" if f["ids"] == "string" else "integers"
        speed = f"{digits(f['edges_per_s'] / 1e6)} M/s"
        cpu = f"{1e9 * f['server_cpu_s'] / f['edges']:.0f} ns"
        rows.append([FORMS[f["form"]], ids, f"{f['edges']:,}", speed, cpu, memory(f["rss_mib"])])
    header = ["body", "ids", "edges", "edges, durable", "CPU time of the server per edge", "memory"]
    return table(header, rows) if rows else "Not recorded."


def serve_lookup_sentence(results: Results) -> str:
    """How long a look-up takes while edges arrive."""
    f = results.one("serve", case="lookup")
    if not f:
        return "Not recorded."
    times = [f"{f[name]:.1f} ms" for name in ("p50_ms", "p99_ms", "max_ms")]
    return (
        f"Of {f['lookups']:,} look-ups while {digits(f['edges_per_s'] / 1e6)} million edges per "
        f"second arrived and labels were computed {f['answers']} times, half took less than "
        f"{times[0]}, 99% less than {times[1]}, and the slowest {times[2]}."
    )


def serve_memory_table(results: Results) -> str:
    """Memory of the server while edges arrive."""
    rows = [
        [f"{f['edges']:,}", memory(f["rss_mib"]), memory(f["peak_mib"]), f"{f['rows']:,}",
         memory(f["disk_mib"])]
        for f in results.figures("serve", case="memory")
    ]  # fmt: skip
    header = ["edges", "memory", "peak so far", "kept edges", "disk"]
    return table(header, rows) if rows else "Not recorded."


def stream_losses(results: Results) -> list[str]:
    """List the cases where plain reading or plain storing is faster."""
    lines = []
    slower = [
        f"{f['what']} of {f['case']} takes {f['times_peer']:.1f} times the CPU time of {f['peer']}"
        for f in results.figures("streams")
        if f.get("times_peer", 0) > 1.05 and "sparsifier" not in f["what"]
    ]
    if slower:
        lines.append(f"Streams: {'; '.join(slower)}.")
    for order in ("", ", shuffled"):
        ours, peer = (
            results.one("sparsifier", case="paper", way=way + order)
            for way in ("stream", "scipy float64")
        )
        if "cpu_s" in ours and "cpu_s" in peer and peer["cpu_s"] < ours["cpu_s"]:
            lines.append(
                f"Sparsifier: scipy stores the paper's graph{order} in {seconds(peer['cpu_s'])}; a "
                f"pass takes {seconds(ours['cpu_s'])}."
            )
    for peer in results.figures("smoothing"):
        case = {key: peer[key] for key in ("graph", "nodes", "edges", "columns")}
        ours = results.one("smoothing", method="ohmlearn", threads=1, **case)
        if peer["method"] != "ohmlearn" and peer.get("cpu_s", np.inf) < ours.get("cpu_s", 0.0):
            lines.append(
                f"Smoothing on the {peer['graph']} graph: {peer['method']} takes "
                f"{seconds(peer['cpu_s'])} for an error of {peer['error']:.0e}, ours "
                f"{seconds(ours['cpu_s'])} for {ours['error']:.0e}."
            )
    return lines
