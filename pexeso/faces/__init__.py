"""The command line, the app, the tools of agents, and the service below them."""
