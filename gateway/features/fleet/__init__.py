"""Several processes and machines: the queue, its workers, `serve --workers`."""
