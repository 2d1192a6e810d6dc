"""Searches of composite keys: how fast they are, and what the filters of rows let pass.

=============  ====================================================================================
module         what it holds
=============  ====================================================================================
`lakes`        real lakes, TPC-H, and a power-law lake of any number of rows
`queries`      keys drawn from them
`measuring`    what is measured
`command`      ``python -m benchmarks composite``
=============  ====================================================================================
"""
