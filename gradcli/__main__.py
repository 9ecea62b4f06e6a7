"""`python -m gradcli`, the same as the command `gradcli`."""

from gradcli.cli.main import run

if __name__ == "__main__":
    run()
