"""The one check of a request's Host, Origin and body type, before every door: a web page must not use the gateway of
the person who looks at it.
"""
