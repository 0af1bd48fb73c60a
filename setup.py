"""What `pip install .` takes: the package, the commands beside it, and the papers' numbers."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages("scripts"), "shapelaw.commands", "shapelaw.reference"],
    package_dir={"": "scripts", "shapelaw.commands": "scripts", "shapelaw.reference": "workflow/reference"},
    package_data={
        "": ["captions/*.rst", "captions/*/*.rst", "*.cpp", "*.h", "advisor/*", "packages.csv"],
        "shapelaw.reference": ["*.csv", "*.json", "measured/*/*.csv"],
    },
)
