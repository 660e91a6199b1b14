"""`truerank webhook`: who is told of what, and what is on its way to whom."""

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from truerank.cli.attach import Actor, Reason, login
from truerank.cli.options import Given, Json, words
from truerank.cli.output import escaped, pairs, say, shown, table, write_json
from truerank.errors import InvalidInput
from truerank.read.shapes import delivery_json, time_text, webhook_json

if TYPE_CHECKING:
    from truerank.model import Delivery, Webhook

_FAILED = 1

Kinds = Annotated[
    str | None,
    Parameter(
        name="--kinds",
        show_default=False,
        help="Any of award.given, award.withdrawn, season.final, season.revised, member.erased, "
        "event.voided, with commas between.",
    ),
]
AllowHttp = Annotated[
    bool,
    Parameter(name="--allow-http", negative=(), help="Take a URL that isn't encrypted."),
]
State = Literal["waiting", "parked", "delivered", "cancelled"]


def add(
    name: str,
    url: str,
    /,
    *,
    kinds: Kinds = None,
    board: Annotated[str | None, Parameter(show_default=False)] = None,
    allow_http: AllowHttp = False,
    actor: Actor = None,
    reason: Reason = "command line",
    json: Json = False,
    given: Given,
) -> None:
    """Tell a receiver of what happens from now on; print the secret that requests are signed with.

    Keep the secret: nobody can ask for it again.

    Args:
        name: Of the webhook.
        url: Where to send it: https, without a password in it.
        board: Only what happens on this board; without it, on all.
    """
    if kinds is None:
        raise InvalidInput("--kinds says what the receiver is told of", field="kinds")
    with given.client() as client:
        secret = client.add_webhook(
            name,
            url,
            words(kinds),
            board=board,
            allow_http=allow_http,
            actor=login(actor),
            reason=reason,
        )
    _tell_secret(name, secret, json=json)


def change(
    name: str,
    /,
    *,
    url: Annotated[str | None, Parameter(show_default=False)] = None,
    kinds: Kinds = None,
    enable: Annotated[bool, Parameter(negative=())] = False,
    disable: Annotated[bool, Parameter(negative=())] = False,
    allow_http: AllowHttp = False,
    actor: Actor = None,
    reason: Reason = "command line",
    json: Json = False,
    given: Given,
) -> None:
    """Give a receiver another address, tell it of other things, or send it nothing for a while.

    What happens while it is disabled is kept, and sent once it is enabled.

    Args:
        name: Of the webhook.
        url: Where to send what waits, and what happens from now on.
        enable: Send again; also where a receiver answered with 410, which disables it.
        disable: Send nothing until it is enabled.
    """
    if enable and disable:
        raise InvalidInput("a webhook is either enabled or disabled", field="enable")
    with given.client() as client:
        client.change_webhook(
            name,
            url=url,
            kinds=None if kinds is None else words(kinds),
            enabled=True if enable else False if disable else None,
            allow_http=allow_http,
            actor=login(actor),
            reason=reason,
        )
        found = client.webhook(name)
    if json:
        write_json(webhook_json(found))
    else:
        say(f"webhook {shown(name)} changed")


def show_all(*, json: Json = False, given: Given) -> None:
    """List who is told of what, and how many deliveries wait or were given up."""
    with given.client() as client:
        found = client.webhooks()
    if json:
        write_json({"webhooks": [webhook_json(each) for each in found]})
        return
    rows = [
        (
            shown(each.name),
            _state(each),
            str(each.waiting),
            str(each.parked),
            "-" if each.board is None else escaped(each.board),
            ",".join(each.kinds),
            escaped(each.shown_url),
        )
        for each in found
    ]
    headers = ("name", "state", "waiting", "parked", "board", "kinds", "url")
    for line in table(headers, rows, left="name state board kinds url"):
        say(line)


def show(name: str, /, *, json: Json = False, given: Given) -> None:
    """Tell all about one webhook but its secret.

    Args:
        name: Of the webhook.
    """
    with given.client() as client:
        found = client.webhook(name)
    if json:
        write_json(webhook_json(found))
        return
    rows = [
        ("name", shown(found.name)),
        ("url", escaped(found.shown_url)),
        ("kinds", ", ".join(found.kinds)),
        ("board", "all" if found.board is None else escaped(found.board)),
        ("state", _state(found)),
        ("waiting", str(found.waiting)),
        ("parked", str(found.parked)),
    ]
    if found.failures:
        rows.append(("failures", f"{found.failures} in a row"))
    if found.former_until is not None:
        rows.append(("signed with the former secret", f"until {time_text(found.former_until)}"))
    for line in pairs(rows):
        say(line)


def remove(
    name: str,
    /,
    *,
    actor: Actor = None,
    reason: Reason = "command line",
    json: Json = False,
    given: Given,
) -> None:
    """Tell a receiver of nothing any more; what is on its way to it is forgotten.

    Args:
        name: Of the webhook.
    """
    with given.client() as client:
        client.remove_webhook(name, actor=login(actor), reason=reason)
    if json:
        write_json({"webhook": name, "removed": True})
    else:
        say(f"webhook {shown(name)} removed")


def rotate(
    name: str,
    /,
    *,
    overlap_s: int = 86_400,
    actor: Actor = None,
    reason: Reason = "command line",
    json: Json = False,
    given: Given,
) -> None:
    """Make a new secret, and print it; requests are signed with both for a while.

    Args:
        name: Of the webhook.
        overlap_s: For so many seconds; 0: with the new one alone.
    """
    with given.client() as client:
        secret = client.rotate_webhook(name, overlap_s=overlap_s, actor=login(actor), reason=reason)
    _tell_secret(name, secret, json=json)


def deliveries(
    name: str,
    /,
    *,
    state: Annotated[State | None, Parameter(show_default=False)] = None,
    before: Annotated[int | None, Parameter(show_default=False)] = None,
    limit: int = 100,
    json: Json = False,
    given: Given,
) -> None:
    """List what a receiver was and is to be told of, the latest first. With everybody's id.

    Args:
        name: Of the webhook.
        state: Only those that wait, were given up, delivered, or cancelled by an erasure.
        before: Only those with a lower id.
        limit: At most so many, up to 1000.
    """
    with given.client() as client:
        found = client.deliveries(name, state=state, before=before, limit=limit)
    if json:
        write_json({"webhook": name, "deliveries": [delivery_json(each) for each in found]})
        return
    rows = [
        (
            str(each.id),
            each.state,
            str(each.attempts),
            each.outcome or "-",
            time_text(each.occurred_at) or "-",
            each.kind,
            "-" if each.member is None else shown(each.member),
        )
        for each in found
    ]
    headers = ("id", "state", "attempts", "outcome", "occurred", "kind", "member")
    for line in table(headers, rows, left="state outcome occurred kind member"):
        say(line)


def retry(
    name: str,
    ids: Annotated[tuple[int, ...], Parameter(name="ID", consume_multiple=True)] = (),
    /,
    *,
    actor: Actor = None,
    reason: Reason = "command line",
    json: Json = False,
    given: Given,
) -> None:
    """Send again at once what was given up or waits; attempts are counted anew.

    Args:
        name: Of the webhook.
        ids: Of deliveries; without any, all.
    """
    with given.client() as client:
        retried = client.retry_deliveries(name, ids or None, actor=login(actor), reason=reason)
    if json:
        write_json({"webhook": name, "retried": retried})
    else:
        say(f"{retried} deliveries to be sent again")


def attempt(
    name: str,
    /,
    *,
    timeout_s: float = 15.0,
    json: Json = False,
    given: Given,
) -> int:
    """Let a worker send a message of kind webhook.test. Exit status 1: it didn't arrive.

    Args:
        name: Of the webhook.
        timeout_s: How long to wait for the first attempt, in seconds.
    """
    with given.client(project=True) as client:
        delivery = client.test_webhook(name, timeout_s=timeout_s)
    if json:
        write_json(delivery_json(delivery))
    else:
        say(_told(delivery))
    return 0 if delivery.state == "delivered" else _FAILED


def _told(delivery: "Delivery") -> str:
    if delivery.state == "delivered":
        return f"delivered: the receiver answered {delivery.outcome}"
    return f"not delivered: {delivery.outcome or 'no worker has sent it yet'}"


def _state(webhook: "Webhook") -> str:
    if not webhook.enabled:
        return "disabled" + (f" ({webhook.disabled_for})" if webhook.disabled_for else "")
    return "failing" if webhook.failures else "enabled"


def _tell_secret(name: str, secret: str, *, json: bool) -> None:
    if json:
        write_json({"webhook": name, "secret": secret})
    else:
        say(secret)


COMMANDS = (
    (
        "add",
        add,
        (
            "truerank webhook add payroll https://pay.example.com/hook --kinds award.given",
            "truerank webhook add crm https://crm.example.com/h --kinds member.erased --json",
        ),
    ),
    ("list", show_all, ("truerank webhook list",)),
    ("show", show, ("truerank webhook show payroll",)),
    (
        "change",
        change,
        (
            "truerank webhook change payroll --enable",
            "truerank webhook change payroll --url https://pay.example.com/v2",
        ),
    ),
    ("remove", remove, ("truerank webhook remove payroll",)),
    ("rotate", rotate, ("truerank webhook rotate payroll --overlap-s 3600",)),
    (
        "deliveries",
        deliveries,
        ("truerank webhook deliveries payroll --state parked",),
    ),
    ("retry", retry, ("truerank webhook retry payroll", "truerank webhook retry payroll 17 18")),
    ("test", attempt, ("truerank webhook test payroll",)),
)
