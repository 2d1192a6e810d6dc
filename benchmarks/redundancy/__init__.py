"""Tables whose rows other tables hold: lakes to find them in, and the truth by full comparison.

=============  ====================================================================================
module         what it holds
=============  ====================================================================================
`synthetic`    lakes drawn from a seed or derived from given tables
`writing`      tables written as Parquet or CSV
`coded`        which tables hold the rows of which, by comparing all rows
=============  ====================================================================================
"""
