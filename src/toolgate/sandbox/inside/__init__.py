"""What runs in the zygote and behind the wall.

It is started as a program of its own (`python -I -S zygote.py FD`), needs the standard library only, and imports
nothing of toolgate: a forked job holds no code or value of the host's.
"""
