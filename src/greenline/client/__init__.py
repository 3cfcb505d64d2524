"""How programs use a cluster: an asyncio client, and a PEP 249 driver on top of it.

| module        | its idea                                                                  |
|---------------|---------------------------------------------------------------------------|
| `client`      | what callers use from asyncio                                             |
| `dbapi`       | the same for programs that know PEP 249                                   |
| `errors`      | what can go wrong, for both                                               |
| `answers`     | what callers get                                                          |
| `transaction` | interactive transactions: tried one by one, decided together              |
| `admin`       | users, replicas, weights                                                  |
| `log`         | the ordered log, followed across nodes                                    |
| `link`        | at one node, and on to the next when it is gone                           |
| `finding`     | which node                                                                |
| `writes`      | requests in few frames, asked again until they are answered               |
| `asked`       | sessions and numbers: what may be asked again, and what nobody can know   |
| `questions`   | all that has no place in the order                                        |
| `connection`  | frames on one connection                                                  |
| `patience`    | how long to wait before the next try, and how often to try                |
| `work`        | SQL and parameters as bodies                                              |
"""

from greenline.client.answers import Colour, Rows, Written
from greenline.client.asked import Identity
from greenline.client.client import Client, connect
from greenline.client.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    OutcomeUnknown,
    ProgrammingError,
    Refused,
    ResultForgotten,
    SerializationFailure,
    TimedOut,
    Unauthorised,
    Unreachable,
)
from greenline.client.transaction import Transaction

__all__ = [
    "Client",
    "Colour",
    "DataError",
    "DatabaseError",
    "Error",
    "Identity",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "OutcomeUnknown",
    "ProgrammingError",
    "Refused",
    "ResultForgotten",
    "Rows",
    "SerializationFailure",
    "TimedOut",
    "Transaction",
    "Unauthorised",
    "Unreachable",
    "Written",
    "connect",
]
