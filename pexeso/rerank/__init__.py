"""Re-ranking of found columns by how likely they can be joined.

The package has the features, the boosted trees and the feature attributions.
"""
