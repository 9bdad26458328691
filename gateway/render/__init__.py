"""Renders events as frames, one module a protocol. Pure: a frame depends only on events, so that any door can
resume.
"""
