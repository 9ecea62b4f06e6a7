"""The output formats of `gradcli graph`, one module for each."""
