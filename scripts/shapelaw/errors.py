"""What the user of shapelaw can get wrong, said in one sentence."""


class UserError(Exception):
    """A mistake in what the user gave: a config, a file, a corpus, a command line.

    The message is one or more full sentences: what is wrong, where, and what would be right.
    Scripts print it to standard error without a traceback and exit with code 2.
    """
