"""How clients reach replicas: for now, what a client and the node that it is connected to say to each other.

Does no I/O.

| module      | its idea                                         |
|-------------|--------------------------------------------------|
| `wire`      | requests and answers as frames on one connection |
| `passwords` | what is kept of one, and how it is checked       |
"""
