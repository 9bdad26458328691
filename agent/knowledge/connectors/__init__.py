"""Connectors: from a folder, a site or a drive to files of this machine that a parser can open."""
