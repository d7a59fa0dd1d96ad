"""From nothing to a working project: environments, embedded model, test tools. Standard library only.

__main__.py   which command, and a clear word if this Python is too old to read the rest
stages.py     what is to be made, in order, and what each stage depends on
stage.py      a stage: up to date, or built and then stamped
installs.py   pip with progress; its failures as sentences
machine.py    what this machine has: Pythons, GPU, compiler, browser, Node, disk
"""
