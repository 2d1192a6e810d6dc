"""Tables whose rows other tables hold: lakes to find them in, and the truth by plain comparison.

=============  ====================================================================================
module         what it holds
=============  ====================================================================================
`synthetic`    lakes drawn from a seed or derived from given tables
`fixed`        the worked lake, and one of everything that goes wrong
`writing`      tables written as Parquet or CSV
`oracle`       which tables hold the rows of which, by comparing all rows
`contents`     tables read as plain Python values, for the oracle
=============  ====================================================================================
"""
