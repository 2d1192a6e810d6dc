"""Join graphs and joins, written for other tools.

=================  =================================================================================
`edges`            what exporters read: batches of edges
`registry`         the formats by name and by the ending of a file
`lines`            lines of text for many edges at once
`plain_files`      JSON lines, CSV and Parquet
`graphml`          GraphML
`mermaid`          Mermaid
`dbt`              relationships tests and columns of dbt
`openmetadata`     joins of tables for OpenMetadata
`openlineage`      events of joins that were made
=================  =================================================================================

To add a format, write a module with an `ExportFormat`, and add it to the registry.
"""
