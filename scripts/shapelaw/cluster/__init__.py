"""The workflow on Slurm: its jobs' names, states and attempts, and the executor that puts them together."""
