"""Builds and updates of an index: five verbs over one job, which parts fill and one commit ends."""
