"""The command line: thin commands that parse, call the library and format."""

import time

# When the process began, on the clock of `time.perf_counter`.
#
# Up to here it has done nothing but start the interpreter, so the processor time that this took is
# the time since then, on every system.
PROCESS_START = time.perf_counter() - time.process_time()
