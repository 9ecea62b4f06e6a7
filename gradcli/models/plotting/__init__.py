"""Plots of programs and data: sampling, charts, and their backends Matplotlib and plotext."""
