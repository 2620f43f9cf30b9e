"""Methods that solve a program, one file each; kernels know arrays only."""
