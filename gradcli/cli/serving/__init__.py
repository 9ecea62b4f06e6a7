"""How do other programs call the commands? Over MCP and HTTP.

Begin with `tools`, which makes command lines of requests; `worker_processes` runs each in a process of its own, and
`mcp_server` and `http_server` speak with the clients."""
