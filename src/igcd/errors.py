"""The one exception a user is meant to read."""


class IgcdError(Exception):
    """Bad input or a missing file: one sentence that says what was expected, what came and what to do.

    The command line prints the sentence and exits with 1; a traceback is kept for our own mistakes.
    """
