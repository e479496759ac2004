"""The program that is started by path; alone in its folder, which Python searches first."""
