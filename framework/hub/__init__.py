"""The hub of weights: sources, verification, the cache and the index.

Rows of the index are data: `weights/*.yml` of the zoo and of each domain's package.
"""

from framework.hub.index import Entry as Entry
from framework.hub.index import File as File
from framework.hub.index import Source as Source
from framework.hub.store import Miss as Miss
from framework.hub.store import digest as digest
from framework.hub.store import entries as entries
from framework.hub.store import entry as entry
from framework.hub.store import fetch as fetch
from framework.hub.store import find_name as find_name
from framework.hub.store import locate as locate
from framework.hub.store import look as look
from framework.hub.store import plain_name as plain_name
from framework.hub.store import resolve as resolve
from framework.hub.store import verify as verify
