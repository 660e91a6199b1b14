"""Questions about rankings, and about the pipeline."""

from collections.abc import Iterable
from datetime import datetime

from truerank.command import board as boards
from truerank.errors import InvalidInput
from truerank.model import Consistency, Numbering, Page, PageRequest, Source, Token
from truerank.operations.asking import Asking
from truerank.paging import check_slice
from truerank.read.answers import ANY
from truerank.read.cohorts import in_cohort
from truerank.read.status import Status, status
from truerank.read.waiting import wait_visible
from truerank.steps import Steps


class Reading(Asking):
    """Answers with their age."""

    def top(
        self,
        board: str,
        season: str | None = None,
        *,
        limit: int = 10,
        offset: int = 0,
        cursor: str | None = None,
        member: str | None = None,
        around_limit: int = 5,
        names: bool = False,
        numbering: Numbering | str = Numbering.COMPETITION,
        consistency: Consistency | str = ANY,
        source: Source | str | None = None,
        cohort: int | None = None,
        cohort_of: str | None = None,
        as_of: datetime | None = None,
        since: datetime | None = None,
    ) -> Steps[Page]:
        """The first places, and beside them the place and neighbourhood of one member.

        Args:
            board: the board's key.
            season: a label; None: `all` where the board has it, else the season that is current, or
                was at `as_of`.
            limit: rows, 0 to 1000.
            offset: rows passed over, from 0.
            cursor: `next` or `previous` of a page: the rows after it, or before it. Members who
                don't move meanwhile are neither repeated nor left out.
            member: whose place and neighbourhood come in the same answer, from one snapshot.
            around_limit: rows of the neighbourhood; never more than the board has. Those that the
                page itself shows are left out of it.
            names: also say who the members are: their names and public details, where PostgreSQL
                answers or this client asked it within seconds.
            numbering: `competition` 1224, `ordinal` 1234 or `dense` 1223. The projection keeps
                the last only where the board asks for it; else PostgreSQL answers.
            consistency: how fresh the answer must be: a `Consistency`, or the name of one that
                needs nothing more: `any`, `authoritative`, `settled`.
            source: insist on the projection or the database.
            cohort: only this cohort of the season, by its number.
            cohort_of: or the cohort that this member is in.
            as_of: the board as it stood at this instant, which is not to come: an aware time. Then,
                and with `since`, PostgreSQL answers from the history, and there are no cursors.
            since: an earlier instant: each row also says its rank back then.
        """
        request = PageRequest(
            offset=offset,
            limit=limit,
            cursor=cursor,
            members=() if member is None else (member,),
            around=member,
            around_limit=around_limit,
            numbering=boards.choice(Numbering, numbering, "numbering"),
            as_of=as_of,
            since=since,
        )
        return self._asked(
            board, in_cohort(season, cohort, cohort_of), request, consistency, source, names=names
        )

    def around(
        self,
        board: str,
        member: str | None = None,
        season: str | None = None,
        *,
        rank: int | None = None,
        limit: int = 11,
        names: bool = False,
        numbering: Numbering | str = Numbering.COMPETITION,
        consistency: Consistency | str = ANY,
        source: Source | str | None = None,
        cohort: int | None = None,
        cohort_of: str | None = None,
        as_of: datetime | None = None,
        since: datetime | None = None,
    ) -> Steps[Page]:
        """The neighbourhood of a member in `around` and its place in `places`; or that of a rank.

        The window has `limit` rows at both ends of the board too, unless the board is smaller;
        it is empty where the member has no place.

        Args:
            board: the board's key.
            member: who is in the middle.
            season: as in `top`.
            rank: or the rank in the middle, from 1; beyond the last the window ends with the last.
                With `limit=1` it is whoever stands there, and the score it takes. Places are gone
                through one by one whatever the numbering: of equals, who share a rank, each has
                one.
            limit: rows, 0 to 1000.
            names: as in `top`.
            numbering: as in `top`.
            consistency: as in `top`.
            source: as in `top`.
            cohort: as in `top`.
            cohort_of: as in `top`.
            as_of: as in `top`.
            since: as in `top`.

        Raises:
            InvalidInput: neither a member nor a rank is given, or both are.
        """
        check_slice(limit)
        if (member is None) == (rank is None):
            raise InvalidInput("give the member or the rank in the middle", field="member")
        request = PageRequest(
            members=() if member is None else (member,),
            around=member,
            around_rank=rank,
            around_limit=limit,
            numbering=boards.choice(Numbering, numbering, "numbering"),
            as_of=as_of,
            since=since,
        )
        return self._asked(
            board, in_cohort(season, cohort, cohort_of), request, consistency, source, names=names
        )

    def places(
        self,
        board: str,
        members: Iterable[str],
        season: str | None = None,
        *,
        among: bool = False,
        percentile: bool = False,
        names: bool = False,
        numbering: Numbering | str = Numbering.COMPETITION,
        consistency: Consistency | str = ANY,
        source: Source | str | None = None,
        cohort: int | None = None,
        cohort_of: str | None = None,
        as_of: datetime | None = None,
        since: datetime | None = None,
    ) -> Steps[Page]:
        """The places of up to 1000 members, from one snapshot, in the order asked.

        Args:
            board: the board's key.
            members: whose places.
            season: as in `top`.
            among: also rank them among themselves, as friends are.
            percentile: also say how many percent of the others are strictly below: 100 for one
                ahead of all others, 0 for the last, the same for equals, 100 for one who is alone.
            names: as in `top`.
            numbering: of both ranks.
            consistency: as in `top`.
            source: as in `top`.
            cohort: as in `top`.
            cohort_of: as in `top`.
            as_of: as in `top`.
            since: as in `top`.
        """
        request = PageRequest(
            members=tuple(members),
            among=among,
            percentile=percentile,
            numbering=boards.choice(Numbering, numbering, "numbering"),
            as_of=as_of,
            since=since,
        )
        return self._asked(
            board, in_cohort(season, cohort, cohort_of), request, consistency, source, names=names
        )

    def place(
        self,
        board: str,
        member: str,
        season: str | None = None,
        *,
        percentile: bool = False,
        names: bool = False,
        numbering: Numbering | str = Numbering.COMPETITION,
        consistency: Consistency | str = ANY,
        source: Source | str | None = None,
        cohort: int | None = None,
        cohort_of: str | None = None,
        as_of: datetime | None = None,
        since: datetime | None = None,
    ) -> Steps[Page]:
        """The place of one member, as the only one of `places`."""
        return self.places(
            board,
            (member,),
            season,
            percentile=percentile,
            names=names,
            numbering=numbering,
            consistency=consistency,
            source=source,
            cohort=cohort,
            cohort_of=cohort_of,
            as_of=as_of,
            since=since,
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
            board, _ = yield from self._known.board(key)
            groups.add(board.group)
        yield from wait_visible(groups, token, prefix=self._prefix, timeout_s=timeout_s)

    def status(self) -> Steps[Status]:
        """One look at both stores: a verdict with its reasons, and the numbers behind it."""
        return (yield from status(self._prefix, self._expected))
