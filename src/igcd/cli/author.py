"""Who decides."""

from getpass import getuser

from igcd.errors import IgcdError


def author_name(given: str | None) -> str:
    """The name under which decisions are recorded: the one given, or the login name."""
    if given is not None:
        if not given.strip():
            raise IgcdError("an author needs a name; leave out --author to use your login name")
        return given.strip()
    try:
        return getuser()
    except (KeyError, OSError):  # a container without a user database
        return "unknown"
