"""How are results shown? As tables and text for people, and as JSON for programs.

Begin with `render`.
"""
