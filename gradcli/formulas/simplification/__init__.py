"""What is the shortest formula of a program? A normal form, and the search for forms as people would write them.

Begin with `formula`, and with `algebra`, the normal form.
"""
