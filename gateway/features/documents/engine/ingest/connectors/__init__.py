"""Connectors fetch the documents of a folder, a web site or a drive as local files that a parser can open."""
