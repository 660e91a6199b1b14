"""Questions about rankings, and about the pipeline."""

from collections.abc import Iterable

from truerank.command import board as boards
from truerank.model import Numbering, Page, PageRequest, Source, Token
from truerank.operations.base import Base
from truerank.read.status import Status, status
from truerank.read.waiting import wait_visible
from truerank.steps import Steps


class Reading(Base):
    """Answers with their age."""

    def top(
        self,
        board: str,
        season: str | None = None,
        *,
        limit: int = 10,
        offset: int = 0,
        member: str | None = None,
        around_limit: int = 5,
        numbering: Numbering | str = Numbering.COMPETITION,
        source: Source | str | None = None,
    ) -> Steps[Page]:
        """The first places, and beside them the place and neighbourhood of one member.

        Args:
            board: the board's key.
            season: a label; None: `all` where the board has it, else the current season.
            limit: rows, 0 to 1000.
            offset: rows passed over, from 0.
            member: whose place and neighbourhood come in the same answer, from one snapshot.
            around_limit: rows of the neighbourhood; never more than the board has.
            numbering: `competition` 1224 or `ordinal` 1234.
            source: insist on the projection or the database.
        """
        request = PageRequest(
            offset=offset,
            limit=limit,
            members=() if member is None else (member,),
            around=member,
            around_limit=around_limit,
            numbering=boards.choice(Numbering, numbering, "numbering"),
        )
        return (yield from self._page(board, season, request, source))

    def around(
        self,
        board: str,
        member: str,
        season: str | None = None,
        *,
        limit: int = 11,
        numbering: Numbering | str = Numbering.COMPETITION,
        source: Source | str | None = None,
    ) -> Steps[Page]:
        """The neighbourhood of a member in `around`, its place in `places`.

        The window has `limit` rows at both ends of the board too, unless the board is smaller;
        it is empty where the member has no place.
        """
        request = PageRequest(
            members=(member,),
            around=member,
            around_limit=limit,
            numbering=boards.choice(Numbering, numbering, "numbering"),
        )
        return (yield from self._page(board, season, request, source))

    def places(
        self,
        board: str,
        members: Iterable[str],
        season: str | None = None,
        *,
        numbering: Numbering | str = Numbering.COMPETITION,
        source: Source | str | None = None,
    ) -> Steps[Page]:
        """The places of up to 1000 members, from one snapshot, in the order asked."""
        request = PageRequest(
            members=tuple(members), numbering=boards.choice(Numbering, numbering, "numbering")
        )
        return (yield from self._page(board, season, request, source))

    def place(
        self,
        board: str,
        member: str,
        season: str | None = None,
        *,
        numbering: Numbering | str = Numbering.COMPETITION,
        source: Source | str | None = None,
    ) -> Steps[Page]:
        """The place of one member, as the only one of `places`."""
        return (
            yield from self.places(board, (member,), season, numbering=numbering, source=source)
        )

    def wait_visible(
        self, token: Token, boards: Iterable[str], *, timeout_s: float = 10.0
    ) -> Steps[None]:
        """Wait until the projection shows the write behind a token, on all of these boards.

        Raises:
            NotVisibleYet: it took longer than `timeout_s`. The write is committed all the same.
        """
        groups = set()
        for key in boards:
            board, _ = yield from self._answers.board(key)
            groups.add(board.group)
        yield from wait_visible(groups, token, prefix=self._prefix, timeout_s=timeout_s)

    def status(self) -> Steps[Status]:
        """One look at both stores: what waits, who works, how far the copies are."""
        return (yield from status(self._prefix))

    def _page(
        self, board: str, season: str | None, request: PageRequest, source: Source | str | None
    ) -> Steps[Page]:
        insisted = None if source is None else boards.choice(Source, source, "source")
        return (yield from self._answers.page(board, season, request, source=insisted))
