"""Kernels in C++, each kept by what it makes faster: 1.1 times at least, or it goes (docs/architecture.md)."""
