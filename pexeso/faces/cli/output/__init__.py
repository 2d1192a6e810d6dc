"""What commands write: tables for people, JSON and CSV for programs, pages, messages on stderr."""
