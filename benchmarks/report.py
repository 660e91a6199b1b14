"""A result as a table."""

from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from benchmarks.result import Result, median, spread


def show(console: Console, result: Result) -> None:
    """Print one result."""
    size = " (short: smaller sizes)" if result.short else ""
    console.print(
        Panel(
            Group(_verdicts(result), _rounds(result), _facts(result)),
            title=f"{result.name}{size}",
            title_align="left",
        )
    )


def _verdicts(result: Result) -> Text:
    text = Text()
    for bar in result.bars:
        text.append("holds  " if bar.holds else "fails  ", "green" if bar.holds else "bold red")
        text.append(f"{bar}\n")
    return text


def _rounds(result: Result) -> Table:
    table = Table(title=result.rounds_of, title_justify="left", box=None, pad_edge=False)
    table.add_column("")
    for number in range(max(len(values) for values in result.rounds.values())):
        table.add_column(f"round {number + 1}", justify="right")
    table.add_column("median", justify="right", style="bold")
    table.add_column("spread", justify="right")
    for side, values in result.rounds.items():
        numbers = [_number(value) for value in (*values, median(values))]
        table.add_row(side, *numbers, f"{spread(values):.0%}")
    table.add_section()
    table.add_row(Text(f"{result.ratio_of}: {result.ratio:.2f}"))
    return table


def _facts(result: Result) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    for name, value in result.figures.items():
        table.add_row(name, value if isinstance(value, str) else _number(value))
    for name, size in result.sizes.items():
        table.add_row(name.replace("_", " "), _number(size))
    table.add_row("engines", ", ".join(f"{name} {text}" for name, text in result.engines.items()))
    return table


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.4g}"
