"""Processes that share what one process has imported, which takes longer than what they do."""

import gc
import os
import traceback


def fork(n, function, *arguments):
    """Run a function in n processes, with their rank and arguments; how each of them ended."""
    gc.freeze()  # a collection writes to each object, and copies the page that it is on
    children = []
    for rank in range(n):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                function(rank, *arguments)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)  # gloo's threads may wait for the GIL for ever
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
