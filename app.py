"""Serve the page, as a Hugging Face Space does. `python app.py --help`"""

from attention_atlas.app import main
from attention_atlas.model.program import run_program

if __name__ == "__main__":
    run_program(main)
