"""HTTP and CLI front ends ("doors").

A door turns a wire request into an `AgentRequest`; a renderer turns events into frames. No engine logic lives here.
"""
