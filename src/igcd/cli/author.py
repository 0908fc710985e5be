"""Who decides."""

from getpass import getuser

from igcd.errors import IgcdError


def author_name(author: str | None) -> str:
    """The name under which decisions are recorded: the one passed in, or the login name."""
    if author is not None:
        if not author.strip():
            raise IgcdError("an author needs a name; leave out --author to use your login name")
        return author.strip()
    try:
        return getuser()
    except (KeyError, OSError):  # a container without a user database
        return "unknown"
