"""CUDA C++ and Numba-CUDA kernels, with the stem of the component that they speed up. None is needed on the CPU, so there is none yet."""
