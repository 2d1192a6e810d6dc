"""A server of the Model Context Protocol: tools by which agents find joins, explain and make them.

It needs the extra ``pexeso[mcp]``. `pexeso.faces.mcp.server` runs it; what its tools answer is
what the service answers, cut to a length that an agent can read.
"""
