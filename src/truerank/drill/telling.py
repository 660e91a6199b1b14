"""A drill as people read it: what was done, what was seen, which promises were kept."""

from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from truerank.drill.play import Drill
from truerank.drill.story import ActResult, Check, SideBySide

_INDENT = 3
_WIDTH_MAX = 88  # lines of text that are longer are hard to read


class Told:
    """Writes everything to a terminal, or to whatever stands in its place, as it happens.

    Args:
        console: where to write; colours and width are its own affair.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._console.width = min(console.width, _WIDTH_MAX)
        # A terminal that can't show the signs gets words.
        fancy = console.encoding.lower().startswith("utf")
        self._kept, self._broken = ("✓", "✗") if fancy else ("ok", "FAILED")
        self._asked = "→" if fancy else ">"

    def opening(self, postgres_version: str, valkey_version: str) -> None:
        """Say what it is played on."""
        self._line(
            Text.assemble(
                ("truerank drill", "bold"),
                f" on a PostgreSQL {postgres_version} and a {valkey_version} of its own, in a"
                " temporary folder. Nothing else is touched.",
            ),
            indent=0,
        )

    def broken(self, kind: str, about: str) -> None:
        """Say that something is broken on purpose."""
        text = f"Broken on purpose, {kind}: {about}. An act that notices says {self._broken}."
        self._line(Text(text, style="yellow"), indent=0)

    def begins(self, number: int, act: ActResult) -> None:
        """See `Teller`."""
        self._console.print()
        title = Text.assemble((f"{number}  {act.title}", "bold"), f"  {act.name}")
        self._console.print(
            Rule(title, align="left", style="dim", characters="-" if self._plain else "─")
        )

    @property
    def _plain(self) -> bool:
        return self._kept == "ok"

    def did(self, text: str) -> None:
        """See `Teller`."""
        words, _, output = text.partition("\n")
        self._line(Text(f"{words}" if output else f"{words}."))
        if output:
            self._line(Text(output, style="bold"), indent=_INDENT + 2)

    def saw(self, text: str) -> None:
        """See `Teller`."""
        self._line(Text(f"{self._asked} a reader got {text}", style="cyan"), hang=2)

    def compared(self, sides: SideBySide) -> None:
        """See `Teller`."""
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 3, 0, 0))
        table.add_column("member")
        table.add_column("PostgreSQL", justify="right")
        table.add_column("Redis", justify="right")
        for member, score in sides.source.items():
            shown = sides.projection[member]
            style = "green" if shown == score else "yellow"
            table.add_row(member, score or "-", Text(shown or "-", style=style))
        self._console.print(Padding(table, (0, 0, 0, _INDENT + 2), expand=False))

    def checked(self, check: Check) -> None:
        """See `Teller`."""
        sign, style = (self._kept, "green") if check.kept else (self._broken, "bold red")
        text = Text.assemble((sign, style), " ", (check.promise, "" if check.kept else "red"))
        if check.found:
            text.append(f"  ({check.found})", style="dim" if check.kept else "red")
        self._line(text, hang=len(sign) + 1)

    def ends(self, act: ActResult) -> None:
        """See `Teller`."""
        whole = act.whole_after_ms
        words = "" if whole is None else f"whole again after {whole / 1000:.1f} s; "
        self._line(Text(f"{words}the act took {act.duration_ms / 1000:.1f} s", style="dim"))

    def ending(self, drill: Drill) -> None:
        """Say what it comes to."""
        self._console.print()
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 3, 0, 0))
        table.add_column("")
        table.add_column("act")
        table.add_column("checks", justify="right")
        table.add_column("whole after", justify="right")
        for act in drill.acts:
            sign, style = (self._kept, "green") if act.passed else (self._broken, "bold red")
            kept = sum(check.kept for check in act.checks)
            whole = "-" if act.whole_after_ms is None else f"{act.whole_after_ms / 1000:.1f} s"
            table.add_row(Text(sign, style=style), act.title, f"{kept} of {len(act.checks)}", whole)
        self._console.print(table)
        self._console.print()
        failed = sum(not act.passed for act in drill.acts)
        took = f"in {drill.duration_ms / 1000:.0f} s"
        if failed:
            text = Text(f"{failed} of {len(drill.acts)} acts failed, {took}", style="bold red")
        else:
            many = "The act" if len(drill.acts) == 1 else f"All {len(drill.acts)} acts"
            text = Text(f"{many} passed, {took}", style="bold green")
        self._line(text, indent=0)

    def _line(self, text: Text, *, indent: int = _INDENT, hang: int = 0) -> None:
        """Write a text in lines that begin below each other, the further ones after `hang`."""
        width = max(20, self._console.width - indent - hang)
        for number, line in enumerate(text.wrap(self._console, width)):
            line.rstrip()
            lead = " " * (indent + (hang if number else 0))
            self._console.print(Text(lead).append_text(line), soft_wrap=True, highlight=False)
