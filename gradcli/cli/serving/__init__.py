"""Serves the commands to other programs: `tools` makes command lines of their requests, `worker_processes` runs each in a
process of its own, and `mcp_server` and `http_server` speak with the clients."""
