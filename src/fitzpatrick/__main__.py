"""``python -m fitzpatrick``: the same as the command ``fitzpatrick``."""

from .cli import main

main()
