"""Everything a client can do, each written once as steps for blocking and asyncio clients."""

from truerank.operations.correcting import Correcting
from truerank.operations.governing import Governing
from truerank.operations.members import Members
from truerank.operations.naming import Naming
from truerank.operations.reading import Reading
from truerank.operations.writing import Writing


class Operations(Governing, Writing, Correcting, Members, Naming, Reading):
    """What `truerank.client.Truerank` and `truerank.aio.Truerank` offer under the same names."""


__all__ = ["Operations"]
