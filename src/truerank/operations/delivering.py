"""Who is told of what by webhook."""

from collections.abc import Sequence

from truerank.command import webhooks
from truerank.model import Delivery, Webhook
from truerank.operations.base import Base
from truerank.steps import Steps


class Delivering(Base):
    """Receivers, and what is on its way to them."""

    def add_webhook(
        self,
        name: str,
        url: str,
        kinds: Sequence[str],
        *,
        board: str | None = None,
        allow_http: bool = False,
        actor: str,
        reason: str,
    ) -> Steps[str]:
        """Tell a receiver of what happens from now on; returns the secret that signs requests.

        Nobody can ask for the secret again: `rotate_webhook` makes a new one.

        Args:
            name: of the webhook.
            url: https, without a password in it.
            kinds: some of award.given, award.withdrawn, season.final, season.revised,
                member.erased, event.voided.
            board: None: of all boards. Members are erased from all in any case.
            allow_http: take a URL that isn't encrypted.
            actor: who does it, for the audit.
            reason: why, for the audit.

        Raises:
            InvalidInput: a field is malformed, or the name is taken (`webhook_exists`).
            BoardUnknown: no board has this key.
            CommandError: there are 32 already (`too_many`).
        """
        return (
            yield from webhooks.add_webhook(
                name,
                url,
                kinds,
                board=board,
                allow_http=allow_http,
                actor=actor,
                reason=reason,
            )
        )

    def change_webhook(
        self,
        name: str,
        *,
        url: str | None = None,
        kinds: Sequence[str] | None = None,
        enabled: bool | None = None,
        allow_http: bool = False,
        actor: str,
        reason: str,
    ) -> Steps[None]:
        """Give a receiver another address, tell it of other things, or send it nothing for a while.

        None leaves as it is. What happens while it is disabled is kept, and sent afterwards.

        Raises:
            InvalidInput: a field is malformed.
            WebhookUnknown: there is none of this name.
        """
        yield from webhooks.change_webhook(
            name,
            url=url,
            kinds=kinds,
            enabled=enabled,
            allow_http=allow_http,
            actor=actor,
            reason=reason,
        )

    def rotate_webhook(
        self, name: str, *, overlap_s: int = 86_400, actor: str, reason: str
    ) -> Steps[str]:
        """Make a new secret, and return it; the one before is signed with as well, for a while.

        Args:
            name: of the webhook.
            overlap_s: for so many seconds, up to 30 days; 0: not at all.
            actor: who does it, for the audit.
            reason: why, for the audit.

        Raises:
            WebhookUnknown: there is none of this name.
        """
        return (
            yield from webhooks.rotate_webhook(
                name, overlap_s=overlap_s, actor=actor, reason=reason
            )
        )

    def remove_webhook(self, name: str, *, actor: str, reason: str) -> Steps[None]:
        """Tell a receiver of nothing any more; what is on its way to it is forgotten.

        Raises:
            WebhookUnknown: there is none of this name.
        """
        yield from webhooks.remove_webhook(name, actor=actor, reason=reason)

    def webhooks(self) -> Steps[list[Webhook]]:
        """All receivers, by name."""
        return (yield from webhooks.list_webhooks())

    def webhook(self, name: str) -> Steps[Webhook]:
        """One receiver.

        Raises:
            WebhookUnknown: there is none of this name.
        """
        return (yield from webhooks.find_webhook(name))

    def deliveries(
        self,
        webhook: str,
        *,
        state: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Steps[list[Delivery]]:
        """What a receiver was and is to be told of, the latest first. With everybody's own id.

        Args:
            webhook: its name.
            state: waiting, parked, delivered or cancelled; None: all.
            before: a delivery's id, to read on from.
            limit: 1 to 1000.

        Raises:
            WebhookUnknown: there is none of this name.
        """
        return (
            yield from webhooks.list_deliveries(webhook, state=state, before=before, limit=limit)
        )

    def retry_deliveries(
        self, webhook: str, ids: Sequence[int] | None = None, *, actor: str, reason: str
    ) -> Steps[int]:
        """Send again at once what was tried and is parked or waits; returns how many that is.

        What wasn't tried yet is due anyway.

        Args:
            webhook: its name.
            ids: of deliveries; None: all.
            actor: who does it, for the audit.
            reason: why, for the audit.

        Raises:
            WebhookUnknown: there is none of this name.
        """
        return (yield from webhooks.retry_deliveries(webhook, ids, actor=actor, reason=reason))

    def test_webhook(self, name: str, *, timeout_s: float = 15.0) -> Steps[Delivery]:
        """Let a worker send a message of kind `webhook.test`; how the first attempt ended.

        Returns:
            The delivery. Its `outcome` is None where no worker sent it in time.

        Raises:
            WebhookUnknown: there is none of this name.
        """
        return (yield from webhooks.test_webhook(name, timeout_s=timeout_s))
