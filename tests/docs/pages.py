"""The pages of documentation: their links, their fenced blocks, their parts made from the code."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!-- ((?:(?!-->).)+) -->\n+\Z")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
_NEEDS = re.compile(r"<!-- page: (.+?) -->")
_MADE = re.compile(r"(<!-- made: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block; `note` is the comment on the line before it, which readers don't see."""

    line: int
    language: str
    text: str
    note: str


@dataclass(frozen=True, slots=True)
class Page:
    """One Markdown file."""

    path: Path

    @property
    def name(self) -> str:
        """The path as people write it, from the root of the repository."""
        return os.path.relpath(self.path, ROOT)

    @property
    def text(self) -> str:
        """All of it."""
        return self.path.read_text(encoding="utf-8")

    def blocks(self) -> Iterator[Block]:
        """The fenced blocks, in order."""
        text = self.text
        for found in _FENCE.finditer(text):
            before = text[: found.start()]
            note = _COMMENT.search(before)
            yield Block(
                line=before.count("\n") + 1,
                language=found[1],
                text=found[2],
                note=note[1] if note else "",
            )

    def needs(self) -> set[str]:
        """What the page stands on, by its comment `page: ...`."""
        found = _NEEDS.search(self.text)
        return set(found[1].split()) if found else set()

    def prose(self) -> str:
        """The text without what stands in fences."""
        return _FENCE.sub("", self.text)

    def links(self) -> list[str]:
        """The targets of all links, as written."""
        return _LINK.findall(self.prose())

    def anchors(self) -> set[str]:
        """What a link to a part of this page may name."""
        return {_anchor(heading) for heading in _HEADING.findall(self.prose())}

    def first_cells(self, heading: str | None = None) -> list[str]:
        """The code words in the first column of every table, or of those below one heading."""
        lines = self.text.splitlines()
        if heading is not None:
            start = lines.index(heading)
            level = heading.partition(" ")[0]
            ends = (
                at
                for at in range(start + 1, len(lines))
                if re.match(rf"#{{1,{len(level)}}} ", lines[at])
            )
            lines = lines[start : next(ends, len(lines))]
        return [found[1] for line in lines if (found := re.match(r"\| `([^`]+)`", line))]

    def made(self) -> list[str]:
        """What the parts made from the code hold, by their names."""
        return [found[2] for found in _MADE.finditer(self.text)]

    def with_made(self, make: dict[str, str]) -> str:
        """The text with every made part as `make` gives it, by name."""
        return _MADE.sub(lambda found: f"{found[1]}\n{make[found[2]]}\n{found[3]}", self.text)


def pages() -> list[Page]:
    """Every page of this repository."""
    return [
        Page(path)
        for path in (
            ROOT / "README.md",
            ROOT / "CHANGELOG.md",
            *sorted((ROOT / "docs").rglob("*.md")),
        )
    ]


def page(name: str) -> Page:
    """One page, by its path from the root."""
    return Page(ROOT / name)


def _anchor(heading: str) -> str:
    # As GitHub does it: lower case, no punctuation, a hyphen for each space.
    return re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).replace(" ", "-")
