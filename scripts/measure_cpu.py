"""Run a command and print at its end the CPU time that it took, with everything that it started.

  python scripts/measure_cpu.py COMMAND [ARGUMENT ...]

This counts user and system time of the command and of all processes that it waited for. The exit code is the command's.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time


def main() -> int:
    """Run the command and return its exit code."""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0 if len(sys.argv) > 1 else 2
    started = time.monotonic()
    try:
        code = subprocess.call(sys.argv[1:])
    except OSError as error:
        print(f"{sys.argv[1]} can't be run ({error.strerror}).", file=sys.stderr)
        return 127
    wall = time.monotonic() - started
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{(used.ru_utime + used.ru_stime) / 60:.1f} CPU-minutes (user and system), {wall / 60:.1f} minutes in all."
    )
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
