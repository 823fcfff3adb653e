"""Formatting of the results that benchmarks print."""

import statistics


def brief(result):
    if "failed" in result:
        return f"failed: {result['failed']}"
    time_s = result.get("time", result.get("wall"))
    return f"{result['goodput']:.0f} Mbit/s" + (f", {time_s:.2f} s" if time_s else "")


def spread(values, digits):
    middle = statistics.median(values)
    if len(values) == 1:
        return f"{middle:.{digits}f}"
    return f"{middle:.{digits}f} ({min(values):.{digits}f}..{max(values):.{digits}f})"


def span(values):
    if not values:
        return ""
    return str(min(values)) if min(values) == max(values) else f"{min(values)}..{max(values)}"


def plural(count):
    return "1 receiver" if count == 1 else f"{count} receivers"


def mega(size):
    return f"{size // 1_000_000} MB" if size >= 1_000_000 else f"{size // 1000} kB"


def failures(title, runs):
    """Returns a line about the failed runs in a list; an empty list if none failed."""
    failed = [one["failed"] for one in runs if "failed" in one]
    return [f"{title}: {len(failed)} of {len(runs)} failed: {' '.join(failed[0].split())[:100]}"] if failed else []


def good_ones(runs):
    return [one for one in runs if "failed" not in one]


def grid(columns, lines):
    rows = [[title for title, _ in columns], *[[str(cell) for cell in line] for line in lines]]
    widths = [max(len(row[n]) for row in rows) for n in range(len(columns))]
    text = ("  ".join(f"{cell:{align}{width}}" for cell, (_, align), width in zip(row, columns, widths)) for row in rows)
    return "\n".join(f"  {line.rstrip()}" for line in text)
