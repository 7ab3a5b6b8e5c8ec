"""Prints the messages of a Maildir as JSON, as Python's own library reads them, with the defects that it finds."""

import json
import pathlib
import sys
from email import message_from_bytes
from email.policy import default


def read(path):
    raw = path.read_bytes()
    message = message_from_bytes(raw, policy=default)
    headers = list(message.items())
    return {
        "headers": {name.lower(): [str(value) for other, value in headers if other.lower() == name.lower()] for name, _ in headers},
        "from": [[address.display_name, address.addr_spec] for address in message["from"].addresses],
        "to": [[address.display_name, address.addr_spec] for address in message["to"].addresses],
        "at": int(message["date"].datetime.timestamp()),
        "type": message.get_content_type(),
        "charset": message.get_content_charset(),
        "text": message.get_content(),
        "isAscii": raw.isascii(),
        "longestLine": max(map(len, raw.split(b"\n"))),
        "defects": [repr(defect) for part in message.walk() for defect in part.defects]
        + [f"{name}: {defect!r}" for name, value in headers for defect in value.defects],
    }


folder = pathlib.Path(sys.argv[1])
print(json.dumps([read(path) for path in sorted(folder.iterdir())]))
