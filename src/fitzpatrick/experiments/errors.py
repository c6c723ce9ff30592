"""What can go wrong with a run besides its data; importing this loads nothing else."""


class WorkerError(RuntimeError):
    """A worker process that ended before its work was done."""
