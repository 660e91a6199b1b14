"""What is shown beside members' ids."""

from collections.abc import Sequence

from truerank.command.profile import profile_parameters
from truerank.model import Profile
from truerank.operations.base import Base
from truerank.steps import Query, Steps

_SET = "SELECT truerank.set_profiles(%s::text[], %s::text[], %s::text[]::jsonb[])"


class Naming(Base):
    """Names and public details of members."""

    def set_profiles(self, profiles: Sequence[Profile]) -> Steps[None]:
        """Give members a name and public details; None takes either away. Safe to repeat.

        Answers that are asked for names show them within seconds, in this process at once.

        Raises:
            InvalidInput: a name is longer than 200 characters, or details need more than 1 KB.
        """
        if profiles:
            yield Query(_SET, profile_parameters(profiles))
            self._names.forget(profile.member for profile in profiles)
