"""Text rules of the incident desk: phrases of time, sentences of reports, kinds of sources."""
