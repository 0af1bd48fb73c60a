"""What a worker of a test session is, as a fork of `warm_python`: that has imported most of what tests need already."""

import sys

if __name__ == "__main__":
    exec(sys.argv[-1])  # execnet's one line, which waits for the rest of the worker
