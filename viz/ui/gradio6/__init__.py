"""Everything that rests on how Gradio works inside, and so on its version: one file each.

Each has a PART (viz/ui/gradio6/part.py), which says at the start what of Gradio it misses, and is left out then, if the
page can do without. CONTRIBUTING.md lists them under "How to raise Gradio".
"""
