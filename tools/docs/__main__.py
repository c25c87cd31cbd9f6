"""Write the tables of README.md and docs/*.md anew, see tables.py."""

from tools.docs.tables import main

if __name__ == "__main__":
    main()
